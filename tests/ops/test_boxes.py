"""Non-maximum suppression written out: exactly ONNX Runtime's rows in float, and in integers what
greedy selection on those very integers gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.graph import Array
from splitter.normalize.bounded import COMPRESS
from splitter.ops.boxes import LARGEST, MOST_PICKS, too_many
from splitter.quantize import calibrate, quantize
from splitter.quantize.picks import _least, _threshold
from splitter.reference import run_onnx
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Quantization, Tensor
from splitter.tflite.write import write
from tests.ops.lowered import first_lowerings, graph_of, parsed

KINDS = st.tuples(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), st.integers(1, 10),
    st.sampled_from([0.0, 0.3, 0.45, 0.5, 0.7, 1.0]), st.sampled_from([None, 0.0, 0.3]),
    st.integers(0, 1), st.integers(0, 2**32 - 1),
)  # fmt: skip


def body(
    sizes: tuple[int, int, int], most: int, iou: float, score: float | None, center: int
) -> str:
    batch, classes, count = sizes
    least = "" if score is None else f", float[1] least = {{{score}}}"
    name = "" if score is None else ", least"
    return f"""(float[{batch},{count},4] b, float[{batch},{classes},{count}] s)
      => (int64[n,3] picks) <int64[1] most = {{{most}}}, float[1] iou = {{{iou}}}{least}> {{
        picks = NonMaxSuppression<center_point_box = {center}>(b, s, most, iou{name})
      }}"""


def drawn(seed: int, sizes: tuple[int, int, int]) -> dict[str, Array]:
    """Boxes with corners in any order, and now and then on whole numbers; scores with ties."""
    random = np.random.default_rng(seed)
    batch, classes, count = sizes
    boxes = random.uniform(0, 10, (batch, count, 4))
    scores = random.uniform(0, 1, (batch, classes, count))
    if seed % 2:
        boxes, scores = np.round(boxes), np.round(scores * 4) / 4
    return {"b": boxes.astype(np.float32), "s": scores.astype(np.float32)}


@given(kind=KINDS)
@settings(max_examples=25, deadline=None)
def test_the_rows_are_those_of_onnx_runtime_in_its_order(kind: tuple[int, ...]) -> None:
    batch, classes, count, most, iou, score, center, seed = kind
    sizes = (batch, classes, count)
    model = parsed(body(sizes, most, iou, score, center), opset=17)
    interpreter = Interpreter(write(first_lowerings(graph_of(model))))
    for shift in range(2):
        feeds = drawn(seed + shift, sizes)
        np.testing.assert_array_equal(
            interpreter.run(feeds)["picks"], run_onnx(model, feeds)["picks"]
        )


def test_scores_all_under_the_threshold_give_no_row_and_the_next_run_has_rows_again() -> None:
    model = parsed(body((1, 1, 4), 4, 0.5, 0.3, 0), opset=17)
    interpreter = Interpreter(write(first_lowerings(graph_of(model))))
    feeds = drawn(0, (1, 1, 4))
    none = {**feeds, "s": np.zeros((1, 1, 4), np.float32)}
    assert interpreter.run(none)["picks"].shape == (0, 3)
    assert interpreter.run(feeds)["picks"].shape == run_onnx(model, feeds)["picks"].shape
    assert interpreter.run(none)["picks"].shape == (0, 3)


def integers(float_graph: LiteGraph, samples: list[dict[str, Array]], **kinds: object) -> LiteGraph:
    ranges = calibrate(float_graph, samples, threads=1)
    return quantize(float_graph, ranges, npu=(), **kinds)  # type: ignore[arg-type]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("center", [0, 1])
def test_integers_decide_as_the_values_that_they_stand_for(wide: bool, center: int) -> None:
    """ONNX Runtime on the dequantized boxes and scores picks the same rows."""
    sizes = (1, 2, 8)
    model = parsed(body(sizes, 5, 0.45, 0.25, center), opset=17)
    samples = [drawn(2 * seed, sizes) for seed in range(12)]
    whole = integers(first_lowerings(graph_of(model)), samples, int16=("b", "s") if wide else ())
    assert not any(t.dtype == "float32" for t in whole.tensors.values())
    assert whole.tensors["b"].dtype == ("int16" if wide else "int8")
    interpreter, same = Interpreter(write(whole)), 0
    for sample in samples:
        raw = {n: as_integers(sample[n], whole.tensors[n]) for n in ("b", "s")}
        real = {n: as_real(raw[n], whole.tensors[n]) for n in raw}
        made, wanted = interpreter.run(raw)["picks"], run_onnx(model, real)["picks"]
        same += made.shape == wanted.shape and bool((made == wanted).all())
    assert same >= (10 if wide else 12)  # 16 bits of coordinates do not all fit


APART = """(float[9,4] b, float[9] s, int64[9] c) => (int64[n] keep) <int64[1] zero = {0},
  int64[1] one = {1}, int64[1] two = {2}, int64[1] all = {9}, float[1] iou = {0.3},
  float unit = {1.0}> {
    largest = ReduceMax<keepdims = 0>(b) step = Add(largest, unit) f = Cast<to = 1>(c)
    offsets = Mul(f, step) o = Unsqueeze(offsets, one) moved = Add(b, o)
    b3 = Unsqueeze(moved, zero) s2 = Unsqueeze(s, zero) s3 = Unsqueeze(s2, zero)
    picks = NonMaxSuppression(b3, s3, all, iou)
    column = Gather<axis = 1>(picks, two) keep = Squeeze(column, one)
  }"""


def apart_sample(seed: int) -> dict[str, Array]:
    """Boxes of 90 classes in the same 10 pixels."""
    random = np.random.default_rng(seed)
    start, size = random.uniform(0, 5, (9, 2)), random.uniform(2, 5, (9, 2))
    boxes = np.concatenate([start, start + size], axis=1)
    scores, classes = random.permutation(9) / 9 + 0.1, random.integers(86, 90, 9)
    return {"b": boxes.astype(np.float32), "s": scores.astype(np.float32), "c": classes}


def test_boxes_that_are_moved_apart_by_class_keep_their_precision_in_integers() -> None:
    """In 8 bits 90 classes of 10 pixels side by side would have steps of 4 pixels."""
    model = parsed(APART, opset=18)
    samples = [apart_sample(seed) for seed in range(12)]
    whole = integers(first_lowerings(graph_of(model)), samples)
    interpreter = Interpreter(write(whole))
    for one in samples:
        raw = {n: as_integers(one[n], whole.tensors[n]) for n in ("b", "s")}
        real = {n: as_real(raw[n], whole.tensors[n]) for n in raw}
        made = interpreter.run({**raw, "c": one["c"].astype(np.int32)})["keep"]
        np.testing.assert_array_equal(made, run_onnx(model, {**real, "c": one["c"]})["keep"])


def as_integers(array: Array, tensor: Tensor) -> Array:
    q = quantization(tensor)
    info = np.iinfo(tensor.dtype)
    steps = np.rint(array / np.float32(q.scale[0])) + q.zero_point[0]
    return np.asarray(np.clip(steps, info.min, info.max), tensor.dtype)


def as_real(array: Array, tensor: Tensor) -> Array:
    q = quantization(tensor)
    real = (array.astype(np.float64) - q.zero_point[0]) * q.scale[0]
    return np.asarray(real, np.float32)


def quantization(tensor: Tensor) -> Quantization:
    assert tensor.quantization is not None
    return tensor.quantization


@pytest.mark.parametrize("iou", [0.0, 0.1, 0.3, 0.45, 0.5, 0.65, 0.7, 1.0, 0.123456])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("center", [False, True])
def test_the_fraction_is_near_the_threshold_and_its_products_fit_32_bits(
    iou: float, dtype: str, center: bool
) -> None:
    fraction, shift = _threshold(iou, Tensor("b", (1, 4, 4), dtype), center=center)
    assert abs(float(fraction) - iou) <= 1e-4
    bits = (8 if dtype == "int8" else 16) - shift
    area = (2**bits * (2 if center else 1)) ** 2
    assert area * (fraction.numerator + fraction.denominator) < 2**31
    assert 2 * area * fraction.numerator < 2**31


def test_more_picks_than_are_written_are_refused_with_the_numbers() -> None:
    assert too_many(1, 100, MOST_PICKS) is None
    assert str(MOST_PICKS + 1) in str(too_many(1, 100, MOST_PICKS + 1))
    assert too_many(1, LARGEST // 100, 100) is None
    assert str(LARGEST) in str(too_many(2, LARGEST // 100, 100))


def test_rows_are_compressed_only_at_the_outputs() -> None:
    """So all that is calibrated, cut and compared before has static shapes."""
    graph = first_lowerings(graph_of(parsed(body((1, 1, 4), 4, 0.5, 0.3, 0), opset=17)))
    assert [op.code for op in graph.operators if op.unit.startswith(COMPRESS)] == [
        "WHERE",
        "GATHER_ND",
    ]
    assert graph.open_ended == ("picks",) and graph.tensors["picks"].shape == (4, 3)


@pytest.mark.parametrize(
    ("score", "least"), [(np.nan, 127), (np.inf, 127), (-np.inf, -129), (0.3, -52), (1e30, 127)]
)
def test_the_least_score_of_any_threshold(score: float, least: int) -> None:
    scores = Tensor("s", (1, 1, 4), "int8", None, Quantization((1 / 256,), (-128,)))
    assert _least(score, scores) == least
