"""Sums over an axis of length 2 become sums of two values where a root or logarithm reads them."""

from __future__ import annotations

import pytest

from splitter.normalize.arithmetic import simplify_arithmetic
from splitter.normalize.pairs import split_pairs
from tests.normalize.support import model_of, ops, run_passes, same

BODY = """g (float[3,4,{length}] x) => (float[3,4] y) {{
  axes = Constant<value = int64[1] {{2}}>()
  two = Constant<value = float {{2.0}}>()
  square = Pow (x, two)
  total = ReduceSum<keepdims = 0> (square, axes)
  y = {last} (total)
}}"""
NORM = "g (float[3,2,4] x) => (float[3,1,4] y) { y = ReduceL2<axes = [1]> (x) }"


@pytest.mark.parametrize(
    "body",
    [BODY.format(length=2, last="Sqrt"), BODY.format(length=2, last="Log"), NORM],
    ids=["root", "logarithm", "norm"],
)
def test_two_halves_are_squared_and_added(body: str) -> None:
    model = model_of(body)
    made = run_passes(model, simplify_arithmetic, split_pairs)
    found = ops(made)
    assert found["Slice"] == 2 and found["Add"] == 1
    assert not {"ReduceSum", "ReduceL2"} & set(found)
    assert same(model, made)


@pytest.mark.parametrize(
    "body",
    [BODY.format(length=3, last="Sqrt"), BODY.format(length=2, last="Relu")],
    ids=["three", "nothing steep"],
)
def test_other_sums_stay(body: str) -> None:
    assert "Slice" not in ops(run_passes(model_of(body), simplify_arithmetic, split_pairs))
