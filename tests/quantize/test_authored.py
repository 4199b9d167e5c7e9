"""Models that come quantized (QDQ) keep the scales and zero points of their author."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

from splitter.quantize import Demands, calibrate, quantize
from splitter.quantize.authored import kept_scales
from splitter.quantize.weights import lattice_scales
from splitter.tflite.types import LiteGraph, Quantization
from tests.ops.lowered import Lowered, every_lowering, parsed

CHAIN = """(float[1,2,6,6] x) => (float[1,3,6,6] y) <float[3,2,3,3] w, float[3] b> {{
  one = Constant<value = float {{0.02}}>()
  two = Constant<value = float {{0.05}}>()
  zero = Constant<value = {dtype} {{{zero}}}>()
  other = Constant<value = {dtype} {{{other}}}>()
  xq = QuantizeLinear (x, one, zero)
  xd = DequantizeLinear (xq, one, zero)
  c = Conv<pads = [1, 1, 1, 1]> (xd, w, b)
  r = Relu (c)
  rq = QuantizeLinear (r, two, other)
  y = DequantizeLinear (rq, two, other)
}}"""
TWO_SCALES = """(float[1,2,6,6] x) => (float[1,2,3,3] y) {
  one = Constant<value = float {0.02}>()
  two = Constant<value = float {0.03}>()
  zero = Constant<value = int8 {0}>()
  xq = QuantizeLinear (x, one, zero)
  xd = DequantizeLinear (xq, one, zero)
  m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]> (xd)
  mq = QuantizeLinear (m, two, zero)
  y = DequantizeLinear (mq, two, zero)
}"""
AVERAGED = """(float[1,2,6,6] x) => (float[1,2,OUT] y) {
  one = Constant<value = float {0.02}>()
  two = Constant<value = float {0.002}>()
  zero = Constant<value = int8 {0}>()
  xq = QuantizeLinear (x, one, zero)
  xd = DequantizeLinear (xq, one, zero)
  m = AVERAGE (xd)
  mq = QuantizeLinear (m, two, zero)
  y = DequantizeLinear (mq, two, zero)
}"""
NOTHING_ADDED = """(float[1,4] x, float[1,4] z) => (float[1,4] y) {
  fine = Constant<value = float {1.0e-9}>()
  coarse = Constant<value = float {1.0}>()
  zero = Constant<value = int8 {0}>()
  xq = QuantizeLinear (x, fine, zero)
  xd = DequantizeLinear (xq, fine, zero)
  zq = QuantizeLinear (z, coarse, zero)
  zd = DequantizeLinear (zq, coarse, zero)
  sum = Add (xd, zd)
  sq = QuantizeLinear (sum, fine, zero)
  y = DequantizeLinear (sq, fine, zero)
}"""
PROBABILITIES = """(float[1,12] x) => (float[1,12] y) {
  one = Constant<value = float {0.02}>()
  two = Constant<value = float {0.003}>()
  zero = Constant<value = int8 {0}>()
  low = Constant<value = int8 {-128}>()
  xq = QuantizeLinear (x, one, zero)
  xd = DequantizeLinear (xq, one, zero)
  s = Softmax<axis = -1> (xd)
  sq = QuantizeLinear (s, two, low)
  y = DequantizeLinear (sq, two, low)
}"""
PASSED_ON = """(float[1,12] x) => (float[1,12] y, float[1,12] z) {
  one = Constant<value = float {0.02}>()
  two = Constant<value = float {0.04}>()
  zero = Constant<value = int8 {0}>()
  xq = QuantizeLinear (x, one, zero)
  y = DequantizeLinear (xq, one, zero)
  yq = QuantizeLinear (y, two, zero)
  z = DequantizeLinear (yq, two, zero)
}"""


def lowered(body: str, *, opset: int = 17) -> Lowered:
    """The preferred lowering of the graph on two samples within the author's range."""
    model = parsed(body, opset=opset)
    info = model.graph.input[0].type.tensor_type.shape.dim
    shape = [d.dim_value for d in info]
    samples = [
        {"x": np.random.default_rng(i).uniform(-2.4, 2.4, shape).astype(np.float32)}
        for i in range(2)
    ]
    return next(made for _, made in every_lowering(model, samples))


def parameters(graph: LiteGraph, name: str) -> tuple[float, int]:
    q = graph.tensors[name].quantization
    assert isinstance(q, Quantization) and not q.per_channel
    return round(q.scale[0], 6), q.zero_point[0]


@pytest.mark.parametrize(
    ("dtype", "zero", "other"), [("int8", 0, -128), ("uint8", 128, 0), ("int8", 10, -100)]
)
def test_inputs_and_outputs_have_the_scales_that_the_model_states(
    dtype: str, zero: int, other: int
) -> None:
    made = lowered(CHAIN.format(dtype=dtype, zero=zero, other=other))
    shift = 128 if dtype == "uint8" else 0
    assert parameters(made.integer, "x") == (0.02, zero - shift)
    assert parameters(made.integer, "y") == (0.05, other - shift)
    assert not {op.code for op in made.integer.operators} & {"QUANTIZE", "DEQUANTIZE", "CAST"}
    assert made.float_error() <= 5e-3  # a step where another order of the sum rounds differently
    assert made.integer_error() <= 0.02


@pytest.mark.parametrize(("dtype", "zero"), [("int16", 900), ("uint16", 30000)])
def test_sixteen_bits_with_a_zero_point_reach_as_far_around_zero(dtype: str, zero: int) -> None:
    fine = CHAIN.replace("0.02", "0.0001").replace("0.05", "0.0006")
    made = lowered(fine.format(dtype=dtype, zero=zero, other=zero), opset=21)
    scale, point = parameters(made.integer, "x")
    assert point == 0 and 0.0001 < scale < 0.00011
    assert made.float_error() <= 1e-4
    (text,) = kept_scales(made.graph, made.integer)
    assert "0 of 2 values keep" in text and "2 of 16 bits had a zero point" in text


def test_a_pool_between_two_scales_changes_the_scale_first() -> None:
    made = lowered(TWO_SCALES)
    assert parameters(made.integer, "x") == (0.02, 0)
    assert parameters(made.integer, "y") == (0.03, 0)
    pool = next(op for op in made.integer.operators if op.code == "MAX_POOL_2D")
    assert parameters(made.integer, pool.inputs[0]) == (0.03, 0)
    assert made.integer_error() <= 0.01


def averaged(call: str, out: str) -> list[Lowered]:
    """Every lowering of an average whose scale the author made a tenth of its input's."""
    model = parsed(AVERAGED.replace("AVERAGE", call).replace("OUT", out), opset=17)
    few = np.random.default_rng(0).random((2, 1, 2, 6, 6)) > 0.94
    return [made for _, made in every_lowering(model, [{"x": x.astype("f4") * 2} for x in few])]


def test_an_average_with_a_narrower_scale_than_its_input_is_not_cut_off_before() -> None:
    for made in averaged("AveragePool<kernel_shape = [3, 3], strides = [3, 3]>", "2,2"):
        assert parameters(made.integer, "x") == (0.02, 0)
        assert parameters(made.integer, "y") == (0.002, 0)
        assert made.integer_error() <= 0.05  # half of a step of 0.02 in averages of 0.2


def test_an_average_that_the_npu_wants_in_one_scale_changes_it_behind() -> None:
    for made in averaged("GlobalAveragePool", "1,1"):
        units = {op.unit for op in made.graph.operators}
        whole = quantize(
            made.graph,
            calibrate(made.graph, made.samples, threads=1),
            npu=units,
            demands=Demands(same_scale=frozenset(("MEAN",))),
        )
        assert parameters(whole, "y") == (0.002, 0)
        for op in whole.operators:
            if op.code == "MEAN":
                assert parameters(whole, op.inputs[0]) == (0.02, 0)
                assert parameters(whole, op.outputs[0]) == (0.02, 0)


def test_a_softmax_writes_its_own_scale_and_is_brought_to_the_stated_one() -> None:
    made = lowered(PROBABILITIES)
    softmax = next(op for op in made.integer.operators if op.code == "SOFTMAX")
    assert parameters(made.integer, softmax.outputs[0]) == (round(1 / 256, 6), -128)
    assert parameters(made.integer, "y") == (0.003, -128)
    assert made.integer_error() <= 0.02


def test_two_statements_about_one_value_are_both_kept() -> None:
    made = lowered(PASSED_ON)
    assert parameters(made.integer, "y") == (0.02, 0)
    assert parameters(made.integer, "z") == (0.04, 0)
    assert made.integer_error() <= 0.02  # halves round up to even, or away from zero


def test_the_report_counts_what_was_kept_and_what_had_to_change() -> None:
    made = lowered(TWO_SCALES)
    (text,) = kept_scales(made.graph, made.integer)
    assert "2 of 2 values keep the scale" in text and "1 change of scale" in text
    plain = lowered("(float[1,12] x) => (float[1,12] y) { y = Relu (x) }")
    assert list(kept_scales(plain.graph, plain.integer)) == []


def test_weights_become_the_integers_that_they_were() -> None:
    random = np.random.default_rng(0)
    integers = random.integers(-127, 128, (4, 50))
    integers[:, 0] = (127, -128, 90, 127)
    own = np.float32([0.01, 0.02, 0.03, 0.04])[:, None]
    for scales, exact in ((own, False), (np.float32([[0.007]]), True)):
        rows = (integers.astype(np.float32) * scales).astype(np.float64)
        found = lattice_scales(rows, np.ones(4))
        steps = rows / found[:, None]
        assert np.abs(steps - np.rint(steps)).max() < 1e-3
        assert np.abs(steps).max() <= 128.001
        if exact:
            assert np.allclose(found, 0.007)


NETWORK = """(float[1,3,12,12] x) => (float[1,4] y)
<float[4,3,3,3] w, float[4] b, float[4,4,1,1] v, float[4,4] m> {
  c = Conv<pads = [1, 1, 1, 1]> (x, w, b)
  r = Relu (c)
  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]> (r)
  d = Conv (p, v)
  s = Add (p, d)
  g = GlobalAveragePool (s)
  f = Flatten (g)
  y = MatMul (f, m)
}"""


@pytest.mark.parametrize(
    ("activations", "per_channel"),
    [(QuantType.QInt8, True), (QuantType.QUInt8, False)],
)
def test_what_onnx_runtime_quantized_keeps_every_scale(
    activations: QuantType, per_channel: bool, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    samples = [{"x": random.normal(size=(1, 3, 12, 12)).astype(np.float32)} for _ in range(3)]
    onnx.save(parsed(NETWORK, opset=17), tmp_path / "float.onnx")
    quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "qdq.onnx",
        Reader(samples),
        quant_format=QuantFormat.QDQ,
        activation_type=activations,
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
    )
    model = onnx.load(tmp_path / "qdq.onnx")
    made = next(m for _, m in every_lowering(model, samples))
    (text,) = kept_scales(made.graph, made.integer)
    stated = sum(op.code == "QUANTIZE" for op in made.graph.operators)
    assert stated >= 7 and f"{stated} of {stated} values keep the scale" in text
    assert made.integer_error() <= 0.03


class Reader(CalibrationDataReader):
    """Samples as ONNX Runtime's quantizer asks for them."""

    def __init__(self, samples: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._left = iter(samples)

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        return next(self._left, None)


def test_a_sum_far_finer_than_an_addend_that_was_always_zero_is_computed() -> None:
    """The kernel would end the process: it takes addends of up to 2^19 times the sum's step."""
    model = parsed(NOTHING_ADDED, opset=21)
    samples = [
        {"x": np.array([[-9e-8, -1e-9, 4e-8, 1e-7]], np.float32), "z": np.zeros((1, 4), np.float32)}
    ]
    lowered = next(made for _, made in every_lowering(model, samples))
    (added,) = (op for op in lowered.integer.operators if op.code == "ADD")
    steps = [lowered.integer.tensors[name].quantization for name in (*added.inputs, "y")]
    assert all(q is not None for q in steps)
    coarsest, out = max(q.scale[0] for q in steps if q), steps[-1]
    assert out is not None and out.scale[0] == np.float32(1e-9)
    assert coarsest < 2**19 * out.scale[0]
    assert lowered.integer_error() <= 1e-3


def test_a_scale_that_no_kernel_takes_is_not_kept() -> None:
    text = NOTHING_ADDED.replace("1.0e-9", "1.0e-31")
    model = parsed(text, opset=21)
    zeros = {"x": np.zeros((1, 4), np.float32), "z": np.zeros((1, 4), np.float32)}
    lowered = next(made for _, made in every_lowering(model, [zeros]))
    scales = [t.quantization.scale[0] for t in lowered.integer.tensors.values() if t.quantization]
    assert min(scales) > 1e-15 and lowered.integer_error() == 0.0
