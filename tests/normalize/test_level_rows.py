"""Rows of linear attention's query are divided by their largest entry; the quotient is the same."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.normalize.level_rows import level_rows
from tests.normalize.support import model_of, ops, run_passes, same
from tests.ops.lowered import every_lowering, parsed

ROWS = """(float[1,2,40,4] q, float[1,2,40,4] k, float[1,2,40,5] v) => (float[1,2,40,5] y) {
  tiny = Constant<value = float {1e-7}>()
  axes = Constant<value = int64[1] {2}>()
  rq = Relu (q)
  rk = Relu (k)
  kt = Transpose<perm = [0, 1, 3, 2]> (rk)
  kv = MatMul (kt, v)
  n = MatMul (rq, kv)
  sums = ReduceSum<keepdims = 1> (rk, axes)
  ks = Transpose<perm = [0, 1, 3, 2]> (sums)
  d = MatMul (rq, ks)
  dt = Add (d, tiny)
  y = Div (n, dt)
}"""
COLUMNS = """g (float[2,4,9] q, float[2,5,4] kv, float[2,1,4] ks) => (float[2,5,9] y) {
  rq = Relu (q)
  n = MatMul (kv, rq)
  d = MatMul (ks, rq)
  y = Div (n, d)
}"""


@pytest.mark.parametrize("body", [f"g {ROWS}", COLUMNS], ids=["rows", "columns"])
def test_both_products_read_the_leveled_rows(body: str) -> None:
    before = model_of(body)
    after = run_passes(before, level_rows)
    assert ops(after)["Div"] == 2 and ops(after)["ReduceMax"] == 1
    assert same(before, after, tolerance=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [("rq = Relu (q)", "rq = Tanh (q)"), ("d = MatMul (ks, rq)", "d = MatMul (ks, q)")],
    ids=["rows with a sign", "two factors"],
)
def test_other_quotients_stay(old: str, new: str) -> None:
    before = model_of(COLUMNS.replace(old, new))
    assert ops(run_passes(before, level_rows))["Div"] == 1


def test_small_rows_keep_their_values_in_int8() -> None:
    """Rows of 1/50 of the largest, and rows of zeros, which divide 0 by next to nothing."""
    random = np.random.default_rng(0)
    size = np.exp(random.uniform(np.log(0.02), 0, (1, 2, 40, 1)))
    size[:, :, :3] = 0
    sample = {
        "q": random.normal(0, 1, (1, 2, 40, 4)) * size,
        "k": random.normal(0, 1, (1, 2, 40, 4)),
        "v": random.normal(0, 1, (1, 2, 40, 5)),
    }
    arrays = {name: array.astype(np.float32) for name, array in sample.items()}
    (_, made), *_ = every_lowering(parsed(ROWS, opset=17), [arrays])
    assert made.float_error() <= 1e-4
    assert made.integer_error() <= 0.25
