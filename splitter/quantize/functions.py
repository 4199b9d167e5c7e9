"""Several operators that together compute one function of one or two tensors become one look-up.

A lowering writes such a function with whatever float operators are exact (softplus, mish, erf,
x / (1 + |x|)); in integers one table of the whole function is exact to its own rounding, where the
single operators would each round, or have no integer kernel. A function of two tensors of 8 bits
has a table too, of 65,536 entries: worth it where a step between would lose what the result needs
(the root of a sum of squares), or has no kernel at all; of 16 bits, a function of the sum of their
squares (`squares`). Functions stay within their unit, so that no segment border is crossed, unless
the value between two units is one that the second takes apart: the logarithm of a power plus a
small number reads the power's source. Operators on the NPU stay as they are: its
compiler takes no GATHER. Decides which operators are replaced; `lookup` makes the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from splitter.lower import drop_unused
from splitter.quantize.affine import affine, quantize_values
from splitter.quantize.evaluate import evaluates
from splitter.quantize.kernels import FUNCTION, KERNELS
from splitter.quantize.lookup import function_of
from splitter.quantize.ranges import Ranges
from splitter.quantize.squares import sum_of_squares
from splitter.tflite.types import Array, LiteGraph, Operator

FEWEST = 3
"""Operators from which on a look-up (three operators) replaces ones that all have kernels."""


TABLES = ("float32", "bool", "int32")
"""Types that a table holds; an integer result (an index computed from a position) and conditions
keep their values."""

STEEP = frozenset(("SQRT", "LOG"))
"""Functions that take apart what lies near 0."""

PAIRS = frozenset(("ATAN2", "POW", "FLOOR_DIV", "FLOOR_MOD"))
"""Functions of two tensors without an integer kernel."""

LOSS = 0.02
"""Relative error, by rounding to 8 bits what a function reads, from which on a table for the whole
is worth its size."""

Cone = tuple[Operator, ...]


def fold_functions(
    graph: LiteGraph,
    *,
    npu: Collection[str],
    ranges: Ranges | None = None,
    int16: Collection[str] = (),
) -> LiteGraph:
    """The graph with such operators replaced by FUNCTION, whose option `body` holds them.

    Units on the NPU are left alone. ranges: values of the tensors; without them functions of two
    tensors stay, and units are not crossed. int16: tensors of 16 bits.
    """
    if ranges:
        losses = _Losses(ranges, int16)
        for across, most in ((True, 2), (True, 1), (False, 2)):
            roots = _Roots(graph, npu, most=most, across=across)
            worth = partial(losses.worth, graph, across=across)
            graph = _folded(graph, roots, worth, int16)
    return _folded(graph, _Roots(graph, npu, most=1), partial(_worth, graph))


def _folded(
    graph: LiteGraph,
    roots: _Roots,
    worth: Callable[[tuple[str, ...], Cone], bool],
    int16: Collection[str] = (),
) -> LiteGraph:
    places = {op.outputs[0]: place for place, op in enumerate(graph.operators) if op.outputs}
    replaced: dict[str, Operator] = {}
    for name, root in roots.known.items():
        if root == (name,) or roots.inside(name):
            continue
        cone = _cone(graph, places, name, root)
        if worth(root, cone):
            replaced[name] = _function(graph, root, cone, wide=_is_wide(root, int16))
    if not replaced:
        return graph
    operators = [replaced.get(op.outputs[0], op) for op in graph.operators]
    return drop_unused(replace(graph, operators=tuple(operators)))


class _Roots:
    """For every tensor the float tensors it is a function of, itself where these are none or more
    than `most`. across: also of other units' roots."""

    def __init__(
        self, graph: LiteGraph, npu: Collection[str], *, most: int, across: bool = False
    ) -> None:
        self._graph, self._npu, self._across = graph, npu, across
        self.known: dict[str, tuple[str, ...]] = {}
        for op in graph.operators:
            self.known.update({name: (name,) for name in op.outputs})
            if op.unit in npu or len(op.outputs) != 1 or not evaluates(op.code):
                continue
            varied = [name for name in op.inputs if not _uniform(graph, name)]
            sources = tuple(dict.fromkeys(r for name in varied for r in self._of(name, op)))
            found = [graph.tensors[root] for root in sources]
            shape = graph.tensors[op.outputs[0]].shape
            real = all(t.dtype == "float32" and t.data is None for t in found)
            if real and 1 <= len(found) <= most and shape in [t.shape for t in found]:
                self.known[op.outputs[0]] = sources

    def _of(self, name: str, op: Operator) -> tuple[str, ...]:
        """The roots of an input; a value of another unit is a root itself, unless units may be
        crossed."""
        maker = self._graph.producers.get(name)
        near = maker is not None and (self._across or maker.unit == op.unit)
        return self.known.get(name, (name,)) if near else (name,)

    def inside(self, name: str) -> bool:
        """Whether only further operators of the same function read the tensor."""
        if name in self._graph.outputs:
            return False
        unit = self._graph.producers[name].unit
        readers = self._graph.consumers[name]
        return bool(readers) and all(
            (self._across or reader.unit == unit)
            and self.known[reader.outputs[0]] == self.known[name]
            for reader in readers
        )


def _uniform(graph: LiteGraph, name: str) -> bool:
    """A constant with one value everywhere."""
    data = graph.tensors[name].data
    return data is not None and data.size > 0 and bool(np.all(data == data.reshape(-1)[0]))


def _cone(graph: LiteGraph, places: Mapping[str, int], name: str, root: tuple[str, ...]) -> Cone:
    """The operators between roots and tensor, in order. places: of operators, by first output."""
    wanted, found = [name], set()
    while wanted:
        tensor = wanted.pop()
        if tensor in found or tensor in root or tensor not in graph.producers:
            continue
        found.add(tensor)
        wanted += graph.producers[tensor].inputs
    inside = sorted(places[tensor] for tensor in found if tensor in places)
    return tuple(graph.operators[place] for place in inside)


def _worth(graph: LiteGraph, root: tuple[str, ...], cone: Cone) -> bool:
    """Many operators, or several of which one has no int8 kernel. One alone is `lookup`'s."""
    if len(cone) < 2 or graph.tensors[cone[-1].outputs[0]].dtype not in TABLES:
        return False
    missing = any(op.code not in KERNELS or not KERNELS[op.code].int8 for op in cone)
    return missing or len(cone) >= FEWEST


class _Losses:
    """What is lost where a function is computed step by step; of a graph and what is seen in it."""

    def __init__(self, ranges: Ranges, int16: Collection[str]) -> None:
        self._ranges, self._int16 = ranges, int16

    def worth(self, graph: LiteGraph, root: tuple[str, ...], cone: Cone, *, across: bool) -> bool:
        """An operator without a kernel, or one inside that would lose what the result needs;
        only the latter over the borders of units, and only then for one root."""
        if graph.tensors[cone[-1].outputs[0]].dtype not in TABLES:
            return False
        crosses = len({op.unit for op in cone}) > 1
        if across != crosses or (len(root) == 1 and not across):
            return False
        wide = _is_wide(root, self._int16)
        if wide and not sum_of_squares(_body(graph, root, cone)):
            return False
        if not across and len(root) == 2 and any(op.code in PAIRS for op in cone):
            return True
        reach = {name: {name} for name in root}
        for op in cone:
            reach[op.outputs[0]] = {r for name in op.inputs for r in reach.get(name, ())}
        inside = [op for op in cone if op.code in STEEP and op.inputs[0] not in root]
        steep = [op for op in inside if len(reach[op.inputs[0]]) == len(root)]
        return any(wide or self._steep(graph, op) > LOSS for op in steep)

    def _steep(self, graph: LiteGraph, op: Operator) -> float:
        """The relative error of a function of one tensor whose input is rounded."""
        function, entry = function_of(graph, op), self._ranges.get(op.inputs[0])
        if function is None or entry is None or not entry.values.size:
            return 0.0
        values = entry.values.astype(np.float64)
        exact = function(values)
        rounded = _rounded(values, 16 if op.inputs[0] in self._int16 else 8)
        return _rms(function(rounded) - exact) / max(_rms(exact), 1e-30)


def _is_wide(root: tuple[str, ...], int16: Collection[str]) -> bool:
    """Whether a pair has too many values for a table of all of them."""
    return len(root) == 2 and any(name in int16 for name in root)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _rounded(values: Array, bits: int) -> Array:
    """The values as so many bits over their range hold them."""
    q = affine(float(values.min()), float(values.max()), bits=bits, symmetric=False)
    return (quantize_values(values, q, bits) - q.zero_point[0]) * q.scale[0]


def _function(graph: LiteGraph, root: tuple[str, ...], cone: Cone, *, wide: bool) -> Operator:
    body = _body(graph, root, cone)
    options = {"body": body} | ({"squares": sum_of_squares(body)} if wide else {})
    return Operator(FUNCTION, root, body.outputs, options, cone[-1].unit)


def _body(graph: LiteGraph, root: tuple[str, ...], cone: Cone) -> LiteGraph:
    used = {tensor for op in cone for tensor in (*op.inputs, *op.outputs) if tensor}
    tensors = {tensor: graph.tensors[tensor] for tensor in used}
    return LiteGraph(root, cone[-1].outputs, tensors, cone)
