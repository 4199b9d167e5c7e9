"""Float <-> integer at the borders of the model, by the manifest's scale and zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.bundle import Tensor
from splitter.glue.board.messages import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def quantize(array: Array, tensor: Tensor) -> Array:
    """clip(rint(float32(x) / float32(scale)) + zero_point); without a scale a cast in range.

    Raises BadInput for NaN, infinity, and integers that the tensor's type cannot hold.
    """
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput(f"input {tensor.name}: holds NaN or infinity")
    if tensor.scale is None:
        return _cast(array, tensor)
    info = np.iinfo(tensor.type)
    clipped: Array = np.clip(_steps(array, tensor), info.min, info.max).astype(tensor.type)
    return clipped


def clipped_share(array: Array, tensor: Tensor) -> float:
    """The share of values, 0 to 1, that `quantize` clips."""
    if tensor.scale is None or not array.size:
        return 0.0
    info = np.iinfo(tensor.type)
    steps = _steps(array, tensor)
    return float(np.mean((steps < info.min) | (steps > info.max)))


def dequantize(array: Array, tensor: Tensor, dtype: str) -> Array:
    """float32(q - zero_point) * float32(scale), then the ONNX dtype; without a scale a cast."""
    if tensor.scale is None:
        return array.astype(dtype)
    centered = array.astype(np.int32) - np.int32(tensor.zero_point)
    real: Array = centered.astype(np.float32) * np.float32(tensor.scale)
    return real.astype(dtype)


def _steps(array: Array, tensor: Tensor) -> Array:
    with np.errstate(over="ignore"):
        real = array.astype(np.float32) / np.float32(tensor.scale)
        steps: Array = np.rint(real) + np.float32(tensor.zero_point)
        return steps


def _cast(array: Array, tensor: Tensor) -> Array:
    kind = np.dtype(tensor.type)
    if kind.kind in "iu" and array.size:
        info = np.iinfo(kind)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise BadInput(f"input {tensor.name}: holds values beyond {tensor.type}")
    return array.astype(kind)
