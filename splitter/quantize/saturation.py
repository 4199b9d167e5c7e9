"""The part of each range that its readers can tell apart.

A gate of a recurrent cell sees values of hundreds where its sigmoid is 1 from 8 on; a scale for all
of them leaves the part that matters a few steps. What lies beyond saturates in the integers as it
does in the function, so leaving it out of the range costs nothing. Works backwards from functions
of one tensor, through data movement and sums. Decides bounds; `parameters` makes scales of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from splitter.quantize.kernels import KERNELS, data_inputs
from splitter.quantize.lookup import Function, function_of
from splitter.quantize.ranges import Range, Ranges
from splitter.tflite.types import LiteGraph, Operator

GRID = 2048
"""Points at which a function is looked at over the range of its input."""

STEPS = {8: 2048.0, 16: 524288.0}
"""Values closer than the output's extent over this are one: an eighth of a step, by bits. With half
a step, what should round to 0 may round up, all of a tail at once."""

WORTH = 0.1
"""Share of the range that a cut must save; below that nothing is gained."""

OPEN = (-np.inf, np.inf)

Bounds = tuple[float, float]


def useful_ranges(
    graph: LiteGraph, ranges: Ranges, *, int16: Collection[str] = ()
) -> dict[str, Range]:
    """The ranges cut where every reader has the same to say beyond. Outputs of the graph and what
    anything else reads keep theirs. int16: tensors of 16 bits."""
    bounds: dict[str, Bounds] = {}
    wanted: dict[str, list[Bounds]] = {}
    for op in reversed(graph.operators):
        for name in op.outputs:
            if name in ranges:
                bounds[name] = _of_readers(graph, name, wanted)
        for name, asked in _asks(graph, ranges, op, bounds, int16):
            wanted.setdefault(name, []).append(asked)
    for name in graph.inputs:
        if name in ranges:
            bounds[name] = _of_readers(graph, name, wanted)
    return {name: _cut(entry, bounds.get(name, OPEN)) for name, entry in ranges.items()}


def _of_readers(graph: LiteGraph, name: str, wanted: Mapping[str, list[Bounds]]) -> Bounds:
    """The hull of what all readers ask."""
    asked = wanted.get(name, [])
    if name in graph.outputs or not asked:
        return OPEN
    return min(a[0] for a in asked), max(a[1] for a in asked)


def _asks(
    graph: LiteGraph,
    ranges: Ranges,
    op: Operator,
    bounds: Mapping[str, Bounds],
    int16: Collection[str],
) -> list[tuple[str, Bounds]]:
    """What an operator asks of each of its float inputs: everything, where nothing is known."""
    names = [name for name in dict.fromkeys(op.inputs) if name in ranges]
    whole = [(name, OPEN) for name in names]
    output = op.outputs[0]
    kernel = KERNELS.get(op.code)
    if kernel is None or output not in bounds or not names:
        return whole
    if kernel.same and len(data_inputs(op.code, len(op.inputs))) == 1:
        outs = [bounds[name] for name in op.outputs if name in bounds]
        return [(names[0], (min(o[0] for o in outs), max(o[1] for o in outs)))]
    if op.code == "CONCATENATION":
        return [(name, bounds[output]) for name in names]
    if op.code == "ADD" and len(names) == 2:
        return _of_sum(ranges, names, bounds[output])
    function = function_of(graph, op) if len(names) == 1 else None
    if function is None:
        return whole
    bits = 16 if output in int16 or names[0] in int16 else 8
    return [(names[0], unsaturated(function, ranges[names[0]], ranges[output], bits=bits))]


def _of_sum(ranges: Ranges, names: list[str], out: Bounds) -> list[tuple[str, Bounds]]:
    """Each operand: the bounds of the sum less what the other may add."""
    asks = []
    for name, other in (names, names[::-1]):
        low, high = ranges[other].low, ranges[other].high
        asks.append((name, (out[0] - high, out[1] - low)))
    return asks


def unsaturated(function: Function, source: Range, result: Range, *, bits: int) -> Bounds:
    """The input range without the ends on which the function does not change; open at an end where
    it does."""
    low, high = source.low, source.high
    if not low < high or not np.isfinite([low, high]).all():
        return OPEN
    points = np.linspace(low, high, GRID)
    with np.errstate(all="ignore"):
        values = np.nan_to_num(function(points), posinf=1e30, neginf=-1e30)
    near = max(result.high - result.low, 0.0) / STEPS[bits]
    moved = np.abs(values - values[0]) > near
    if values.dtype == bool or not moved.any():
        return OPEN
    first = int(np.argmax(moved))
    last = GRID - 1 - int(np.argmax(np.abs(values[::-1] - values[-1]) > near))
    return (
        float(points[first - 1]) if first > 1 else -np.inf,
        float(points[last + 1]) if last < GRID - 2 else np.inf,
    )


def _cut(entry: Range, bounds: Bounds) -> Range:
    """The range inside the bounds, where that saves enough."""
    low, high = max(entry.low, min(bounds[0], 0.0)), min(entry.high, max(bounds[1], 0.0))
    if not low < high or (high - low) > (1 - WORTH) * (entry.high - entry.low):
        return entry
    return replace(entry, low=low, high=high, values=np.clip(entry.values, low, high))
