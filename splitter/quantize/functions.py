"""Several operators that together compute one function of one or two tensors become one look-up.

A lowering writes such a function with whatever float operators are exact (softplus, mish, erf,
x / (1 + |x|)); in integers one table of the whole function is exact to its own rounding, where the
single operators would each round, or have no integer kernel. A function of two tensors of 8 bits
has a table too, of 65,536 entries: worth it where a step between would lose what the result needs
(the root of a sum of squares), or has no kernel at all. Operators on the NPU stay as they are: its
compiler takes no GATHER. Decides which operators are replaced; `lookup` makes the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from splitter.lower import drop_unused
from splitter.quantize.affine import affine, quantize_values
from splitter.quantize.evaluate import evaluates
from splitter.quantize.kernels import FUNCTION, KERNELS
from splitter.quantize.lookup import function_of
from splitter.quantize.ranges import Ranges
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

Roots = Mapping[str, tuple[str, ...]]
Cone = tuple[Operator, ...]


def fold_functions(
    graph: LiteGraph,
    *,
    npu: Collection[str],
    ranges: Ranges | None = None,
    int16: Collection[str] = (),
) -> LiteGraph:
    """The graph with such operators replaced by FUNCTION, whose option `body` holds them.

    Only within a unit, so that no segment border is crossed; units on the NPU are left alone.
    ranges: values of the tensors; without them functions of two tensors stay. int16: tensors of 16
    bits, whose pairs are too many for a table.
    """
    if ranges:
        known = ranges
        graph = _folded(
            graph,
            _roots(graph, npu, most=2, narrow=lambda name: name not in int16),
            lambda root, cone: len(root) == 2 and _worth_pairs(graph, cone, known),
        )
    roots = _roots(graph, npu, most=1)
    return _folded(graph, roots, lambda root, cone: _worth(graph, cone))


def _folded(
    graph: LiteGraph, roots: Roots, worth: Callable[[tuple[str, ...], Cone], bool]
) -> LiteGraph:
    places = {op.outputs[0]: place for place, op in enumerate(graph.operators) if op.outputs}
    replaced: dict[str, Operator] = {}
    for name, root in roots.items():
        if root == (name,) or _inside(graph, roots, name):
            continue
        cone = _cone(graph, places, name, root)
        if worth(root, cone):
            replaced[name] = _function(graph, name, root, cone)
    if not replaced:
        return graph
    operators = [replaced.get(op.outputs[0], op) for op in graph.operators]
    return drop_unused(replace(graph, operators=tuple(operators)))


def _roots(
    graph: LiteGraph,
    npu: Collection[str],
    *,
    most: int,
    narrow: Callable[[str], bool] = lambda name: True,
) -> Roots:
    """For every tensor the float tensors it is a function of, itself where these are none or more
    than `most`. narrow: whether a tensor has 8 bits; asked of pairs."""
    roots: dict[str, tuple[str, ...]] = {}
    for op in graph.operators:
        for name in op.outputs:
            roots[name] = (name,)
        if op.unit in npu or len(op.outputs) != 1 or not evaluates(op.code):
            continue
        varied = [name for name in op.inputs if not _uniform(graph, name)]
        sources = tuple(dict.fromkeys(r for n in varied for r in _sources(graph, roots, n, op)))
        known = [graph.tensors[root] for root in sources]
        shape = graph.tensors[op.outputs[0]].shape
        real = all(t.dtype == "float32" and t.data is None for t in known)
        if not real or not 1 <= len(known) <= most or shape not in [t.shape for t in known]:
            continue
        if len(known) == 1 or all(map(narrow, sources)):
            roots[op.outputs[0]] = sources
    return roots


def _sources(graph: LiteGraph, roots: Roots, name: str, op: Operator) -> tuple[str, ...]:
    """The roots of an input; a value of another unit is a root itself."""
    maker = graph.producers.get(name)
    return roots.get(name, (name,)) if maker is not None and maker.unit == op.unit else (name,)


def _uniform(graph: LiteGraph, name: str) -> bool:
    """A constant with one value everywhere."""
    data = graph.tensors[name].data
    return data is not None and data.size > 0 and bool(np.all(data == data.reshape(-1)[0]))


def _inside(graph: LiteGraph, roots: Roots, name: str) -> bool:
    """Whether only further operators of the same function, in the same unit, read the tensor."""
    if name in graph.outputs:
        return False
    unit = graph.producers[name].unit
    readers = graph.consumers[name]
    return bool(readers) and all(
        reader.unit == unit and roots[reader.outputs[0]] == roots[name] for reader in readers
    )


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


def _worth(graph: LiteGraph, cone: Cone) -> bool:
    """Many operators, or several of which one has no int8 kernel. One alone is `lookup`'s."""
    if len(cone) < 2 or graph.tensors[cone[-1].outputs[0]].dtype not in TABLES:
        return False
    missing = any(op.code not in KERNELS or not KERNELS[op.code].int8 for op in cone)
    return missing or len(cone) >= FEWEST


def _worth_pairs(graph: LiteGraph, cone: Cone, ranges: Ranges) -> bool:
    """An operator without a kernel, or one inside that would lose what the result needs."""
    if graph.tensors[cone[-1].outputs[0]].dtype not in TABLES:
        return False
    made = {op.outputs[0] for op in cone}
    return any(
        op.code in PAIRS
        or (op.code in STEEP and op.inputs[0] in made and _steep_loss(graph, op, ranges) > LOSS)
        for op in cone
    )


def _steep_loss(graph: LiteGraph, op: Operator, ranges: Ranges) -> float:
    """The relative error of a function of one tensor whose input is rounded to 8 bits."""
    function, entry = function_of(graph, op), ranges.get(op.inputs[0])
    if function is None or entry is None or not entry.values.size:
        return 0.0
    values = entry.values.astype(np.float64)
    exact = function(values)
    return _rms(function(_rounded(values)) - exact) / max(_rms(exact), 1e-30)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _rounded(values: Array) -> Array:
    """The values as 8 bits over their range hold them."""
    q = affine(float(values.min()), float(values.max()), bits=8, symmetric=False)
    return (quantize_values(values, q, 8) - q.zero_point[0]) * q.scale[0]


def _function(graph: LiteGraph, name: str, root: tuple[str, ...], cone: Cone) -> Operator:
    used = {tensor for op in cone for tensor in (*op.inputs, *op.outputs) if tensor}
    tensors = {tensor: graph.tensors[tensor] for tensor in used}
    body = LiteGraph(root, (name,), tensors, cone)
    return Operator(FUNCTION, root, (name,), {"body": body}, cone[-1].unit)
