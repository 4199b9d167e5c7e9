"""Very negative numbers that mean "left out", not a quantity: attention masks, padding by -inf.

As a quantity such a number would take the whole range of 8 bits. So calibration leaves it out of
the range, and here it gets the place that suffices: MARGIN below the least real value, and an
additive mask as far down as what it is added to reaches up. The integers saturate there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from splitter.quantize.ranges import BY_ROW, LEFT_OUT, Range, Ranges, gap_border
from splitter.quantize.saturation import softmax_reach
from splitter.tflite.types import Array, LiteGraph, Operator, Tensor

MARGIN = 6.0
"""exp(-6) is 0.0025, under a step of SOFTMAX's 8-bit output (1/256)."""


def place_masks(graph: LiteGraph, ranges: Ranges) -> tuple[LiteGraph, dict[str, Range]]:
    """The graph with constants of bounded size, and the ranges with a place for masks."""
    placer = _Placer(graph, ranges)
    operators = [placer.operator(op) for op in reversed(graph.operators)]
    placer.inputs(graph)
    if placer.lows:
        used = {name for op in operators for name in (*op.inputs, *op.outputs) if name}
        used |= {*graph.inputs, *graph.outputs}
        tensors = {n: t for n, t in placer.tensors.items() if n in used}
        graph = replace(graph, tensors=tensors, operators=tuple(reversed(operators)))
    placed = {name: replace(ranges[name], low=low) for name, low in placer.lows.items()}
    return graph, {**ranges, **placed}


class _Placer:
    """Walks from the readers to the makers: what a sum needs decides the mask that is added."""

    def __init__(self, graph: LiteGraph, ranges: Ranges) -> None:
        self.ranges = ranges
        self.tensors = dict(graph.tensors)
        self.needs: dict[str, float] = {}
        self.lows: dict[str, float] = {}

    def operator(self, op: Operator) -> Operator:
        out = op.outputs[0]
        if op.code in BY_ROW:
            self._row(op)
        if not self._masked(out):
            return op
        goal = min(self.needs.get(out, 0.0), self.ranges[out].low - MARGIN)
        self.lows[out] = goal
        if op.code == "ADD":
            return self._sum(op, goal)
        if op.code == "MUL":
            return self._product(op, goal)
        if op.code == "SUB":
            goal += self._extent(op.inputs[1])[0]
        for name in op.inputs:
            if self._masked(name):
                self._need(name, goal)
        return op

    def inputs(self, graph: LiteGraph) -> None:
        """Inputs of the graph, which no operator makes."""
        for name in graph.inputs:
            if self._masked(name):
                self._need(name, 0.0)

    def _sum(self, op: Operator, goal: float) -> Operator:
        """A mask of at least the width of the other operand, and MARGIN; the goal where both hold
        masks, since either alone must reach it."""
        inputs = list(op.inputs)
        both = all(self._masks(name) for name in op.inputs)
        for index, name in enumerate(op.inputs):
            other = op.inputs[1 - index]
            low, high = self._extent(other)
            need = min(low - high - MARGIN, goal - high if both else 0.0)
            if self._masked(name):
                self._need(name, need)
            else:
                inputs[index] = self._bounded(name, need)
        return replace(op, inputs=tuple(inputs))

    def _product(self, op: Operator, goal: float) -> Operator:
        """(1 - allowed) * -1e9: the factor shrinks to what the goal asks for."""
        inputs = list(op.inputs)
        for index, name in enumerate(op.inputs):
            high = self._extent(op.inputs[1 - index])[1]
            if not self._masked(name) and high > 0:
                inputs[index] = self._bounded(name, goal / high)
        return replace(op, inputs=tuple(inputs))

    def _row(self, op: Operator) -> None:
        """A Softmax: masks so far down that all of a row's together weigh nothing."""
        name = op.inputs[0]
        if self._masked(name) and np.isfinite(self.ranges[name].top):
            reach = softmax_reach(self.tensors[name].shape, 8)
            self._need(name, self.ranges[name].top - reach)

    def _masks(self, name: str) -> bool:
        """Whether a tensor holds masks, computed or constant."""
        data = self.tensors[name].data
        return self._masked(name) or (data is not None and bool(_far(data).any()))

    def _masked(self, name: str) -> bool:
        return name in self.ranges and self.ranges[name].masked

    def _need(self, name: str, low: float) -> None:
        self.needs[name] = min(low, self.needs.get(name, 0.0))
        if name not in self.lows:  # a model input has no maker to come to
            self.lows[name] = min(self.needs[name], self.ranges[name].low - MARGIN)

    def _extent(self, name: str) -> tuple[float, float]:
        """The real values of an operand."""
        if name in self.ranges:
            return min(0.0, self.ranges[name].low), max(0.0, self.ranges[name].high)
        data = self.tensors[name].data
        real = np.zeros(0) if data is None else data[~_far(data)]
        return float(real.min(initial=0.0)), float(real.max(initial=0.0))

    def _bounded(self, name: str, least: float) -> str:
        """The constant with its very negative values at `least`."""
        tensor = self.tensors[name]
        if tensor.data is None or not _far(tensor.data).any():
            return name
        data: Array = np.where(_far(tensor.data), np.float32(least), tensor.data)
        made = Tensor(_free(f"{name}/bounded", self.tensors), tensor.shape, tensor.dtype, data)
        self.tensors[made.name] = made
        return made.name


def _far(data: Array) -> Array:
    """Which values of a constant mean "left out"; asked only where the result has such values."""
    if data.dtype.kind != "f":
        return np.zeros(data.shape, bool)
    return np.asarray(data <= max(LEFT_OUT, gap_border(data[data > LEFT_OUT])))


def _free(stem: str, taken: Mapping[str, Tensor]) -> str:
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name
