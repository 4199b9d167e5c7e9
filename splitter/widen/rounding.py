"""Float graphs in which chosen units compute as they would in 8 bits: their inputs and results are
rounded to the integer model's parameters.

What the rounding of one unit costs can be seen so, at the speed of the float graph. Decides which
tensors of a unit its width concerns: those that the integer graph has, with what data movement
makes of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from splitter.quantize.kernels import KERNELS, data_inputs, needs_table
from splitter.quantize.movement import makers
from splitter.tflite.types import LiteGraph, Operator, Tensor


@dataclass(frozen=True)
class Group:
    """Units whose width is decided together.

    tensors: the values that they write. edges: (operator index, input index) of values that they
    read and others write, which an operator of 8 bits rounds to 8 bits. An input of the model is a
    unit of its own name here, with the edges where it is read.
    """

    units: tuple[str, ...]
    tensors: frozenset[str]
    edges: frozenset[tuple[int, int]]

    def merged(self, other: Group) -> Group:
        """Both as one. Rounding a value twice changes nothing, so edges between them may stay."""
        return Group(
            self.units + other.units, self.tensors | other.tensors, self.edges | other.edges
        )


def group_units(
    graph: LiteGraph, integer: LiteGraph, units: Collection[str], inputs: Collection[str] = ()
) -> tuple[Group, ...]:
    """One group for each of the units that computes values, in the order of the graph.

    graph: float, with the tensors of `integer`, in which they have 8 bits. inputs: of the model,
    that may be widened too.
    """
    given = [_input_group(graph, name) for name in inputs if _rounded(graph, integer, name)]
    owner = makers(graph)
    tensors: dict[str, list[str]] = {}
    for name, unit in owner.items():
        if unit in units and _rounded(graph, integer, name):
            tensors.setdefault(unit, []).append(name)
    edges: dict[str, list[tuple[int, int]]] = {unit: [] for unit in tensors}
    for index, position, name in _reads(graph):
        unit = graph.operators[index].unit
        if unit in tensors and owner.get(name) != unit and _rounded(graph, integer, name):
            edges[unit].append((index, position))
    made = (
        Group((unit,), frozenset(names), frozenset(edges[unit])) for unit, names in tensors.items()
    )
    return (*given, *made)


def _input_group(graph: LiteGraph, name: str) -> Group:
    reads = (
        (index, position)
        for index, op in enumerate(graph.operators)
        for position, read in enumerate(op.inputs)
        if read == name
    )
    return Group((name,), frozenset([name]), frozenset(reads))


def rounded(graph: LiteGraph, integer: LiteGraph, group: Group) -> LiteGraph:
    """The float graph with the group's values rounded as in the integer graph."""
    rounder = _Rounder(graph, integer)
    for index, op in enumerate(graph.operators):
        rounder.operator(op, [p for i, p in group.edges if i == index], group.tensors)
    return replace(graph, tensors=rounder.tensors, operators=tuple(rounder.operators))


def _data(op: Operator) -> tuple[int, ...]:
    return data_inputs(op.code, len(op.inputs)) if op.code in KERNELS else ()


def _reads(graph: LiteGraph) -> Iterator[tuple[int, int, str]]:
    """(operator index, input index, value) where 8 bits would be asked of an input."""
    for index, op in enumerate(graph.operators):
        if op.code in KERNELS and not KERNELS[op.code].same and not needs_table(op.code, 8):
            yield from ((index, i, op.inputs[i]) for i in _data(op) if op.inputs[i])


def _rounded(graph: LiteGraph, integer: LiteGraph, name: str) -> bool:
    """Whether a float value has 8 bits in the integer graph."""
    tensor = integer.tensors.get(name)
    known = graph.tensors[name].dtype == "float32" and graph.tensors[name].data is None
    return known and tensor is not None and tensor.dtype == "int8" and bool(tensor.quantization)


class _Rounder:
    """Writes operators with QUANTIZE and DEQUANTIZE where values are rounded."""

    def __init__(self, graph: LiteGraph, integer: LiteGraph) -> None:
        self.graph, self.integer = graph, integer
        self.tensors = dict(graph.tensors)
        self.operators: list[Operator] = []
        self._read: dict[str, str] = {}

    def operator(self, op: Operator, edges: Collection[int], written: Collection[str]) -> None:
        inputs = list(op.inputs)
        for position in edges:
            inputs[position] = self._edge(inputs[position])
        outputs = [self._exact(name) if name in written else name for name in op.outputs]
        self.operators.append(replace(op, inputs=tuple(inputs), outputs=tuple(outputs)))
        for name, exact in zip(op.outputs, outputs, strict=True):
            if name in written:
                self._round(name, exact, name)

    def _exact(self, name: str) -> str:
        """The unrounded value, under another name; the value keeps its own."""
        exact = f"{name}/exact"
        self.tensors[exact] = replace(self.tensors[name], name=exact)
        return exact

    def _edge(self, name: str) -> str:
        """The value as an operator of 8 bits reads it, once for all of them."""
        if name not in self._read:
            self._read[name] = f"{name}/read"
            self.tensors[f"{name}/read"] = replace(self.tensors[name], name=f"{name}/read")
            self._round(name, name, f"{name}/read")
        return self._read[name]

    def _round(self, name: str, source: str, target: str) -> None:
        steps = f"{target}/steps"
        shape, like = self.tensors[name].shape, self.integer.tensors[name]
        self.tensors[steps] = Tensor(steps, shape, "int8", None, like.quantization)
        self.operators += [
            Operator("QUANTIZE", (source,), (steps,), {}),
            Operator("DEQUANTIZE", (steps,), (target,), {}),
        ]
