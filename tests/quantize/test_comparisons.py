"""Comparisons on quantized values, at scales where the int8 kernel would end the process."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.lowered import Case, every_lowering, parsed

CODES = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
SCALE = 3.0  # of the int8 values -128 to 127: whole numbers, so no rounding blurs an equality


def lattice(low: int, high: int, *, seed: int) -> np.ndarray:
    """Values on the grid of SCALE, both ends among them."""
    steps = np.random.default_rng(seed).integers(low, high, (4, 6))
    steps[0, 0], steps[0, 1] = low, high
    return (steps * SCALE).astype(np.float32)


@pytest.mark.parametrize("code", CODES)
def test_tensors_of_a_scale_over_one_compare_as_floats_do(code: str) -> None:
    model = parsed(f"(float[4,6] x, float[4,6] z) => (bool[4,6] y) {{ y = {code} (x, z) }}",
                   opset=17)  # fmt: skip
    sample = {"x": lattice(-128, 127, seed=0), "z": lattice(-128, 127, seed=1)}
    sample["z"][1] = sample["x"][1]
    for _, lowered in every_lowering(model, [sample]):
        assert lowered.integer_error() == 0


@pytest.mark.parametrize("code", CODES)
def test_a_constant_value_is_compared_exactly(code: str) -> None:
    model = parsed(
        f"""(float[4,6] x) => (bool[4,6] y) {{
          edge = Constant<value = float {{{SCALE}}}>() y = {code} (x, edge)
        }}""",
        opset=17,
    )
    for _, lowered in every_lowering(model, [{"x": lattice(-128, 127, seed=0)}]):
        assert lowered.integer_error() == 0


def test_operands_of_one_sign_each_do_not_saturate() -> None:
    model = parsed("(float[4,6] x, float[4,6] z) => (bool[4,6] y) { y = Greater (x, z) }", opset=17)
    sample = {"x": lattice(0, 200, seed=0), "z": lattice(-90, -20, seed=1)}
    for _, lowered in every_lowering(model, [sample]):
        assert lowered.integer_error() == 0


def test_what_is_compared_with_a_tensor_of_constants_is_close() -> None:
    case = Case(
        "rows",
        """(float[4,3] x) => (float[4,3] y) {
          edges = Constant<value = float[3] {-80.0, 3.0, 70.0}>()
          c = Greater (x, edges) y = Cast<to = 1> (c)
        }""",
        low=-100, high=100,
    )  # fmt: skip
    for _, lowered in case.lowerings():
        assert lowered.integer_error() <= 0.1


def test_a_tensor_that_was_always_zero_does_not_widen_the_steps() -> None:
    model = parsed("(float[4,6] x, float[4,6] z) => (bool[4,6] y) { y = Less (x, z) }", opset=17)
    x = np.random.default_rng(0).uniform(-1, 1, (4, 6)).astype(np.float32)
    x[np.abs(x) < 0.02] = 0.5
    for _, lowered in every_lowering(model, [{"x": x, "z": np.zeros_like(x)}]):
        assert lowered.integer_error() == 0
