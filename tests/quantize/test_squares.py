"""Functions of the sum of two squares in 16 bits: over five decades, exact to the look-up."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.tflite.runtime import Interpreter
from splitter.tflite.write import write
from tests.ops.lowered import Lowered, every_lowering, parsed
from tests.quantize.wide import outputs, wide

LENGTH = """(float[1,6,50] x, float[1,6,50] z) => (float[1,6,50] y) {
  a = Mul (x, x)
  b = Mul (z, z)
  total = Add (a, b)
  y = Sqrt (total)
}"""
DECIBELS = """(float[1,6,50] x, float[1,6,50] z) => (float[1,6,50] y) {
  ten = Constant<value = float {10.0}>()
  least = Constant<value = float {1e-9}>()
  a = Mul (x, x)
  b = Mul (z, z)
  power = Add (a, b)
  above = Add (power, least)
  size = Log (above)
  y = Mul (size, ten)
}"""
OF_LENGTH = """(float[1,6,50] x, float[1,6,50] z) => (float[1,6,50] y) {
  two = Constant<value = float {2.0}>()
  least = Constant<value = float {1e-9}>()
  a = Mul (x, x)
  b = Mul (z, z)
  total = Add (a, b)
  length = Sqrt (total)
  power = Pow (length, two)
  above = Add (power, least)
  y = Log (above)
}"""
STACKED = """(float[1,6,50,2] x) => (float[1,6,50] y) {
  least = Constant<value = float {1e-9}>()
  axes = Constant<value = int64[1] {-1}>()
  squares = Mul (x, x)
  power = ReduceSum<keepdims = 0> (squares, axes)
  above = Add (power, least)
  y = Log (above)
}"""


def spectra(body: str) -> Lowered:
    """Pairs whose lengths lie evenly over four decades."""
    model, random = parsed(body, opset=18), np.random.default_rng(0)
    size = 10 ** random.uniform(-4, 0, (1, 6, 50))
    angle = random.uniform(0, 2 * np.pi, size.shape)
    parts = (size * np.stack([np.cos(angle), np.sin(angle)])).astype(np.float32)
    single = len(model.graph.input) == 1
    sample = {"x": np.moveaxis(parts, 0, -1)} if single else {"x": parts[0], "z": parts[1]}
    (_, made), *_ = every_lowering(model, [sample])
    return made


def test_lengths_keep_two_digits_over_three_decades() -> None:
    made = spectra(LENGTH)
    (wanted,) = [w["y"] for w in made.wanted]
    off = np.abs(outputs(wide(made), made.samples[0]) / wanted - 1)
    assert off[wanted > 1e-3].max() <= 0.04


@pytest.mark.parametrize("body", [DECIBELS, OF_LENGTH, STACKED], ids=["power", "length", "axis"])
def test_a_logarithm_of_power_reads_the_pair_itself(body: str) -> None:
    made = spectra(body)
    graph = wide(made)
    (wanted,) = [w["y"] for w in made.wanted]
    assert "LOG" not in [op.code for op in graph.operators]
    off = outputs(graph, made.samples[0]) - wanted
    assert np.sqrt(np.square(off).mean()) <= 0.02 * wanted.std()


def test_the_largest_sum_of_squares_fits() -> None:
    made = spectra(LENGTH)
    graph = wide(made)
    lowest = {name: np.full((1, 6, 50), -32768, np.int16) for name in ("x", "z")}
    made_of_it = Interpreter(write(graph)).run(lowest)["y"]
    assert (made_of_it == 32767).all()  # saturated: no sample was so long


def test_squares_that_something_else_reads_as_well_are_summed_as_before() -> None:
    body = LENGTH.replace("(float[1,6,50] y)", "(float[1,6,50] y, float[1,6,50] total)")
    codes = [op.code for op in wide(spectra(body)).operators]
    assert codes.count("MUL") >= 2
