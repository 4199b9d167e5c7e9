"""What a Resize reads along one axis: for each output position a weight for each input position.

Every mode of ONNX Resize is separable, so an axis is one matrix [out, in]. Formulas: ONNX operator
specification, Resize; cubic convolution by Keys (1981); with antialias the support of the filter is
stretched by 1/scale as in Pillow. Decides nothing about TFLite; also says what TFLite's own
RESIZE operators read, so that a lowering can compare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitter.graph import Array


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a Resize. scale: output length / input length as the file says it."""

    size: int
    out: int
    scale: float
    coordinates: str = "half_pixel"
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    roi: tuple[float, float] = (0.0, 1.0)
    extrapolation: float = 0.0

    def positions(self, dtype: str = "float64") -> Array:
        """Where each output element lies on the input axis, in elements."""
        x: Array = np.arange(self.out, dtype=dtype)
        scale: Array = np.asarray(self.scale, dtype)
        half: Array = np.asarray(0.5, dtype)
        if self.coordinates == "asymmetric":
            return x / scale
        if self.coordinates == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if self.coordinates == "align_corners":
            return x * (self.size - 1) / (self.out - 1) if self.out > 1 else np.zeros_like(x)
        if self.coordinates == "tf_crop_and_resize":
            start, end = self.roi
            if self.out == 1:
                return np.full_like(x, 0.5 * (start + end) * (self.size - 1))
            step = (end - start) * (self.size - 1) / (self.out - 1)
            return start * (self.size - 1) + x * step
        if self.coordinates == "pytorch_half_pixel" and self.out == 1:
            return np.zeros_like(x)
        if self.coordinates == "half_pixel_symmetric":
            wanted = self.scale * self.size
            offset = self.size / 2 * (1 - self.out / wanted)
            return offset + (x + 0.5) / self.scale - 0.5
        return (x + half) / scale - half

    def outside(self) -> Array:
        """Which output elements take the extrapolation value."""
        x = self.positions()
        if self.coordinates != "tf_crop_and_resize":
            return np.zeros(x.shape, bool)
        return (x < 0) | (x > self.size - 1)

    def nearest(self) -> Array:
        """Index of the input element that each output element copies.

        In float32, which decides what a position is that falls on the border of two elements
        (onnxruntime/core/providers/cpu/tensor/upsamplebase.h).
        """
        x, half = self.positions("float32"), np.float32(0.5)
        rounded = {
            "floor": np.floor(x),
            "ceil": np.ceil(x),
            "round_prefer_ceil": np.floor(x + half),
            "round_prefer_floor": np.ceil(x - half),
        }[self.nearest_mode]
        index: Array = np.clip(rounded, 0, self.size - 1).astype(np.int64)
        return index

    def matrix(self) -> Array:
        """Weights [out, in], rows sum to 1."""
        if self.mode == "nearest":
            return np.eye(self.size)[self.nearest()]
        stretch = min(self.scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / stretch
        x = self.positions()
        first = np.floor(x - reach).astype(np.int64)
        taps = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 2)
        distance = (taps - x[:, None]) * stretch
        weights = hat(distance) if self.mode == "linear" else cubic(distance, self.cubic_coeff_a)
        if self.exclude_outside:
            weights = weights * ((taps >= 0) & (taps < self.size))
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
        result = np.zeros((self.out, self.size))
        rows = np.broadcast_to(np.arange(self.out)[:, None], taps.shape)
        np.add.at(result, (rows, np.clip(taps, 0, self.size - 1)), weights)
        return result


def hat(distance: Array) -> Array:
    """Linear interpolation: 1 - |d| within one element."""
    weights: Array = np.maximum(1 - np.abs(distance), 0)
    return weights


def cubic(distance: Array, a: float) -> Array:
    """Cubic convolution with the slope a at distance 1."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def lite_nearest(size: int, out: int, *, align_corners: bool, half_pixel: bool) -> Array:
    """What RESIZE_NEAREST_NEIGHBOR copies; its arithmetic is float32
    (tensorflow/lite/kernels/internal/reference/resize_nearest_neighbor.h)."""
    scale = _lite_scale(size, out, align_corners)
    x = (np.arange(out, dtype=np.float32) + np.float32(0.5 * half_pixel)) * np.float32(scale)
    # std::round: halves go away from zero, and x is not negative.
    index = np.floor(x + np.float32(0.5)) if align_corners else np.floor(x)
    clipped: Array = np.clip(index, 0, size - 1).astype(np.int64)
    return clipped


def lite_bilinear(size: int, out: int, *, align_corners: bool, half_pixel: bool) -> Array:
    """The matrix [out, in] of RESIZE_BILINEAR
    (tensorflow/lite/kernels/internal/reference/resize_bilinear.h)."""
    scale = _lite_scale(size, out, align_corners)
    x = np.arange(out) * scale
    if half_pixel:
        x = (np.arange(out) + 0.5) * scale - 0.5
    low = np.maximum(np.floor(x), 0).astype(np.int64)
    high = np.minimum(np.ceil(x), size - 1).astype(np.int64)
    result = np.zeros((out, size))
    np.add.at(result, (np.arange(out), np.minimum(low, size - 1)), 1 - (x - low))
    np.add.at(result, (np.arange(out), high), x - low)
    return result


def _lite_scale(size: int, out: int, align_corners: bool) -> float:
    """The step in elements, rounded as float32 division rounds it."""
    corners = align_corners and out > 1
    step = (size - 1) / (out - 1) if corners else size / out
    return float(np.float32(step))
