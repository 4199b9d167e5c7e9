"""Functions of two tensors in int8: one look-up for the whole, exact to its own rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.lowered import Lowered, every_lowering, graph_of, parsed

SPECTRUM = """(float[1,4,40] x, float[1,4,40] z) => (float[1,4,40] y) {
  a = Mul (x, x)
  b = Mul (z, z)
  total = Add (a, b)
  y = Sqrt (total)
}"""
MOVED = """(float[1,4,40] x, float[1,4,40] z) => (float[1,30,4] y) {
  two = Constant<value = float {2.0}>()
  a = Pow (x, two)
  b = Pow (z, two)
  total = Add (a, b)
  turned = Transpose<perm = [0, 2, 1]> (total)
  start = Constant<value = int64[1] {0}>()
  end = Constant<value = int64[1] {30}>()
  axis = Constant<value = int64[1] {1}>()
  low = Slice (turned, start, end, axis)
  y = Sqrt (low)
}"""
POWER = "(float[3,40] x, float[3,40] z) => (float[3,40] y) { y = Pow (x, z) }"
ROW_POWER = "(float[3,40] x, float[3,1] z) => (float[3,40] y) { y = Pow (x, z) }"


def pair(body: str, *, small: float = 1.0, low: float = -3.0) -> Lowered:
    """Two samples of z, drawn over several powers of ten down to `small`, and of x, as large."""
    model, random = parsed(body, opset=17), np.random.default_rng(0)
    samples = []
    for _ in range(2):
        shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]
        size = np.exp(random.uniform(np.log(small), 0, shapes[1]))
        x = random.uniform(low, 3, shapes[0]) * size
        samples.append({"x": x.astype(np.float32), "z": size.astype(np.float32)})
    (_, made), *_ = every_lowering(model, samples)
    return made


@pytest.mark.parametrize("body", [SPECTRUM, MOVED], ids=["alone", "behind moves"])
def test_the_length_of_a_pair_keeps_its_small_values(body: str) -> None:
    made = pair(body, small=1e-3)
    assert made.float_error() <= 1e-6
    assert made.integer_error() <= 0.01
    codes = [op.code for op in made.integer.operators]
    assert codes.count("GATHER") == 1 and "SQRT" not in codes


@pytest.mark.parametrize("body", [POWER, ROW_POWER], ids=["elements", "rows"])
def test_a_power_of_two_variables(body: str) -> None:
    assert pair(body, low=0.3, small=0.3).integer_error() <= 0.02


def test_a_root_that_something_else_needs_the_squares_of_stays_apart() -> None:
    body = SPECTRUM.replace("(float[1,4,40] y)", "(float[1,4,40] y, float[1,4,40] a)")
    units = [unit.op for unit in graph_of(parsed(body, opset=17)).units]
    assert "Magnitude" not in units and "Sqrt" in units
