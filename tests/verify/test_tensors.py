"""Errors of tensors: what the figures see and cosine does not."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.graph import Array
from splitter.verify.tensors import POINTS, TensorError, TensorMeter


def error_of(*pairs: tuple[Array, Array]) -> TensorError:
    meter = TensorMeter("y")
    for reference, candidate in pairs:
        meter.add(reference, candidate)
    return meter.result()


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_sums_over_runs_equal_the_sums_over_all() -> None:
    x, e = normal(0, 6, 50), normal(1, 6, 50) * 0.1
    together = error_of((x, x + e))
    apart = error_of(*((x[i], x[i] + e[i]) for i in range(6)))
    assert apart.relative_rms == pytest.approx(together.relative_rms)
    assert apart.max_abs == together.max_abs
    error = (x + e).astype(np.float64) - x
    wanted = np.sqrt(np.mean(error**2) / np.mean(x.astype(np.float64) ** 2))
    assert together.relative_rms == pytest.approx(wanted)


def test_a_pure_gain_error_shows_in_gain_and_relative_rms_while_cosine_is_one() -> None:
    x = normal(0, 1000)
    error = error_of((x, x * np.float32(0.56)))
    assert error.cosine == pytest.approx(1.0)
    assert error.gain == pytest.approx(0.56, abs=1e-6)
    assert error.relative_rms == pytest.approx(0.44, abs=1e-6)


def test_an_output_of_one_value_is_broken() -> None:
    error = error_of((normal(0, 10), np.zeros(10, np.float32)))
    assert error.constant and error.broken


def test_an_output_that_is_constant_in_float_too_is_not_broken() -> None:
    assert not error_of((np.ones(4), np.ones(4))).broken


def test_an_output_constant_in_each_run_but_not_over_runs_is_not_broken() -> None:
    assert not error_of((np.ones(4), np.ones(4)), (np.zeros(4), np.zeros(4))).broken


def test_nan_counts_as_broken_and_does_not_poison_the_figures() -> None:
    x = normal(0, 10)
    y = x.copy()
    y[3] = np.nan
    error = error_of((x, y))
    assert error.not_finite == 1 and error.broken and error.relative_rms == 0.0


def test_bit_equality_sees_one_step_and_the_sign_of_zero() -> None:
    x = np.arange(-5, 5, dtype=np.int8)
    y = x.copy()
    y[2] += 1
    assert error_of((x, x)).bit_equal
    assert error_of((x, y)).equal_share == pytest.approx(0.9)
    assert not error_of((np.zeros(2, np.float32), np.float32([0.0, -0.0]))).bit_equal


def test_equal_nans_are_equal_bits() -> None:
    x = np.float32([np.nan, 1.0])
    assert error_of((x, x.copy())).bit_equal


def test_other_types_are_never_bit_equal() -> None:
    assert error_of((np.ones(3, np.int32), np.ones(3, np.int64))).equal_share == 0.0


def test_booleans_and_indices_are_compared_as_numbers() -> None:
    error = error_of((np.array([True, False]), np.array([True, True])))
    assert error.max_abs == 1.0 and error.equal_share == 0.5


def test_different_shapes_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="y"):
        error_of((np.zeros(3), np.zeros(4)))


def test_plot_points_are_few_the_same_each_time_and_hold_the_worst() -> None:
    x = normal(0, 40, 5000)
    y = x.copy()
    y[17, 1234] += 50
    error = error_of(*zip(x, y, strict=True))
    again = error_of(*zip(x, y, strict=True))
    assert len(error.points) <= POINTS
    assert error.points[0, 1] - error.points[0, 0] == pytest.approx(50, abs=1e-4)
    np.testing.assert_array_equal(error.points, again.points)
