"""How much of a calibrated range the integers cover."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from splitter.quantize.affine import affine, quantize_values
from splitter.quantize.ranges import Range
from splitter.tflite.types import Array, Quantization

Function = Callable[[Array], Array]
Clip = Callable[[Range, bool, "Function | None"], tuple[float, float]]
"""(range, whether the scale will be symmetric, what the one reader computes) -> bounds to cover."""

SHRINK = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
BEHIND = (*SHRINK, 0.65, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Parts of a range that may be kept; much less of one whose ends a function flattens."""
BINS = 1024
CORRELATED = 16.0


def min_max(entry: Range, symmetric: bool, function: Function | None = None) -> tuple[float, float]:
    """The extremes seen."""
    return entry.low, entry.high


def least_squares(
    entry: Range, symmetric: bool, function: Function | None = None
) -> tuple[float, float]:
    """The bounds, shrunk on each side, with the least mean squared error on the kept values.

    Where one function alone reads the tensor, the error is taken behind it, after rounding there
    too: scores far below the largest may saturate when their exponential rounds to 0. The mean
    error counts CORRELATED times, since sums over a row add it up. The place of masks is kept.
    """
    low, high = min(entry.low, 0.0), max(entry.high, 0.0)
    if low == high or not entry.values.size:
        return low, high
    counts, borders = np.histogram(entry.values, BINS, range=(low, high))
    filled = counts > 0
    centers = ((borders[1:] + borders[:-1]) / 2)[filled]
    counts, total = counts[filled], float(counts.sum())
    goal = centers if function is None else function(centers)
    shrink = SHRINK if function is None else BEHIND
    below = shrink if low < 0 and not symmetric and not entry.masked else (1.0,)
    above = shrink if high > 0 or symmetric else (1.0,)
    bounds = [(low * (b if symmetric else a), high * b) for a in below for b in above]
    chosen = [affine(*one, bits=8, symmetric=symmetric) for one in bounds]
    wrong = _rounded(centers, chosen, function, goal) - goal
    errors = np.square(wrong) @ counts / total
    errors += CORRELATED * np.square(wrong @ counts / total)
    return bounds[_first_of_the_least(errors)]


def _rounded(
    values: Array, chosen: Sequence[Quantization], function: Function | None, goal: Array
) -> Array:
    """What is left of the values, a row for each choice of parameters, behind the function."""
    scale = np.array([q.scale for q in chosen])
    zero = np.array([q.zero_point for q in chosen])
    steps = np.rint(values / scale)
    real = (np.clip(steps, -128 - zero, 127 - zero)) * scale
    if function is None:
        return np.asarray(real)
    return np.asarray(through(function, real.reshape(-1), goal).reshape(real.shape))


def _first_of_the_least(errors: Array) -> int:
    """An error that is smaller by rounding alone is not smaller."""
    return int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[0])


def through(function: Function, values: Array, goal: Array) -> Array:
    """The function's int8 output, its range that of the outputs wanted."""
    q = affine(float(goal.min()), float(goal.max()), bits=8, symmetric=False)
    made = np.clip(function(values), goal.min(), goal.max())
    return (quantize_values(made, q, 8) - q.zero_point[0]) * q.scale[0]
