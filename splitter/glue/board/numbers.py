"""Float <-> integer at the borders of the model, by the manifest's scale and zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.bundle import Tensor
from splitter.glue.board.messages import BadInput, note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

CLIPPED_SHARE_WORTH_A_NOTE = 0.01


def quantize(array: Array, tensor: Tensor) -> Array:
    """clip(rint(float32(x) / float32(scale)) + zero_point); without a scale a cast in range.

    Raises BadInput for NaN, infinity, and integers that the tensor's type cannot hold.
    """
    kind = np.dtype(tensor.type)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput(f"input {tensor.name}: holds NaN or infinity")
    if tensor.scale is None:
        return _cast(array, tensor)
    info = np.iinfo(kind)
    with np.errstate(over="ignore"):
        real = array.astype(np.float32)
        steps = np.rint(real / np.float32(tensor.scale)) + np.float32(tensor.zero_point)
    outside = float(np.mean((steps < info.min) | (steps > info.max))) if steps.size else 0.0
    if outside > CLIPPED_SHARE_WORTH_A_NOTE:
        note(
            f"note: {outside:.0%} of {tensor.name} lies outside the calibrated range and was "
            "clipped; is it preprocessed as the calibration samples were?"
        )
    clipped: Array = np.clip(steps, info.min, info.max).astype(kind)
    return clipped


def dequantize(array: Array, tensor: Tensor, dtype: str) -> Array:
    """float32(q - zero_point) * float32(scale), then the ONNX dtype; without a scale a cast."""
    if tensor.scale is None:
        return array.astype(dtype)
    centered = array.astype(np.int32) - np.int32(tensor.zero_point)
    real: Array = centered.astype(np.float32) * np.float32(tensor.scale)
    return real.astype(dtype)


def _cast(array: Array, tensor: Tensor) -> Array:
    kind = np.dtype(tensor.type)
    if kind.kind in "iu" and array.size:
        info = np.iinfo(kind)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise BadInput(f"input {tensor.name}: holds values beyond {tensor.type}")
    return array.astype(kind)
