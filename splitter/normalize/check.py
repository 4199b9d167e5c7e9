"""Whether two ONNX models compute the same, in ONNX Runtime with its own rewrites switched off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from splitter.normalize.evaluate import session

Array = NDArray[Any]


def check(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
) -> dict[str, float]:
    """Output name -> worst relative RMS difference over the samples.

    Infinite when the type, the shape or the place of a value that is not finite differs.
    ValueError when the models do not have the same inputs and outputs.
    """
    first, second = session(before), session(after)
    names = [value.name for value in first.get_outputs()]
    if sorted(names) != sorted(value.name for value in second.get_outputs()):
        raise ValueError("the models have different outputs")
    wanted = sorted(value.name for value in first.get_inputs())
    if wanted != sorted(value.name for value in second.get_inputs()):
        raise ValueError("the models have different inputs")
    worst = dict.fromkeys(names, 0.0)
    for sample in samples:
        left, right = first.run(names, dict(sample)), second.run(names, dict(sample))
        for name, a, b in zip(names, left, right, strict=True):
            worst[name] = max(worst[name], difference(np.asarray(a), np.asarray(b)))
    return worst


def difference(expected: Array, actual: Array) -> float:
    """RMS of the difference over RMS of the expected values; absolute when these are all 0."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    if expected.dtype == object:
        return 0.0 if bool(np.all(expected == actual)) else float("inf")
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    a, b = a[finite], b[finite]
    if a.size == 0:
        return 0.0
    scale = float(np.sqrt(np.mean(a**2)))
    return float(np.sqrt(np.mean((a - b) ** 2))) / (scale or 1.0)
