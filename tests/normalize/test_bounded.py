"""Rows of which data decides how many there are, through whole graphs: the float TFLite form gives
ONNX Runtime's rows, shapes and order, for many rows, for few and for none."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.diagnostics import Unsupported
from splitter.graph import Array
from splitter.normalize import normalize
from splitter.reference import run_onnx
from splitter.tflite.runtime import Interpreter
from splitter.tflite.write import write
from tests.normalize.support import as_model, model_of
from tests.ops.lowered import first_lowerings, graph_of, parsed

LIMITS = (0.0, 0.5, 0.9, 2.0)
"""Of scores in 0..1: all rows, some, few, none."""

OVER = """over = Greater(s, limit) places = NonZero(over)"""
PICKED = f"""{OVER} turned = Transpose<perm = [1, 0]>(places)
  some = GatherND(s, turned) boxes = GatherND(b, turned)"""
CONSTANTS = """<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
  int64[1] minus = {-1}, int64[1] all = {100}, int64[2] column = {-1, 1}, int64 first = {0},
  int64[2] flat = {-1, 4}, float half = {0.5}, float[1] iou = {0.5}, int64[1] most = {4},
  int64[1] five = {5}, int64 nine = {9}>"""

KEPT = f"""{PICKED} b3 = Unsqueeze(boxes, zero) s2 = Unsqueeze(some, zero) s3 = Unsqueeze(s2, zero)
  picks = NonMaxSuppression(b3, s3, all, iou) c = Gather<axis = 1>(picks, two)
  keep = Squeeze(c, one)"""
LENGTH = f"{PICKED} shape = Shape(some) n = Gather<axis = 0>(shape, first)"

CASES = {
    "rows calculated with": ("float[K,4] y, float[K] t", f"""{PICKED} y0 = Mul(boxes, half)
      y = Sqrt(y0) t = Sigmoid(some)"""),
    "the places themselves, which another axis has first": (
        "int64[K,1] y", f"{OVER} y = Transpose<perm = [1, 0]>(places)"),
    "how many there are": ("int64 n, int64[2] m, int64 z", f"""{LENGTH}
      m = Shape(boxes) z = Size(boxes)"""),
    "the best of them": ("float[K] y, float[K,4] t, int64[K] i", f"""{LENGTH}
      n1 = Unsqueeze(n, zero) both = Concat<axis = 0>(three, n1)
      k0 = ReduceMin<keepdims = 0>(both) k = Reshape(k0, one)
      y, i = TopK(some, k) t = Gather(boxes, i)"""),
    "the first of them": ("float[K,4] y", f"{PICKED} y = Slice(boxes, zero, three, zero)"),
    "those from the second on": ("float[K,4] y", f"{PICKED} y = Slice(boxes, one, all, zero)"),
    "every one and a fixed one, joined": ("float[K,4] y, float[K,5] t", f"""{PICKED}
      y = Concat<axis = 0>(boxes, b, boxes) s2 = Unsqueeze(some, one)
      t = Concat<axis = 1>(boxes, s2)"""),
    "sums and the largest over them": ("float[1,4] y, float[K] t, float[K,4] u", f"""{PICKED}
      y = ReduceSum(boxes, zero) t = ReduceMax<keepdims = 0>(boxes, one)
      sums = CumSum(boxes, first) u = Neg(sums)"""),
    "made flat": ("float[K] y, float[K,2,2] t", f"""{PICKED} y = Reshape(boxes, minus)
      pair = Constant<value = int64[3] {{-1, 2, 2}}>() t = Reshape(boxes, pair)"""),
    "numbered from 0": ("int64[K] y", f"""{LENGTH} step = Constant<value = int64 {{1}}>()
      y0 = Range(first, n, step) y = Add(y0, one)"""),
    "filled": ("float[K] y, float[K,4] t", f"""{LENGTH} y0 = ConstantOfShape(shape)
      y = Add(y0, half) four = Constant<value = int64[1] {{4}}>()
      n1 = Unsqueeze(n, zero) target = Concat<axis = 0>(n1, four)
      wide = Unsqueeze(some, one) t = Expand(wide, target)"""),
    "selected once more": ("float[K] y, float[K,4] t", f"""{PICKED} low = ReduceMin<keepdims = 0>(b)
      more = Greater(some, half) again = NonZero(more) i = Squeeze(again, zero)
      y = Gather(some, i) t = Gather(boxes, i)"""),
    "their numbers": ("int64[K] y", f"""{PICKED} more = Greater(some, half) again = NonZero(more)
      y = Squeeze(again, zero)"""),
    "compressed": ("float[K,4] y", "over = Greater(s, limit) y = Compress<axis = 0>(b, over)"),
    "suppressed": ("float[K,4] y, float[K] t, int64[K] i", f"""{KEPT} y = Gather(boxes, keep)
      t = Gather(some, keep) i = Identity(keep)"""),
    "suppressed and the first kept": ("float[K,4] y", f"""{KEPT}
      first3 = Slice(keep, zero, three, zero) y = Gather(boxes, first3)"""),
    "suppressed and joined": ("float[K,5] y", f"""{KEPT} y0 = Gather(boxes, keep)
      t0 = Gather(some, keep) t = Reshape(t0, column) y = Concat<axis = 1>(y0, t)"""),
    "suppressed and padded": ("float[9,4] y", f"""{KEPT} y0 = Gather(boxes, keep)
      rows = Shape(y0) r = Gather<axis = 0>(rows, first) left = Sub(nine, r)
      l1 = Unsqueeze(left, zero) pads = Concat<axis = 0>(zero, zero, l1, zero)
      y = Pad(y0, pads)"""),
    "suppressed where there are any": ("float[K,4] y", f"""{PICKED}
      shape = Shape(boxes) size = ReduceProd<keepdims = 0>(shape) none = Equal(size, first)
      keep = If(none)<
        then_branch = p () => (int64[a] u) {{ u = Constant<value = int64[0] {{}}>() }},
        else_branch = q () => (int64[c] v) {{
          b3 = Unsqueeze(boxes, zero) s2 = Unsqueeze(some, zero) s3 = Unsqueeze(s2, zero)
          picks = NonMaxSuppression(b3, s3, all, iou) w = Gather<axis = 1>(picks, two)
          v = Squeeze(w, one) }}>
      y = Gather(boxes, keep)"""),
}  # fmt: skip


def graph(outputs: str, body: str) -> str:
    return f"(float[9,4] b, float[9] s, float limit) => ({outputs}) {CONSTANTS} {{ {body} }}"


def sample(seed: int, limit: float) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    start, size = random.uniform(0, 6, (9, 2)), random.uniform(1, 5, (9, 2))
    boxes = np.concatenate([start, start + size], axis=1).astype(np.float32)
    scores = random.uniform(0, 1, 9).astype(np.float32)
    return {"b": boxes, "s": scores, "limit": np.asarray(limit, np.float32)}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_onnx_runtime(name: str) -> None:
    model = parsed(graph(*CASES[name]), opset=18)
    interpreter = Interpreter(write(first_lowerings(graph_of(model))))
    for seed, limit in enumerate(LIMITS):
        feeds = sample(seed, limit)
        made = interpreter.run({n: feeds[n] for n in interpreter.inputs})
        for out, wanted in run_onnx(model, feeds, optimize=False).items():
            assert made[out].shape == wanted.shape, f"{out} at {limit}"
            np.testing.assert_allclose(made[out], wanted, rtol=1e-6, atol=1e-6)


REFUSED = {
    "rows of rows": (
        f'{PICKED} y = Einsum<equation = "ij,kj->ik">(boxes, boxes)', "Einsum_y mixes"),
    "their mean": (f"{PICKED} y = ReduceMean(boxes, zero)", "ReduceMean_y is over rows"),
    "of two kinds": (f"""{PICKED} low = Less(s, half) p = NonZero(low) i = Squeeze(p, zero)
      t = Gather(s, i) y = Add(t, some)""", "missing independently"),
    "the last one": (f"{PICKED} y = Slice(boxes, minus, all, zero)", "from their end"),
    "beside fixed ones": (f"{PICKED} y = Mul(boxes, b)", "joins b to rows"),
    "an If that asks for many": (f"""{PICKED} shape = Shape(some) n = Squeeze(shape, zero)
      many = Greater(n, nine)
      y = If(many)<then_branch = p () => (float[a] u) {{ u = Constant<value = float[0] {{}}>() }},
        else_branch = q () => (float[c] v) {{ v = Neg(some) }}>""", "something else than rows"),
}  # fmt: skip


def test_more_picks_than_are_written_out_are_refused_with_the_numbers_and_what_helps() -> None:
    text = """g (float[1,9000,4] b, float[1,90,9000] s) => (int64[K,3] y)
      <int64[1] most = {200}, float[1] iou = {0.5}> { y = NonMaxSuppression(b, s, most, iou) }"""
    with pytest.raises(Unsupported) as caught:
        normalize(as_model(model_of(text, opset=18)))
    assert "200 picks from 9000 boxes in 90 classes" in caught.value.what
    assert "NonMaxSuppression_y" in caught.value.what
    assert "--cpu-runtime onnxruntime" in caught.value.hint


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_rows_is_refused_with_the_node_that_decides_and_the_one_that_mixes(
    name: str,
) -> None:
    body, words = REFUSED[name]
    text = "g " + graph("float[K] y", body)
    with pytest.raises(Unsupported) as caught:
        normalize(as_model(model_of(text, opset=18)))
    assert "NonZero" in caught.value.what and words in caught.value.what
