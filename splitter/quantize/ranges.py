"""Calibration: what values every float tensor takes on the user's samples.

Decides nothing about scales; `parameters` does. Runs the float TFLite graph itself, so tensors
inside lowerings are seen too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph
from splitter.tflite.write import write

KEPT = 4096
"""Values kept of a tensor a sample, evenly strided, for the choice of clipping."""


@dataclass(frozen=True, slots=True)
class Range:
    """Extremes over all samples, and a strided subsample of the values (1-D float32)."""

    low: float
    high: float
    values: Array


Ranges = Mapping[str, Range]


def calibrate(
    graph: LiteGraph,
    samples: Sequence[Mapping[str, Array]],
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranges:
    """Ranges of every float tensor that is not constant.

    samples: arrays by input name, each of the model's own shape.
    """
    names = [
        name
        for name, tensor in graph.tensors.items()
        if tensor.dtype == "float32" and tensor.data is None
    ]
    interpreter = Interpreter(write(graph), threads=threads, all_tensors=True)
    lows = dict.fromkeys(names, np.inf)
    highs = dict.fromkeys(names, -np.inf)
    kept: dict[str, list[Array]] = {name: [] for name in names}
    for index, sample in enumerate(samples):
        interpreter.run(sample)
        for name in names:
            flat = interpreter.tensor(name).reshape(-1)
            if not flat.size:
                continue
            lows[name] = min(lows[name], float(flat.min()))
            highs[name] = max(highs[name], float(flat.max()))
            kept[name].append(subsample(flat))
        progress(index + 1, len(samples))
    return {
        name: Range(lows[name], highs[name], np.concatenate(kept[name]))
        for name in names
        if kept[name]
    }


def subsample(flat: Array) -> Array:
    """At most KEPT values, evenly strided with an odd step so that no channel is always hit."""
    step = max(1, flat.size // KEPT) | 1
    return flat[::step][: KEPT + 1].copy()
