"""Scale and zero point that cover a range, and values in them."""

from __future__ import annotations

import numpy as np

from splitter.tflite.types import Array, Quantization


def affine(low: float, high: float, *, bits: int, symmetric: bool) -> Quantization:
    """Parameters that cover low..high and represent 0 exactly; 16 bits are always symmetric.

    Both ends are inside after the zero point is rounded: a bound that a fused activation promises
    (-1..1 of a sampling distance) must not come back as 0.996.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if bits == 16 or symmetric:
        top = 32767 if bits == 16 else 127
        bound = max(-low, high)
        return Quantization((usable(bound / top),), (0,))
    zero = min(max(round(-128 - low * 255 / max(high - low, 1e-30)), -128), 127)
    below = -low / (zero + 128) if zero > -128 else 0.0
    above = high / (127 - zero) if zero < 127 else 0.0
    return Quantization((usable(max(below, above)),), (zero,))


LEAST = 1e-30
"""The least scale: near the least numbers that float32 holds in full, products of two have none."""


def usable(scale: float) -> float:
    """A positive float32 scale; a tensor that is always 0 gets a harmless one."""
    return float(np.float32(scale)) if scale > LEAST else 1.0


def quantize_values(values: Array, q: Quantization, bits: int) -> Array:
    """Round to nearest even, saturate."""
    top = 2 ** (bits - 1) - 1
    steps = np.rint(values / q.scale[0]) + q.zero_point[0]
    return np.asarray(np.clip(steps, -top - 1, top))
