"""The part of each range that its readers can tell apart.

A gate of a recurrent cell sees values of hundreds where its sigmoid is 1 from 8 on, a Softmax makes
0 of whatever lies far below the largest of its row; a scale for all of them leaves the part that
matters a few steps. What lies beyond saturates in the integers as it does in the function, so
leaving it out of the range costs nothing. Works backwards from functions of one tensor, through
data movement and sums. Decides bounds; `parameters` makes scales of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import log

import numpy as np

from splitter.quantize.kernels import KERNELS, data_inputs
from splitter.quantize.lookup import Function, function_of
from splitter.quantize.ranges import LEFT_OUT, Range, Ranges
from splitter.tflite.types import LiteGraph, Operator

GRID = 2048
"""Points at which a function is looked at over the range of its input."""

STEPS = {8: 2048.0, 16: 524288.0}
"""Values closer than the output's extent over this are one: an eighth of a step, by bits. With half
a step, what should round to 0 may round up, all of a tail at once."""

LOG_SOFTMAX_LEAST = 16.0
"""The int8 kernel writes -16..0."""

WORTH = 0.1
"""Share of the range that a cut must save; below that nothing is gained."""

AVERAGES = frozenset(("AVERAGE_POOL_2D", "RESIZE_BILINEAR"))
"""Same-scale operators whose output saturated is not their input saturated."""

CLIPS = frozenset(("MAXIMUM", "MINIMUM"))

OPEN = (-np.inf, np.inf)

Bounds = tuple[float, float]


def useful_ranges(
    graph: LiteGraph, ranges: Ranges, *, int16: Collection[str] = ()
) -> dict[str, Range]:
    """The ranges cut where every reader has the same to say beyond. Outputs of the graph and what
    anything else reads keep theirs. int16: tensors of 16 bits."""
    return useful(graph, ranges, int16=int16)[1]


def useful(
    graph: LiteGraph, ranges: Ranges, *, int16: Collection[str] = ()
) -> tuple[LiteGraph, dict[str, Range]]:
    """`useful_ranges`, and the graph with its constants cut in the same way."""
    asks = _Asks(graph, ranges, int16)
    bounds = asks.bounds()
    tensors = dict(graph.tensors)
    for name, bound in asks.of_constants().items():
        data = tensors[name].data
        assert data is not None
        tensors[name] = replace(tensors[name], data=np.clip(data, *bound).astype(data.dtype))
    made: dict[tuple[int, Bounds], Range] = {}
    cut = {}
    for name, entry in ranges.items():
        bound = bounds.get(name, OPEN)
        key = (id(entry), bound)  # the steps of a recurrence have one range, and keep one
        if key not in made:
            made[key] = _cut(entry, bound)
        cut[name] = made[key]
    return replace(graph, tensors=tensors), cut


class _Asks:
    """What the readers of each tensor ask of it, found from the last operator to the first."""

    def __init__(self, graph: LiteGraph, ranges: Ranges, int16: Collection[str]) -> None:
        self._graph, self._ranges, self._int16 = graph, ranges, int16
        self._bounds: dict[str, Bounds] = {}
        self._wanted: dict[str, list[Bounds]] = {}
        self._asked: dict[tuple[str, str, int], Bounds] = {}

    def bounds(self) -> Mapping[str, Bounds]:
        """By name of a variable tensor: its useful part."""
        for op in reversed(self._graph.operators):
            for name in op.outputs:
                if name in self._ranges:
                    self._bounds[name] = self._kept(name)
            asked = dict(self._of(op))
            for name in dict.fromkeys(op.inputs):
                if name:
                    self._wanted.setdefault(name, []).append(asked.get(name, OPEN))
        for name in self._graph.inputs:
            if name in self._ranges:
                self._bounds[name] = self._kept(name)
        return self._bounds

    def of_constants(self) -> Mapping[str, Bounds]:
        """By name of a float constant that reaches far beyond what its readers ask of it."""
        found = {}
        for name in self._wanted:
            tensor = self._graph.tensors[name]
            if tensor.data is None or tensor.dtype != "float32" or not tensor.data.size:
                continue
            low, high = self._of_readers(name)
            least, most = float(tensor.data.min()), float(tensor.data.max())
            if (
                low <= high
                and (least < low or most > high)
                and worth_a_cut(least, most, (low, high))
            ):
                found[name] = (low, high)
        return found

    def _kept(self, name: str) -> Bounds:
        """What the readers ask, and the place of masks: another sample may have rows in which all
        that counts lies lower than in those seen."""
        low, high = self._of_readers(name)
        return (min(low, self._ranges[name].low) if self._ranges[name].masked else low), high

    def _of_readers(self, name: str) -> Bounds:
        """The hull of what all readers ask."""
        asked = self._wanted.get(name, [])
        if name in self._graph.outputs or not asked:
            return OPEN
        return min(a[0] for a in asked), max(a[1] for a in asked)

    def _of(self, op: Operator) -> list[tuple[str, Bounds]]:
        """What an operator asks of its float inputs; of those not named it asks everything."""
        names = [n for n in dict.fromkeys(op.inputs) if n and self._is_real(n)]
        output = op.outputs[0]
        kernel = KERNELS.get(op.code)
        if kernel is None or output not in self._bounds or not names:
            return []
        bounds = self._bounds[output]
        if op.code == "REDUCE_MAX":
            return [(names[0], (self._ranges[output].low, bounds[1]))]
        if op.code in CLIPS and len(variable := [n for n in names if n in self._ranges]) == 1:
            return [(variable[0], self._of_clip(op, bounds))]
        if kernel.same and op.code not in AVERAGES:
            outs = [self._bounds[name] for name in op.outputs if name in self._bounds]
            hull = (min(o[0] for o in outs), max(o[1] for o in outs))
            carried = {op.inputs[i] for i in data_inputs(op.code, len(op.inputs))}
            return [(name, hull) for name in names if name in carried]
        if op.code in ("ADD", "SUB") and len(names) == 2:
            return self._of_sum(op, bounds)
        if op.code in ("SOFTMAX", "LOG_SOFTMAX"):
            return self._of_softmax(op)
        variable = [name for name in names if name in self._ranges]
        function = function_of(self._graph, op) if len(variable) == 1 else None
        if function is None or variable[0] not in self._ranges:
            return []
        return [(variable[0], self._of_function(function, variable[0], output))]

    def _of_clip(self, op: Operator, out: Bounds) -> Bounds:
        """What the constant of a MAXIMUM or MINIMUM leaves of the bounds of the result."""
        (limits,) = [d for n in op.inputs if (d := self._graph.tensors[n].data) is not None]
        low, high = out
        if op.code == "MAXIMUM":
            low = max(low, float(limits.min()))
        else:
            high = min(high, float(limits.max()))
        return (low, high) if low <= high else out

    def _of_function(self, function: Function, name: str, output: str) -> Bounds:
        """The part of the input in which the function changes, once for all steps of a
        recurrence."""
        bits = 16 if output in self._int16 or name in self._int16 else 8
        source, result = self._ranges[name], self._ranges[output]
        alike = self._graph.tensors[name].alike, self._graph.tensors[output].alike
        if not all(alike):
            return unsaturated(function, source, result, bits=bits)
        key = (alike[0], alike[1], bits)
        if key not in self._asked:
            self._asked[key] = unsaturated(function, source, result, bits=bits)
        return self._asked[key]

    def _of_sum(self, op: Operator, out: Bounds) -> list[tuple[str, Bounds]]:
        """Each operand: the bounds of the result less what the other may add or take."""
        a, b = op.inputs
        (low_a, high_a), (low_b, high_b) = self._extent(a), self._extent(b)
        if op.code == "ADD":
            asks = [(a, (out[0] - high_b, out[1] - low_b)), (b, (out[0] - high_a, out[1] - low_a))]
        else:
            asks = [(a, (out[0] + low_b, out[1] + high_b)), (b, (low_a - out[1], high_a - out[0]))]
        return [(n, (_or(low, -np.inf), _or(high, np.inf))) for n, (low, high) in asks]

    def _of_softmax(self, op: Operator) -> list[tuple[str, Bounds]]:
        """All that is not far below the largest of its row, also taken together."""
        name, output = op.inputs[0], op.outputs[0]
        top = self._ranges[name].top if name in self._ranges else -np.inf
        if not np.isfinite(top):
            return []
        if op.code == "LOG_SOFTMAX":
            return [(name, (top - LOG_SOFTMAX_LEAST, np.inf))]
        bits = 16 if output in self._int16 else 8
        return [(name, (top - softmax_reach(self._graph.tensors[name].shape, bits), np.inf))]

    def _is_real(self, name: str) -> bool:
        tensor = self._graph.tensors[name]
        return name in self._ranges or (tensor.data is not None and tensor.dtype == "float32")

    def _extent(self, name: str) -> Bounds:
        """The least and the greatest value; masks do not count."""
        if name in self._ranges:
            return self._ranges[name].low, self._ranges[name].high
        data = self._graph.tensors[name].data
        real = np.zeros(1) if data is None else data[data > LEFT_OUT]
        return (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)


def _or(value: float, otherwise: float) -> float:
    return otherwise if np.isnan(value) else float(value)


def softmax_reach(shape: tuple[int, ...], bits: int) -> float:
    """How far below the largest of its row a score counts: all others of the row together that
    lie there are under an eighth of a step."""
    return log(STEPS[bits]) + log(max(1, shape[-1] if shape else 1))


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


def worth_a_cut(least: float, most: float, bounds: Bounds) -> bool:
    """Whether what is left of least..most, and 0, is clearly less."""
    low, high = max(least, min(bounds[0], 0.0)), min(most, max(bounds[1], 0.0))
    return low < high and (high - low) <= (1 - WORTH) * (most - least)


def _cut(entry: Range, bounds: Bounds) -> Range:
    """The range inside the bounds, where that saves enough."""
    if not worth_a_cut(entry.low, entry.high, bounds):
        return entry
    low, high = max(entry.low, min(bounds[0], 0.0)), min(entry.high, max(bounds[1], 0.0))
    return replace(entry, low=low, high=high, values=np.clip(entry.values, low, high))
