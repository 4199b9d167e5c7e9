"""Reshapes between operators: they meet, or they stay; operators of rank 5 become rank 4."""

from __future__ import annotations

import onnx
import pytest

from splitter.normalize.noops import remove_noops
from splitter.normalize.ranks import lower_ranks
from splitter.normalize.reshapes import move_reshapes
from tests.normalize.support import model_of, ops, run_passes, same, weighted


def shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Shape of every computed value."""
    return {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*model.graph.value_info, *model.graph.output)
    }


WINDOWS = """g (float[4,3,6] x) => (float[1,12,2,3] y, float[1,12,3,2] z)
<int64[3] join = {1, 12, 6}, int64[4] heads = {1, 12, 2, 3}, int64[4] pairs = {1, 12, 3, 2}> {
  r = Reshape(x, join) n = LayerNormalization<axis = 2>(r, s, b)
  q = MatMul(n, w) q1 = Add(b, q) g = Gelu(q1) y = Reshape(g, heads)
  k = MatMul(n, w) k1 = Relu(k) z = Reshape(k1, pairs) }"""


def test_a_reshape_sinks_through_operators_of_the_last_axis() -> None:
    before = weighted(WINDOWS, {"s": (6,), "b": (6,), "w": (6, 6)}, opset=20)
    after = run_passes(before, move_reshapes)
    assert ops(after)["Reshape"] == 2 and same(before, after, tolerance=1e-5)


def test_a_reshape_stays_when_one_path_ends_otherwise() -> None:
    body = WINDOWS.replace(
        "z = Reshape(k1, pairs)", "z1 = Reshape(x, pairs) k2 = Reshape(k1, pairs) z = Add(z1, k2)"
    ).replace("k1 = Relu(k)", "k1 = Softmax<axis = 1>(k)")
    before = weighted(body, {"s": (6,), "b": (6,), "w": (6, 6)}, opset=20)
    after = run_passes(before, move_reshapes)
    assert ops(after)["Reshape"] == 4 and same(before, after, tolerance=1e-5)


def test_a_reshape_goes_up_to_the_one_before_the_operators() -> None:
    body = """g (float[1,12,2,3] x, float[4,3,6] skip) => (float[4,3,6] y)
    <int64[3] join = {1, 12, 6}, int64[3] apart = {4, 3, 6}> {
      r = Reshape(x, join) m = MatMul(r, w) a = Add(m, b) t = Reshape(a, apart)
      y = Add(t, skip) }"""
    before = weighted(body, {"b": (6,), "w": (6, 6)})
    after = run_passes(before, move_reshapes)
    assert ops(after) == {"Reshape": 1, "MatMul": 1, "Add": 2} and same(before, after)
    assert shapes(after)["t"] == [4, 3, 6]


@pytest.mark.parametrize(
    "middle",
    ["m = Softmax<axis = 1>(r)", "m = Add(r, c)", "m = ReduceSum<keepdims = 1>(r, last)"],
)
def test_an_operator_that_looks_at_other_axes_stops_a_reshape(middle: str) -> None:
    body = f"""g (float[4,3,6] x) => (float[A,B,C] y)
    <int64[3] join = {{1, 12, 6}}, int64[3] flat = {{2, 6, -1}}, int64[1] last = {{2}}> {{
      r = Reshape(x, join) {middle} y = Reshape(m, flat) }}"""
    before = weighted(body, {"c": (12, 6)})
    after = run_passes(before, move_reshapes)
    assert ops(after)["Reshape"] == 2 and same(before, after)


RANK_5 = """g (float[1,4,3,2,2] x, float[1,4,1,1,4] box) => (float[1,3,4,2,2] y)
<int64[5] twice = {1, 1, 1, 2, 1}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4},
 int64[1] last = {-1}, float half = {0.5}> {
  t = Tile(box, twice) c = Slice(t, zero, two, last) w = Slice(t, two, four, last)
  m = Mul(x, w) h = Mul(m, half) a = Add(c, h) s = Sub(a, c5)
  y = Transpose<perm = [0, 2, 1, 3, 4]>(s) }"""


def test_operators_of_rank_five_with_a_batch_of_one_get_rank_four() -> None:
    before = weighted(RANK_5, {"c5": (1, 1, 1, 2, 2)})
    after = run_passes(before, remove_noops, lower_ranks, remove_noops)
    assert same(before, after)
    known = shapes(after)
    for node in after.graph.node:
        if node.op_type not in ("Reshape", "Transpose"):
            assert len(known[node.output[0]]) == 4, node


def test_operators_of_rank_five_without_axes_of_one_stay() -> None:
    before = model_of("g (float[2,3,2,3,2] x) => (float[2,3,2,3,2] y) { y = Relu(x) }")
    after = run_passes(before, lower_ranks)
    assert ops(after) == {"Relu": 1}


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_concat_and_softmax_of_rank_six_keep_their_axis(axis: int) -> None:
    body = f"""g (float[1,2,3,1,2,3] x) => (float[A,B,C,D,E,F] y) {{
      c = Concat<axis = {axis}>(x, x) y = Softmax<axis = {axis}>(c) }}"""
    before = model_of(body)
    after = run_passes(before, lower_ranks, remove_noops)
    assert same(before, after)
