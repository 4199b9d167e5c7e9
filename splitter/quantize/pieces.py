"""Outputs that hold things of very different size leave as the pieces they are joined from.

Detectors end in a Concat of boxes in pixels and scores in 0..1. One 8-bit scale for both leaves
the scores two values. The Concat computes nothing, so it goes: the pieces become outputs of the
integer model, each with its own scale, and whoever runs it joins their real values. Decides which
outputs, and what joins them; the manifest carries it to the glue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from splitter.lower import drop_unused
from splitter.quantize.ranges import Range, Ranges
from splitter.tflite.types import LiteGraph, Operator, Tensor

APART = 8.0
"""How much wider one piece is than another before they part: three of the eight bits."""

MOVES = frozenset(("TRANSPOSE", "RESHAPE"))


@dataclass(frozen=True, slots=True)
class Join:
    """A model output that is its pieces, in order, along an axis."""

    axis: int
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Parted:
    """graph, ranges: with the pieces. joins: by the name of the output that they stand for."""

    graph: LiteGraph
    ranges: Ranges
    joins: Mapping[str, Join]

    def notes(self) -> Iterator[str]:
        """A sentence for the report on each output in pieces."""
        for name, join in self.joins.items():
            widths = ", ".join(f"{_width(self.ranges[piece]):.3g}" for piece in join.pieces)
            yield (
                f"output {name} holds values of very different size (widths {widths}): the integer "
                f"model gives its {len(join.pieces)} pieces, each with its own scale, and the glue "
                f"joins them along axis {join.axis}"
            )


def part_outputs(graph: LiteGraph, ranges: Ranges, *, whole: Collection[str] = ()) -> Parted:
    """The float graph with such outputs in pieces. whole: outputs that stay as they are."""
    parted = Parted(graph, ranges, {})
    for name in graph.outputs:
        found = _find(parted.graph, name) if name not in whole else None
        if found is not None and _apart(found.values, ranges):
            parted = _cut_off(parted, name, found)
    return parted


@dataclass(frozen=True)
class _Found:
    """values: what is joined along `first`; steps: TRANSPOSEs and RESHAPEs from there to the
    output, whose axis it then is."""

    values: tuple[str, ...]
    first: int
    steps: tuple[Operator, ...]
    axis: int


def _find(graph: LiteGraph, output: str) -> _Found | None:
    """None when the output is no Concat of computed values, moved perhaps, or is read inside."""
    steps: list[Operator] = []
    name = output
    while (maker := graph.producers.get(name)) is not None and maker.code in MOVES:
        if graph.consumers[name] and name == output:
            return None
        if len(graph.consumers[maker.inputs[0]]) > 1 or maker.inputs[0] in graph.outputs:
            return None
        steps.insert(0, maker)
        name = maker.inputs[0]
    if maker is None or not _joins(graph, maker, name, output):
        return None
    first = int(maker.options["axis"]) % len(graph.tensors[name].shape)
    axis: int | None = first
    for step in steps:
        axis = None if axis is None else _moved(graph, step, axis)
    if axis is None:
        return None
    return _Found(tuple(_flat(graph, maker, first)), first, tuple(steps), axis)


def _moved(graph: LiteGraph, step: Operator, axis: int) -> int | None:
    """Where an axis is after a step; None where a RESHAPE mixes it with others."""
    if step.code == "TRANSPOSE":
        return _data(graph, step.inputs[1]).index(axis)
    shape, target = (graph.tensors[name].shape for name in (step.inputs[0], step.outputs[0]))
    before = int(np.prod(shape[:axis]))
    for place, length in enumerate(target):
        if int(np.prod(target[:place])) == before and length == shape[axis]:
            return place
    return None


def _joins(graph: LiteGraph, maker: Operator, name: str, output: str) -> bool:
    readers = len(graph.consumers[name])
    plain = maker.options.get("fused_activation_function", "NONE") == "NONE"
    return (
        maker.code == "CONCATENATION"
        and plain
        and readers == (name != output)
        and graph.tensors[name].dtype == "float32"
        and not any(graph.is_constant(value) for value in maker.inputs)
    )


def _flat(graph: LiteGraph, maker: Operator, axis: int) -> list[str]:
    """The values joined, with Concats of Concats along the same axis taken apart."""
    values: list[str] = []
    for value in maker.inputs:
        inner = graph.producers.get(value)
        same = inner is not None and inner.code == "CONCATENATION" and value not in graph.outputs
        if inner is not None and same and len(graph.consumers[value]) == 1:
            rank = len(graph.tensors[value].shape)
            constant = any(graph.is_constant(one) for one in inner.inputs)
            if int(inner.options["axis"]) % rank == axis and not constant:
                values += _flat(graph, inner, axis)
                continue
        values.append(value)
    return values


def _apart(values: Collection[str], ranges: Ranges) -> bool:
    if any(value not in ranges for value in values):
        return False
    widths = [_width(ranges[value]) for value in values]
    return min(widths) > 0 and max(widths) > APART * min(widths)


def _width(entry: Range) -> float:
    return max(entry.high, 0.0) - min(entry.low, 0.0)


def _cut_off(parted: Parted, output: str, found: _Found) -> Parted:
    """The pieces in the place of the output, moved as it was, each by a unit that made it."""
    graph, ranges = parted.graph, dict(parted.ranges)
    tensors, operators = dict(graph.tensors), list(graph.operators)
    pieces: list[str] = []
    for index, value in enumerate(found.values):
        made = _Piece(graph, f"{output}/piece{index}", tensors[value], found.first)
        for step in found.steps:
            made.move(step)
        if value not in graph.producers or made.tensor.name in (*graph.outputs, *pieces):
            made.copy(graph.producers[output].unit)
        operators += made.operators
        tensors.update(made.tensors)
        ranges.update(dict.fromkeys((op.outputs[0] for op in made.operators), ranges[value]))
        ranges[made.tensor.name] = ranges[value]
        pieces.append(made.tensor.name)
    outputs: list[str] = []
    for name in graph.outputs:
        outputs += pieces if name == output else [name]
    made_graph = replace(graph, outputs=tuple(outputs), tensors=tensors, operators=tuple(operators))
    joins = {**parted.joins, output: Join(found.axis, tuple(pieces))}
    return Parted(drop_unused(made_graph), ranges, joins)


class _Piece:
    """One value on its way to be a piece."""

    def __init__(self, graph: LiteGraph, name: str, tensor: Tensor, axis: int) -> None:
        self.graph, self.name, self.tensor, self.axis = graph, name, tensor, axis
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = {}

    def move(self, step: Operator) -> None:
        """The step that the joined value took."""
        axis = _moved(self.graph, step, self.axis)
        assert axis is not None
        if step.code == "TRANSPOSE":
            shape = tuple(self.tensor.shape[a] for a in _data(self.graph, step.inputs[1]))
            self._add("TRANSPOSE", step.inputs[1], shape, step.unit)
        else:
            target = list(self.graph.tensors[step.outputs[0]].shape)
            target[axis] = self.tensor.shape[self.axis]
            self._reshape(tuple(target), step.unit)
        self.axis = axis

    def copy(self, unit: str) -> None:
        """A tensor of its own for a value that has another part already."""
        self._reshape(self.tensor.shape, unit)

    def _reshape(self, shape: tuple[int, ...], unit: str) -> None:
        data = np.array(shape, np.int32)
        constant = Tensor(f"{self.name}/shape{len(self.operators)}", data.shape, "int32", data)
        self.tensors[constant.name] = constant
        self._add("RESHAPE", constant.name, shape, unit)

    def _add(self, code: str, parameter: str, shape: tuple[int, ...], unit: str) -> None:
        count = len(self.operators)
        made = Tensor(self.name + (f"/{count}" if count else ""), shape, "float32")
        options = {"new_shape": shape} if code == "RESHAPE" else {}
        inputs = (self.tensor.name, parameter)
        self.operators.append(Operator(code, inputs, (made.name,), options, unit))
        self.tensors[made.name] = self.tensor = made


def _data(graph: LiteGraph, name: str) -> list[int]:
    data = graph.tensors[name].data
    assert data is not None
    return [int(value) for value in data]
