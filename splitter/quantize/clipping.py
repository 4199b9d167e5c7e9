"""How much of a calibrated range the integers cover."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.quantize.parameters import affine, quantize_values
from splitter.quantize.ranges import Range

Clip = Callable[[Range, bool], tuple[float, float]]

SHRINK = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4)
BINS = 1024


def min_max(entry: Range, symmetric: bool) -> tuple[float, float]:
    """The extremes seen."""
    return entry.low, entry.high


def least_squares(entry: Range, symmetric: bool) -> tuple[float, float]:
    """The bounds, shrunk on each side, with the least mean squared error on the kept values."""
    low, high = min(entry.low, 0.0), max(entry.high, 0.0)
    if low == high or not entry.values.size:
        return low, high
    counts, borders = np.histogram(entry.values, BINS, range=(low, high))
    filled = counts > 0
    centers = ((borders[1:] + borders[:-1]) / 2)[filled]
    counts = counts[filled]
    best = (np.inf, low, high)
    for a in SHRINK if low < 0 and not symmetric else (1.0,):
        for b in SHRINK if high > 0 else (1.0,):
            bounds = (low * b, high * b) if symmetric else (low * a, high * b)
            q = affine(*bounds, bits=8, symmetric=symmetric)
            real = (quantize_values(centers, q, 8) - q.zero_point[0]) * q.scale[0]
            error = float((np.square(real - centers) * counts).sum())
            if error < best[0]:
                best = (error, *bounds)
    return best[1], best[2]
