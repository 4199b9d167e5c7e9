"""Means, variances and softmaxes as JAX and TensorFlow write them."""

from __future__ import annotations

import pytest

from splitter.normalize import normalize
from tests.normalize.support import as_model, model_of, ops, same

FLAX = """g (float[2,5,8] x) => (float[2,5,8] y) <float[1,1,8] s, float[1,1,8] b> {{
  axes = Constant<value = int64[1] {{{axis}}}>()
  zero = Constant<value = float {{0.0}}>()
  eps = Constant<value = float {{1e-6}}>()
  count = Constant<value = float {{{count}}}>()
  total = ReduceSum<keepdims = 0> (x, axes)
  mean = Div (total, count)
  square = Mul (x, x)
  squares = ReduceSum<keepdims = 0> (square, axes)
  second = Div (squares, count)
  first = Mul (mean, mean)
  difference = Sub (second, first)
  variance = Max (difference, zero)
  kept = Constant<value = int64[3] {{{kept}}}>()
  m = Reshape (mean, kept)
  v = Reshape (variance, kept)
  apart = Sub (x, m)
  safe = Add (v, eps)
  root = Sqrt (safe)
  inverse = Reciprocal (root)
  scaled = Mul (inverse, s)
  z = Mul (apart, scaled)
  y = Add (z, b)
}}"""
SOFTMAX = """g (float[2,5,8] x) => (float[2,5,8] y) {{
  axes = Constant<value = int64[1] {{2}}>()
  low = Constant<value = float {{-3.4e38}}>()
  top = ReduceMax<axes = [2], keepdims = {keep}> (x)
  most = Max (low, top)
  kept = Constant<value = int64[3] {{2,5,1}}>()
  m = Reshape (most, kept)
  z = Sub (x, m)
  e = Exp (z)
  t = ReduceSum<keepdims = {keep}> (e, axes)
  s = Reshape (t, kept)
  y = Div (e, s)
}}"""
UNSHIFTED = """g (float[2,5] x) => (float[2,5] y) {
  axes = Constant<value = int64[1] {1}>()
  e = Exp (x) t = ReduceSum (e, axes) y = Div (e, t)
}"""
OTHER_AXIS = """g (float[4,4] x) => (float[4,4] y) {
  axes = Constant<value = int64[1] {1}>()
  k = Constant<value = float[1,4] {0.0, 1.0, 2.0, 3.0}>()
  z = Sub (x, k) e = Exp (z) t = ReduceSum (e, axes) y = Div (e, t)
}"""


@pytest.mark.parametrize(("axis", "count", "kept"), [(2, "8.0", "2,5,1"), (1, "5.0", "2,1,8")])
def test_a_variance_of_squares_is_that_of_a_layer_norm(axis: int, count: str, kept: str) -> None:
    before = model_of(FLAX.format(axis=axis, count=count, kept=kept))
    after = normalize(as_model(before)).proto
    assert ops(after)["LayerNormalization"] == 1
    assert not {"ReduceMean", "ReduceSum", "Sqrt", "Relu", "Max"} & set(ops(after))
    assert same(before, after, tolerance=1e-5)


def test_the_variance_alone_is_taken_around_the_mean() -> None:
    before = model_of("""g (float[2,50] x) => (float[2] y) {
      m = ReduceMean<axes = [1], keepdims = 0> (x)
      s = Mul (x, x)
      q = ReduceMean<axes = [1], keepdims = 0> (s)
      p = Mul (m, m)
      y = Sub (q, p)
    }""")
    after = normalize(as_model(before)).proto
    assert ops(after)["ReduceMean"] == 2 and ops(after)["Sub"] == 1
    assert same(before, after, tolerance=1e-5)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_softmax_in_pieces_is_one(keep: int) -> None:
    before = model_of(SOFTMAX.format(keep=keep))
    after = normalize(as_model(before)).proto
    assert ops(after) == {"Softmax": 1} and same(before, after)


def test_a_softmax_without_a_maximum_is_one() -> None:
    before = model_of(UNSHIFTED)
    after = normalize(as_model(before)).proto
    assert ops(after) == {"Softmax": 1} and same(before, after)


def test_a_shift_that_differs_along_the_axis_stays() -> None:
    before = model_of(OTHER_AXIS)
    after = normalize(as_model(before)).proto
    assert ops(after)["Softmax"] == 1 and ops(after).get("Add", 0) + ops(after).get("Sub", 0) == 1
    assert same(before, after)


def test_a_constant_of_infinities_is_no_list_of_axes() -> None:
    model = model_of("""g (float[2,3] x, bool[2,3] hidden) => (float[2,3] y) {
      low = Constant<value = float[1] {-inf}>()
      masked = Where(hidden, low, x)
      y = Softmax<axis = -1>(masked)
    }""")
    assert ops(normalize(as_model(model)).proto) == {"Where": 1, "Softmax": 1}
