"""Attention masks and padding by -inf do not take the range of what they mask."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.quantize.ranges import range_of
from tests.ops.lowered import every_lowering, parsed

ADDED = """(float[1,2,6,6] x, float[1,1,1,6] allowed) => (float[1,2,6,6] y) {
  one = Constant<value = float {1.0}>()
  far = Constant<value = float {%s}>()
  left = Sub (one, allowed)
  mask = Mul (left, far)
  scores = Add (x, mask)
  y = Softmax<axis = -1> (scores)
}"""
CAUSAL = """(float[1,2,3,3] x) => (float[1,2,3,3] y) {
  mask = Constant<value = float[3,3] {0.0, %s, %s, 0.0, 0.0, %s, 0.0, 0.0, 0.0}>()
  scores = Add (x, mask)
  y = Softmax<axis = -1> (scores)
}"""
PADDED = """(float[1,1,4,6] x) => (float[1,1,4,8] y) {
  pads = Constant<value = int64[8] {0, 0, 0, 1, 0, 0, 0, 1}>()
  far = Constant<value = float {%s}>()
  wide = Pad (x, pads, far)
  y = Softmax<axis = -1> (wide)
}"""


def error(body: str, sample: dict[str, np.ndarray]) -> float:
    """Of the preferred lowering, in integers."""
    (_, lowered), *_ = every_lowering(parsed(body, opset=17), [sample])
    return lowered.integer_error()


def scores(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("far", ["-3.4028235e38", "-1e9", "-10000.0"])
def test_an_additive_mask_computed_from_an_input(far: str) -> None:
    allowed = np.array([1, 1, 0, 1, 1, 0], np.float32).reshape(1, 1, 1, 6)
    assert error(ADDED % far, {"x": scores(1, 2, 6, 6), "allowed": allowed}) <= 0.05


@pytest.mark.parametrize("far", ["-3.4028235e38", "-1e9", "-10000.0"])
def test_a_constant_causal_mask(far: str) -> None:
    assert error(CAUSAL % ((far,) * 3), {"x": scores(1, 2, 3, 3)}) <= 0.05


@pytest.mark.parametrize("far", ["-3.4028235e38", "-1e9"])
def test_padding_in_front_of_a_softmax(far: str) -> None:
    assert error(PADDED % far, {"x": scores(1, 1, 4, 6)}) <= 0.05


def test_a_value_that_is_read_as_a_number_keeps_its_range() -> None:
    body = "(float[1,8] x) => (float[1,8] y) { y = Relu (x) }"
    x = np.array([[-50000, 1, 2, 3, 4, 5, 6, 50000]], np.float32)
    assert error(body, {"x": x}) <= 0.01


def test_infinities_and_holes_are_no_part_of_a_range() -> None:
    entry = range_of(np.array([-np.inf, -2, np.nan, 3, np.inf], np.float32))
    assert (entry.low, entry.high, entry.masked) == (-2, 3, True)


def test_the_end_of_a_continuous_range_is_no_mask() -> None:
    array = np.linspace(-40000, 100, 500, dtype=np.float32)
    assert range_of(array, maskable=True).low == -40000
