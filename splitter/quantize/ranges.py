"""Calibration: what values every float tensor takes on the user's samples.

Decides nothing about scales; `parameters` does. Runs the float TFLite graph itself, so tensors
inside lowerings are seen too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from splitter.quantize.maskable import maskable
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph
from splitter.tflite.write import write

KEPT = 4096
"""Values kept of a tensor a sample, evenly strided, for the choice of clipping."""


@dataclass(frozen=True, slots=True)
class Range:
    """Extremes over all samples, and a strided subsample of the values (1-D float32).

    masked: there are very negative values too that mean "left out" (`masks`), or -inf; they are not
    in low and high, and count as `low` among the values. Values that are NaN or +inf count nowhere.
    """

    low: float
    high: float
    values: Array
    masked: bool = False


Ranges = Mapping[str, Range]

LEFT_OUT = -9e3
"""From here down a value may be a mask (exporters write -1e4, -65504, -1e9, -3.4e38, -inf), where
`masks` says that nothing but a mask makes sense, and nothing lies between it and the others."""
GAP = 50.0
"""The others are smaller by at least this factor."""

MEMORY = 1 << 30
"""Bytes of activations that interpreters side by side may hold; each holds all of the graph's."""


def calibrate(
    graph: LiteGraph,
    samples: Sequence[Mapping[str, Array]],
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranges:
    """Ranges of every float tensor that is not constant.

    samples: arrays by input name in the ONNX types, each of the model's own shape. threads:
    samples that may run side by side, each in an interpreter of one thread; the result does not
    depend on it.
    """
    names = [
        name
        for name, tensor in graph.tensors.items()
        if tensor.dtype == "float32" and tensor.data is None
    ]
    candidates = maskable(graph)
    model = write(graph)
    held = sum(graph.tensors[name].elements * 4 for name in names)
    workers = max(1, min(threads, len(samples), MEMORY // max(1, held)))
    free: SimpleQueue[Interpreter] = SimpleQueue()
    for _ in range(workers):
        free.put(Interpreter(model, threads=1, all_tensors=True))

    def observe(sample: Mapping[str, Array]) -> dict[str, Range]:
        interpreter = free.get()
        interpreter.run({n: sample[n].astype(graph.tensors[n].dtype) for n in graph.inputs})
        seen = {n: range_of(interpreter.tensor(n), maskable=n in candidates) for n in names}
        free.put(interpreter)
        return {name: entry for name, entry in seen.items() if entry.values.size}

    observed = []
    with ThreadPoolExecutor(workers) as pool:
        for seen in pool.map(observe, samples):
            observed.append(seen)
            progress(len(observed), len(samples))
    return {name: join([seen[name] for seen in observed]) for name in (observed or [{}])[0]}


def range_of(array: Array, *, maskable: bool = False) -> Range:
    """Of one sample's tensor; an empty tensor has no extremes. maskable: see `Range.masked`."""
    flat = array.reshape(-1)
    if not flat.size:
        return Range(np.inf, -np.inf, flat)
    low, high = float(flat.min()), float(flat.max())
    if np.isfinite(low) and np.isfinite(high) and not (maskable and low <= LEFT_OUT):
        return Range(low, high, subsample(flat))
    real = flat[np.isfinite(flat)]
    if maskable and _stands_apart(real):
        real = real[real > real.min() / GAP]
    if not real.size:
        real = np.zeros(1, flat.dtype)
    low, high = float(real.min()), float(real.max())
    values = np.clip(np.nan_to_num(subsample(flat)), low, high)
    return Range(low, high, values, masked=bool((flat < low).any()))


def _stands_apart(values: Array) -> bool:
    """Whether the least values are masks, and not the end of a continuous range."""
    least = float(values.min(initial=0.0))
    return least <= LEFT_OUT and not ((values > least / 2) & (values < least / GAP)).any()


def join(ranges: Sequence[Range]) -> Range:
    """Over all samples, in their order."""
    return Range(
        min(one.low for one in ranges),
        max(one.high for one in ranges),
        np.concatenate([one.values for one in ranges]),
        any(one.masked for one in ranges),
    )


def subsample(flat: Array) -> Array:
    """At most KEPT values, evenly strided with an odd step so that no channel is always hit."""
    step = max(1, flat.size // KEPT) | 1
    kept: Array = flat[::step][: KEPT + 1].copy()
    return kept
