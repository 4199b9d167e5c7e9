"""Matrix products whose columns are read apart become products of their own."""

from __future__ import annotations

import pytest

from splitter.normalize.products import split_products
from tests.normalize.support import model_of, ops, run_passes, same

LINEAR_ATTENTION = """g (float[1,2,9,4] q, float[1,2,9,4] k, float[1,2,9,5] v) => (float[1,2,9,5] y)
<int64[8] pads = {0, 0, 0, 0, 0, 0, 0, 1}, float one = {1},
 int64[1] none = {0}, int64[1] five = {5}, int64[1] six = {6}, int64[1] last = {3}> {
  vp = Pad(v, pads, one)
  kt = Transpose<perm = [0, 1, 3, 2]>(k)
  kv = MatMul(kt, vp)
  qkv = MatMul(q, kv)
  n = Slice(qkv, none, five, last)
  d = Slice(qkv, five, six, last)
  y = Div(n, d) }"""
JOINED = """g (float[2,3,4] a, float[2,4,5] b, float[2,4,2] c) => (float[2,3,5] y, float[2,3,2] z)
<int64[1] none = {0}, int64[1] five = {5}, int64[1] seven = {7}, int64[1] last = {-1}> {
  bc = Concat<axis = -1>(b, c)
  m = MatMul(a, bc)
  y = Slice(m, none, five, last)
  z = Slice(m, five, seven, last) }"""


def test_the_weights_sums_of_linear_attention_become_a_product_of_their_own() -> None:
    before = model_of(LINEAR_ATTENTION)
    after = run_passes(before, split_products)
    assert ops(after) == {"Transpose": 1, "MatMul": 4, "Div": 1}
    assert same(before, after, tolerance=1e-5)


def test_operands_that_were_joined_for_one_product_are_multiplied_apart() -> None:
    before = model_of(JOINED)
    after = run_passes(before, split_products)
    assert ops(after) == {"MatMul": 2}
    assert same(before, after, tolerance=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n = Slice(qkv, none", "t = Tanh(qkv) n = Slice(t, none"),
        ("one = {1},", "one = {1}, int64[1] four = {4},"),
        ("{0, 0, 0, 0, 0, 0, 0, 1}", "{0, 0, 0, 1, 0, 0, 0, 0}"),
        ("Pad(v, pads, one)", 'Pad<mode = "edge">(v, pads)'),
    ],
    ids=["read whole too", "cut elsewhere", "padded before", "padded by edges"],
)
def test_a_product_stays_whole_where_its_pieces_are_not_read_apart(old: str, new: str) -> None:
    body = LINEAR_ATTENTION.replace(old, new)
    if "four" in new:
        body = body.replace("none, five", "none, four").replace("2,9,5] y", "2,9,4] y")
    before = model_of(body)
    after = run_passes(before, split_products)
    assert ops(after)["MatMul"] == 2
    assert same(before, after, tolerance=1e-5)
