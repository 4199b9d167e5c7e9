"""Several operators that together compute one function of one tensor become one look-up.

A lowering writes such a function with whatever float operators are exact (softplus, mish, erf,
x / (1 + |x|)); in integers one table of the whole function is exact to its own rounding, where the
single operators would each round, or have no integer kernel. Operators on the NPU stay as they are:
its compiler takes no GATHER. Decides which operators are replaced; `lookup` makes the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from splitter.lower import drop_unused
from splitter.quantize.evaluate import evaluates
from splitter.quantize.kernels import FUNCTION, KERNELS
from splitter.tflite.types import LiteGraph, Operator

FEWEST = 3
"""Operators from which on a look-up (three operators) replaces ones that all have kernels."""


TABLES = ("float32", "bool", "int32")
"""Types that a table holds; whole numbers and conditions exactly."""


RESULTS = ("float32", "bool", "int32")
"""Types a table can hold; an integer result (an index computed from a position) keeps its value."""


def fold_functions(graph: LiteGraph, *, npu: Collection[str]) -> LiteGraph:
    """The graph with such operators replaced by FUNCTION, whose option `body` holds them.

    Only within a unit, so that no segment border is crossed; units on the NPU are left alone.
    """
    roots = _roots(graph, npu)
    places = {op.outputs[0]: place for place, op in enumerate(graph.operators) if op.outputs}
    replaced: dict[str, Operator] = {}
    for name, root in roots.items():
        if root == name or _inside(graph, roots, name):
            continue
        cone = _cone(graph, places, name, root)
        if _worth(graph, cone):
            replaced[name] = _function(graph, name, root, cone)
    if not replaced:
        return graph
    operators = [replaced.get(op.outputs[0], op) for op in graph.operators]
    return drop_unused(replace(graph, operators=tuple(operators)))


def _roots(graph: LiteGraph, npu: Collection[str]) -> Mapping[str, str]:
    """For every tensor the one float tensor it is a function of, itself where there is none."""
    roots: dict[str, str] = {}
    for op in graph.operators:
        for name in op.outputs:
            roots[name] = name
        if op.unit in npu or len(op.outputs) != 1 or not evaluates(op.code):
            continue
        sources = {
            _source(graph, roots, name, op.unit) for name in op.inputs if not _uniform(graph, name)
        }
        if len(sources) != 1:
            continue
        (root,) = sources
        known, shape = graph.tensors[root], graph.tensors[op.outputs[0]].shape
        if known.dtype == "float32" and known.data is None and known.shape == shape:
            roots[op.outputs[0]] = root
    return roots


def _source(graph: LiteGraph, roots: Mapping[str, str], name: str, unit: str) -> str:
    """The root of an input; a value of another unit is a root itself."""
    maker = graph.producers.get(name)
    return roots.get(name, name) if maker is not None and maker.unit == unit else name


def _uniform(graph: LiteGraph, name: str) -> bool:
    """A constant with one value everywhere."""
    data = graph.tensors[name].data
    return data is not None and data.size > 0 and bool(np.all(data == data.reshape(-1)[0]))


def _inside(graph: LiteGraph, roots: Mapping[str, str], name: str) -> bool:
    """Whether only further operators of the same function, in the same unit, read the tensor."""
    if name in graph.outputs:
        return False
    unit = graph.producers[name].unit
    readers = graph.consumers[name]
    return bool(readers) and all(
        reader.unit == unit and roots[reader.outputs[0]] == roots[name] for reader in readers
    )


def _cone(
    graph: LiteGraph, places: Mapping[str, int], name: str, root: str
) -> tuple[Operator, ...]:
    """The operators between root and tensor, in order. places: of operators, by first output."""
    wanted, found = [name], set()
    while wanted:
        tensor = wanted.pop()
        if tensor in found or tensor == root or tensor not in graph.producers:
            continue
        found.add(tensor)
        wanted += graph.producers[tensor].inputs
    inside = sorted(places[tensor] for tensor in found if tensor in places)
    return tuple(graph.operators[place] for place in inside)


def _worth(graph: LiteGraph, cone: tuple[Operator, ...]) -> bool:
    """Many operators, or several of which one has no int8 kernel. One alone is `lookup`'s."""
    if len(cone) < 2 or graph.tensors[cone[-1].outputs[0]].dtype not in TABLES:
        return False
    missing = any(op.code not in KERNELS or not KERNELS[op.code].int8 for op in cone)
    return missing or len(cone) >= FEWEST


def _function(graph: LiteGraph, name: str, root: str, cone: tuple[Operator, ...]) -> Operator:
    used = {tensor for op in cone for tensor in (*op.inputs, *op.outputs) if tensor}
    tensors = {tensor: graph.tensors[tensor] for tensor in used}
    body = LiteGraph((root,), (name,), tensors, cone)
    return Operator(FUNCTION, (root,), (name,), {"body": body}, cone[-1].unit)
