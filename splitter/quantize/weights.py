"""Integer weights, biases and constant operands.

Weights: symmetric int8, one scale an output channel (axis 0 for FULLY_CONNECTED and CONV_2D, axis 3
for DEPTHWISE_CONV_2D). Bias: scale = input scale * weight scale, zero point 0, int32 (int64 beside
16-bit activations); TFLite 8-bit quantization specification.
"""

from __future__ import annotations

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.quantize.affine import affine, quantize_values, usable
from splitter.tflite.types import Array, Quantization, Tensor

BIAS_LIMIT = {"int32": 2**30, "int64": 2**46}
"""Largest bias kept, leaving room for the products that are added to it."""

FACTOR = 2.0**-30
"""Least factor between sums and output: TFLite's kernels take one below 2**-31 as 0
(tensorflow/lite/kernels/internal/quantization_util.cc, QuantizeMultiplier), and with it the bias of
a channel whose weights are next to nothing."""


def channel_axis(code: str) -> int:
    return 3 if code == "DEPTHWISE_CONV_2D" else 0


def quantize_weights(
    tensor: Tensor,
    axis: int,
    *,
    input_scale: float,
    bias: Array | None,
    bias_dtype: str,
    output_scale: float = 0.0,
    lattice: bool = False,
) -> Tensor:
    """int8 weights with a scale for each index of `axis`.

    A channel whose bias would not fit its integer type at that scale gets a larger scale, and so
    does one whose sums would become nothing on their way to the output's scale (see FACTOR).
    lattice: weights that were integers times a scale before become these integers again.
    """
    assert tensor.data is not None
    data = tensor.data.astype(np.float64)
    other = tuple(a for a in range(data.ndim) if a != axis)
    scale = np.abs(data).max(axis=other) / 127 if data.size else np.ones(data.shape[axis])
    if lattice:
        scale = lattice_scales(np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1), scale)
    if bias is not None:
        least = np.abs(bias.astype(np.float64)) / BIAS_LIMIT[bias_dtype] / input_scale
        scale = np.maximum(scale, least)
        counts = np.abs(bias) >= output_scale / 2
        scale = np.where(counts, np.maximum(scale, FACTOR * output_scale / input_scale), scale)
    scale = np.array([usable(s) for s in scale], np.float64)
    shaped = scale.reshape([-1 if a == axis else 1 for a in range(data.ndim)])
    values = np.clip(np.rint(data / shaped), -128 if lattice else -127, 127).astype(np.int8)
    q = Quantization(tuple(float(s) for s in scale), (0,) * len(scale), axis)
    return Tensor(tensor.name, tensor.shape, "int8", values, q)


def lattice_scales(rows: Array, otherwise: Array) -> Array:
    """The scale of each row [C, N] of which all its values are whole multiples up to 128.

    One scale for all rows where that is so, as for weights quantized per tensor; `otherwise` where
    a row has none.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    most = float(largest.max(initial=0.0))
    for steps in (127, 128):
        if most and _whole(rows, np.full(len(rows), most / steps)).all():
            return np.asarray(np.full(len(rows), most / steps))
    scale, open_rows = otherwise.copy(), largest > 0
    for steps in (127, 128, *range(126, 0, -1)):
        tried = largest / steps
        found = open_rows & _whole(rows, np.where(open_rows, tried, 1.0))
        scale[found] = tried[found]
        open_rows &= ~found
        if not open_rows.any():
            break
    return np.asarray(scale)


def _whole(rows: Array, scale: Array) -> Array:
    """Whether all values of a row are whole multiples of its scale, within float32."""
    multiples = rows / scale[:, None]
    return np.asarray((np.abs(multiples - np.rint(multiples)) < 1e-3).all(axis=1))


def quantize_bias(
    name: str, data: Array, weights: Tensor, *, input_scale: float, dtype: str
) -> Tensor:
    """Bias at scale input * weight, per channel like the weights."""
    assert weights.quantization is not None
    scale = np.array(weights.quantization.scale, np.float64) * input_scale
    limit = np.iinfo(dtype)
    values = np.clip(np.rint(data.astype(np.float64) / scale), limit.min, limit.max)
    q = Quantization(tuple(float(np.float32(s)) for s in scale), (0,) * len(scale), 0)
    return Tensor(name, data.shape, dtype, values.astype(dtype), q)


BLOCK = 1 << 22
"""Elements that are doubles at a time: a table of embeddings may hold gigabytes."""


def quantize_constant(
    name: str, data: Array, bits: int, target: Quantization | None, *, symmetric: bool = False
) -> Tensor:
    """A constant operand: the given parameters, else the finest that hold it."""
    low = float(data.min()) if data.size else 0.0
    high = float(data.max()) if data.size else 0.0
    if np.isnan(low):
        raise SplitterError(
            "a constant holds values that are no numbers (NaN)",
            where=name,
            hint="a scale in the file is infinite or NaN, as of a mask of -inf: quantize it again "
            "with a mask that is finite",
        )
    single = low == high and low != 0.0
    q = target or affine(low, high, bits=bits, symmetric=symmetric or single)
    values = np.empty(data.size, f"int{bits}")
    flat = data.reshape(-1)
    for start in range(0, data.size, BLOCK):
        block = slice(start, start + BLOCK)
        values[block] = quantize_values(flat[block].astype(np.float64), q, bits)
    return Tensor(name, data.shape, f"int{bits}", values.reshape(data.shape), q)
