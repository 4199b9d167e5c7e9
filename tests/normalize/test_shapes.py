"""Binding, folding and static shapes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from splitter.diagnostics import SplitterError
from splitter.normalize import normalize
from tests.normalize.support import as_model, model_of, ops, run_passes, same, weighted

DYNAMIC = "g (float[N,3,H,8] x, float[2,3] z) => (float[M] y) { y = Identity(x) }"


def refusal(body: str, shapes: dict[str, tuple[int, ...]]) -> str:
    with pytest.raises(SplitterError) as caught:
        normalize(as_model(model_of(body)), shapes=shapes)
    return str(caught.value)


def test_free_dimensions_are_named_with_their_axes() -> None:
    text = refusal(DYNAMIC, {})
    assert "x" in text and "axis 0 (N)" in text and "axis 2 (H)" in text
    assert "--shape x=1x3xHx8" in text
    assert "input z" not in text


def test_an_unknown_name_offers_the_nearest() -> None:
    assert "did you mean x" in refusal(DYNAMIC, {"xx": (1, 3, 4, 8)})


@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 3, 4), (1, 3, 0, 8)])
def test_a_shape_that_does_not_fit_the_file_is_refused(shape: tuple[int, ...]) -> None:
    assert "does not fit" in refusal(DYNAMIC, {"x": shape})


def test_an_output_without_elements_is_refused_by_name() -> None:
    text = refusal("""g (float[2,3] x) => (float[2,3] y, float[2,0] z) {
      y = Relu(x)
      start = Constant<value = int64[1] {0}>()
      axis = Constant<value = int64[1] {1}>()
      z = Slice(y, start, start, axis)
    }""", {})  # fmt: skip
    assert "z [2, 0]" in text and "--outputs" in text


@pytest.mark.parametrize("sizes", ["{2, 4, 0}", "{6, 0, 0}"])
def test_a_part_without_elements_that_nothing_reads_is_left_out(sizes: str) -> None:
    model = model_of(f"""g (float[2,6] x) => (float[2,n] y, float[2,6] z) <int64[3] s = {sizes}> {{
      a, b, c = Split <axis = 1> (x, s)
      y = Relu(a)
      d = Neg(b)
      z = Concat <axis = 1> (y, d)
    }}""".replace("[2,n]", f"[2,{sizes[1]}]"))  # fmt: skip
    made = normalize(as_model(model))
    assert "Split" not in ops(made.proto) or sizes == "{2, 4, 0}"
    same(model, made.proto)


def test_a_window_longer_than_what_it_slides_over_is_refused_by_name() -> None:
    text = refusal(
        """g (float[1,2,N] x) => (float[1,2,M] z) {
            y = AveragePool<kernel_shape=[5]>(x)
            z = Relu(y)
        }""",
        {"x": (1, 2, 3)},
    )
    assert "y [1, 2, -1]" in text and "--shape" in text


@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn", "complex64"])
def test_inputs_and_outputs_of_a_type_that_arrays_lack_are_refused(kind: str) -> None:
    text = refusal(f"g ({kind}[1,4] x) => ({kind}[1,4] y) {{ y = Identity(x) }}", {})
    assert f"x is {kind.upper()}, y is {kind.upper()}" in text and "float32" in text


def test_a_bound_shape_reaches_every_value() -> None:
    body = "g (float[N,6] x) => (float[A,B] y) { s = Shape(x) y0 = Reshape(x, s) y = Relu(y0) }"
    model = normalize(as_model(model_of(body)), shapes={"x": (5, 6)})
    assert model.inputs[0].shape == (5, 6) and model.outputs[0].shape == (5, 6)
    assert ops(model.proto) == {"Relu": 1}


def test_a_shape_that_depends_on_data_names_the_node() -> None:
    body = "g (float[4] x) => (float[K] y) { i = NonZero(x) y0 = Gather(x, i) y = Relu(y0) }"
    text = refusal(body, {})
    assert "NonZero" in text and "Gather" not in text


def test_a_chain_of_shape_arithmetic_becomes_constants() -> None:
    body = """g (float[2,3,4] x) => (float[6,4] y) {
      s = Shape(x)
      zero = Constant<value = int64 {0}>()
      one = Constant<value = int64 {1}>()
      a = Gather(s, zero)
      b = Gather(s, one)
      n = Mul(a, b)
      axes = Constant<value = int64[1] {0}>()
      n1 = Unsqueeze(n, axes)
      rest = Constant<value = int64[1] {-1}>()
      target = Concat<axis = 0>(n1, rest)
      y = Reshape(x, target)
    }"""
    before = model_of(body)
    after = run_passes(before)
    assert ops(after) == {"Reshape": 1} and same(before, after)


def test_what_would_grow_too_much_stays_an_operator() -> None:
    body = """g (float[1,1,2048] x) => (float[1,2048,2048] y) {
      one = Constant<value = float[1,1,1] {1.5}>()
      shape = Constant<value = int64[3] {1,2048,2048}>()
      big = Expand(one, shape)
      y = Add(big, x)
    }"""
    before = model_of(body)
    after = run_passes(before)
    assert ops(after) == {"Expand": 1, "Add": 1} and same(before, after)


IF = """g (float[2,2] x) => (float[2,2] y) {
  c = Constant<value = bool {%d}>()
  y = If (c) <
    then_branch = a () => (float[2,2] t) { t0 = Relu(x) t = Neg(t0) },
    else_branch = b () => (float[2,2] e) { e = Sigmoid(x) }
  >
}"""


@pytest.mark.parametrize(("condition", "left"), [(1, {"Relu": 1, "Neg": 1}), (0, {"Sigmoid": 1})])
def test_an_if_with_a_constant_condition_is_its_branch(
    condition: int, left: dict[str, int]
) -> None:
    before = model_of(IF % condition)
    after = run_passes(before)
    assert ops(after) == left and same(before, after)


def test_names_of_the_original_nodes_travel_with_the_fused_ones() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }")
    model.graph.node[0].name = "first"
    after = run_passes(model)
    sources = [{p.key: p.value for p in node.metadata_props} for node in after.graph.node]
    assert [s["splitter.sources"] for s in sources] == ["first", "Neg_y"]


def test_the_given_model_is_not_changed() -> None:
    model = model_of("g (float[2,3] x) => (float[2,3] y) { a = Mul(x, x) y = Sqrt(a) }")
    before = model.SerializeToString()
    normalize(as_model(model))
    assert model.SerializeToString() == before


def test_the_same_model_gives_the_same_bytes() -> None:
    body = "g (float[2,3] x) => (float[2,3] y) { a = Mul(x, x) b = Sqrt(a) y = Add(b, x) }"
    first, second = (normalize(as_model(model_of(body))).proto for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()


@pytest.mark.parametrize(("kind", "expected"), [(np.float32, {"Cast": 1}), (np.int64, {"Cast": 1})])
def test_casts_that_change_the_type_stay(kind: type, expected: dict[str, int]) -> None:
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model = model_of(f"g (bool[2] x) => ({'float' if kind is np.float32 else 'int64'}[2] y) "
                     f"{{ y = Cast<to = {to}>(x) }}")  # fmt: skip
    assert ops(normalize(as_model(model)).proto) == expected


def test_a_constant_output_is_kept() -> None:
    body = """g (float[2] x) => (float[2] y, float[1] z) {
      y = Relu(x) z = Constant<value = float[1] {3.0}>()
    }"""
    before = model_of(body)
    after = normalize(as_model(before)).proto
    assert same(before, after)
    held = {t.name: numpy_helper.to_array(t).tolist() for t in after.graph.initializer}
    assert [3.0] in held.values()


DETECTOR = """g (float[1,3,8,8] image) => (float[K,4] found, float[1] mean) {
  features = Conv(image, w)
  flat = Constant<value = int64[2] {-1, 4}>()
  boxes = Reshape(features, flat)
  last = Constant<value = int64[1] {1}>()
  scores = ReduceMax<keepdims = 0>(boxes, last)
  limit = Constant<value = float {0.5}>()
  over = Greater(scores, limit)
  places = NonZero(over)
  rows = Transpose<perm = [1, 0]>(places)
  found = GatherND(boxes, rows)
  all = Constant<value = int64[2] {0, 1}>()
  mean = ReduceMean<keepdims = 0>(boxes, all)
}"""


def test_a_tail_of_unknown_size_comes_with_values_to_end_at_before_it() -> None:
    body = DETECTOR.replace("float[1] mean", "float mean")
    body = body.replace(
        "found = GatherND(boxes, rows)",
        """picked = GatherND(boxes, rows)
      found = Einsum<equation = "ij,ik->jk">(picked, picked)""",
    )
    model = weighted(body, {"w": (4, 3, 3, 3)}, opset=18)
    with pytest.raises(SplitterError) as caught:
        normalize(as_model(model))
    assert "NonZero NonZero_places" in caught.value.what
    assert "Einsum_found mixes rows that may be missing" in caught.value.what
    assert "--outputs boxes,mean ends the model before them" in caught.value.hint
