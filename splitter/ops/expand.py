"""Broadcasting written out, for compilers that take at most one input smaller than the output.

A constant is stored at full size. A tensor is repeated along an axis by CONCATENATION, or by
FULLY_CONNECTED with a weight of 1 an output, which int8 holds exactly. Values do not change.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.registry import Emitter

COPIES = 16
"""Repetitions up to which CONCATENATION is used where FULLY_CONNECTED would need a transpose."""

LARGEST = 1 << 20
"""Elements of a constant at full size, in int8 a megabyte."""


def expanded(e: Emitter, x: str, shape: tuple[int, ...]) -> str:
    """x, which broadcasts to `shape` like numpy, with every element written out."""
    data = e.tensors[x].data
    if data is not None:
        return e.const(np.broadcast_to(data, shape), "expanded", dtype=e.dtype(x))
    x = e.reshape(x, (1,) * (len(shape) - len(e.shape(x))) + e.shape(x))
    for axis, count in enumerate(shape):
        if e.shape(x)[axis] != count:
            x = _repeated(e, x, axis, count)
    return x


def _repeated(e: Emitter, x: str, axis: int, count: int) -> str:
    """An axis of length 1 made `count` long."""
    shape = (*e.shape(x)[:axis], count, *e.shape(x)[axis + 1 :])
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    if after > 1 and count <= COPIES:
        copy = e.reshape(x, (before, 1, after))
        return e.reshape(e.concat([copy] * count, 1), shape)
    ones = e.const(np.ones((count, 1)), "ones")
    y = e.op(
        "FULLY_CONNECTED",
        [e.reshape(x, (before * after, 1)), ones, e.const(np.zeros(count), "bias")],
        (before * after, count),
        hint="repeated",
        fused_activation_function="NONE",
        weights_format="DEFAULT",
        keep_num_dims=False,
    )
    if after > 1:
        y = e.transpose(e.reshape(y, (before, after, count)), (0, 2, 1))
    return e.reshape(y, shape)


def choose_side(graph: Graph, unit: Unit) -> int:
    """Which input to write out: a constant, else the one that is repeated along the last axis."""
    out = graph.shape(unit.outputs[0])
    for index, name in enumerate(unit.inputs):
        if name in graph.constants:
            return index
    shapes = [graph.shape(name) for name in unit.inputs]
    return next((i for i, s in enumerate(shapes) if s and s[-1] != out[-1]), 0)


def both_sides(graph: Graph, unit: Unit) -> str | None:
    """None where each of the two inputs is smaller than the output."""
    if graph.values[unit.inputs[0]].dtype not in ("float32", "float16", "float64"):
        return "it is not of floats"
    out = graph.values[unit.outputs[0]]
    if any(graph.values[name].elements == out.elements for name in unit.inputs):
        return "one input has the size of the output already"
    side = unit.inputs[choose_side(graph, unit)]
    if side in graph.constants and out.elements > LARGEST:
        return f"a constant of {out.elements} elements, over {LARGEST}"
    return None
