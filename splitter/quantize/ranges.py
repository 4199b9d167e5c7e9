"""Calibration: what values every float tensor takes on the user's samples.

Decides nothing about scales; `parameters` does. Runs the float TFLite graph itself, so tensors
inside lowerings are seen too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np

from splitter.quantize.maskable import maskable, relative
from splitter.quantize.quotients import quotients, that_count
from splitter.quantize.turns import every_turn
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph
from splitter.tflite.write import write

KEPT = 4096
"""Values kept of a tensor a sample, evenly strided, for the choice of clipping."""


@dataclass(frozen=True, slots=True)
class Range:
    """Extremes over all samples, and a strided subsample of the values (1-D float32).

    masked: there are very negative values too that mean "left out" (`masks`), or that stand for
    -inf; they are not in low and high, and count as `low` among the values. Values that are NaN or
    stand for +inf count nowhere. least: the most negative value, masks included.
    top: the least maximum of a row of the last axis, of rows that are not left out as a whole;
    known for what a Softmax reads, -inf elsewhere.
    """

    low: float
    high: float
    values: Array
    masked: bool = False
    top: float = -np.inf
    least: float = 0.0


Ranges = Mapping[str, Range]

LEFT_OUT = -9e3
"""From here down a value may be a mask (exporters write -1e4, -65504, -1e9, -3.4e38, -inf), where
`masks` says that nothing but a mask makes sense, and nothing lies between it and the others."""
INFINITE = 1e30
"""From here on a value stands for infinity: no quantity of a network, and no scale for kernels."""
GAP = 50.0
"""The others are smaller by at least this factor."""

APART = 20.0
"""exp(-20) is 2e-9: so far below all others a score counts for nothing, and masks of -100 lie."""

BINS = 4096
"""Steps in which a gap is looked for."""

BY_ROW = frozenset(("SOFTMAX", "LOG_SOFTMAX"))
"""Operators that look at each row's values relative to its largest."""

MEMORY = 1 << 30
"""Bytes of activations that interpreters side by side may hold; each holds all of the graph's."""


def calibrate(
    graph: LiteGraph,
    samples: Sequence[Mapping[str, Array]],
    *,
    flags: Collection[str] = (),
    threads: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranges:
    """Ranges of every float tensor that is not constant.

    samples: arrays by input name in the ONNX types, each of the model's own shape. flags: outputs
    that say that a Loop is not done; the turns that no sample takes count too (`turns`). threads:
    samples that may run side by side, each in an interpreter of one thread; the result does not
    depend on it.
    """
    known = _observed(graph, samples, threads, progress)
    driven = every_turn(graph, flags)
    if driven is not None:
        more = _observed(driven, samples, threads, lambda done, total: None)
        known = {name: join((entry, more[name])) for name, entry in known.items() if name in more}
    return known | _taken(graph, known)


def _observed(
    graph: LiteGraph,
    samples: Sequence[Mapping[str, Array]],
    threads: int,
    progress: Callable[[int, int], None],
) -> dict[str, Range]:
    names = [
        name
        for name, tensor in graph.tensors.items()
        if tensor.dtype == "float32" and tensor.data is None and not tensor.open
    ]
    candidates, compared = maskable(graph), relative(graph)
    rows = {op.inputs[0] for op in graph.operators if op.code in BY_ROW}
    inverses = dict(quotients(graph))
    model = write(graph, beyond=True)
    held = sum(graph.tensors[name].elements * 4 for name in names)
    workers = max(1, min(threads, len(samples), MEMORY // max(1, held)))
    free: SimpleQueue[Interpreter] = SimpleQueue()
    for _ in range(workers):
        free.put(Interpreter(model, threads=1, all_tensors=True))

    def observe(sample: Mapping[str, Array]) -> dict[str, Range]:
        interpreter = free.get()
        try:
            interpreter.run({n: sample[n].astype(graph.tensors[n].dtype) for n in graph.inputs})
            return seen_by(interpreter)
        finally:
            free.put(interpreter)

    def seen_by(interpreter: Interpreter) -> dict[str, Range]:
        seen = {
            n: range_of(interpreter.tensor(n), maskable=n in candidates, relative=n in compared)
            for n in names
        }
        for name in rows & seen.keys():
            seen[name] = replace(seen[name], top=row_top(interpreter.tensor(name)))
        for name, numerator in inverses.items():
            kept = that_count(interpreter.tensor(name), interpreter.tensor(numerator))
            seen[name] = range_of(kept)
        return {name: entry for name, entry in seen.items() if entry.values.size}

    observed = []
    with ThreadPoolExecutor(workers) as pool:
        for seen in pool.map(observe, samples):
            observed.append(seen)
            progress(len(observed), len(samples))
    return {name: join([seen[name] for seen in observed]) for name in (observed or [{}])[0]}


def _taken(graph: LiteGraph, known: Ranges) -> dict[str, Range]:
    """Of rows that data takes out of others, of which there may be none in all samples."""
    found: dict[str, Range] = {}
    for op in graph.operators:
        if not any(graph.tensors[name].open for name in op.outputs):
            continue
        every = {**known, **found}
        reads = [every[name] for name in op.inputs if name in every]
        for name in op.outputs:
            if reads and graph.tensors[name].open and graph.tensors[name].dtype == "float32":
                found[name] = join(reads)
    return found


def range_of(array: Array, *, maskable: bool = False, relative: bool = False) -> Range:
    """Of one sample's tensor; an empty tensor has no extremes. maskable: see `Range.masked`.
    relative: what matters is only how far below others a value lies."""
    flat = array.reshape(-1)
    if not flat.size:
        return Range(np.inf, -np.inf, flat)
    low, high = float(flat.min()), float(flat.max())
    far = LEFT_OUT if maskable and not relative else -APART if relative else -INFINITE
    if low > far and high < INFINITE:
        return Range(low, high, subsample(flat), least=low)
    real = flat[np.abs(flat) < INFINITE]
    if maskable:
        real = real[real > mask_border(real)]
    if relative:
        real = real[real > gap_border(real)]
    if not real.size:
        real = np.zeros(1, flat.dtype)
    low, high = float(real.min()), float(real.max())
    values = np.clip(np.nan_to_num(subsample(flat)), low, high)
    least = float(np.nanmin(flat, initial=0.0))
    return Range(low, high, values, masked=bool((flat < low).any()), least=least)


def row_top(array: Array) -> float:
    """The least maximum of a row of the last axis, of rows that are not masked as a whole."""
    if not array.size:
        return -np.inf
    tops = array.max(axis=-1)
    return range_of(tops[~np.isnan(tops)], maskable=True).low


def mask_border(values: Array) -> float:
    """Where masks end and other values begin, -inf where the least ones are no masks but the end of
    a continuous range. Sums of masks are masks of several sizes."""
    least = float(values.min(initial=0.0))
    if least > LEFT_OUT:
        return -np.inf
    for start, far in ((least / 2, least), (LEFT_OUT, LEFT_OUT)):
        if not ((values > start) & (values < far / GAP)).any():
            return far / GAP
    return -np.inf


def gap_border(values: Array) -> float:
    """Where a gap begins that sets the values below it apart, -inf without one: as wide as
    everything above it, and wide enough that an exponential is nothing beyond it."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    if not high - low >= APART:
        return -np.inf
    step = (high - low) / (BINS - 1)
    counts = np.bincount(((values.reshape(-1) - low) / step).astype(np.int64), minlength=BINS)
    filled = np.flatnonzero(counts)
    empty, above = np.diff(filled) - 1, BINS - filled[1:]
    wide = np.flatnonzero((empty * step >= APART) & (empty >= above))
    return low + (float(filled[wide[-1]]) + 1) * step if wide.size else -np.inf


def join(ranges: Sequence[Range]) -> Range:
    """Over all samples, in their order."""
    return Range(
        min(one.low for one in ranges),
        max(one.high for one in ranges),
        np.concatenate([one.values for one in ranges]),
        any(one.masked for one in ranges),
        min(one.top for one in ranges),
        min(one.least for one in ranges),
    )


def subsample(flat: Array) -> Array:
    """At most KEPT values, evenly strided with an odd step so that no channel is always hit."""
    step = max(1, flat.size // KEPT) | 1
    kept: Array = flat[::step][: KEPT + 1].copy()
    return kept
