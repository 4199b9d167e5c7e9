"""Operators along one axis beside reductions: CumSum, LogSoftmax, Hardmax, OneHot, Trilu.

CumSum of floats is a product with a triangular matrix: exact, and a 32-bit sum in integers.
"""

from __future__ import annotations

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import broadcast, two
from splitter.ops.registry import Emitter, Lowering, Op, lite_dtype
from splitter.ops.resize import along

LONGEST = 2048
"""Elements of an axis up to which CumSum is a matrix (2048^2 int8 weights are 4 MB)."""


def emit_triangle(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    axis = int(unit.attrs["axis"]) % len(e.shape(x))
    size = e.shape(x)[axis]
    matrix = np.tril(np.ones((size, size)), -1 if unit.attrs.get("exclusive") else 0)
    matrix = matrix[::-1, ::-1] if unit.attrs.get("reverse") else matrix
    e.bind(along(e, x, axis, np.ascontiguousarray(matrix)), unit)


def emit_cumsum(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    axis = e.const(int(unit.attrs["axis"]) % len(e.shape(x)), "axis", dtype="int32")
    e.finish(
        "CUMSUM",
        unit,
        [x, axis],
        exclusive=bool(unit.attrs.get("exclusive")),
        reverse=bool(unit.attrs.get("reverse")),
    )


def emit_cumprod(e: Emitter, unit: Unit) -> None:
    """One product an element: each is the one before times the next of the data."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axis = int(e.graph.constants[unit.inputs[1]].reshape(())) % len(shape)
    size = shape[axis]
    one_wide = tuple(1 if a == axis else n for a, n in enumerate(shape))
    begins = [[i if a == axis else 0 for a in range(len(shape))] for i in range(size)]
    order = range(size)[::-1] if unit.attrs.get("reverse") else range(size)
    total = e.const(np.ones(one_wide), "ones", dtype=e.dtype(x))
    results = [total] * size
    for index in order:
        exclusive = total
        total = two(e, "MUL", total, e.slice(x, begins[index], one_wide))
        results[index] = exclusive if unit.attrs.get("exclusive") else total
    e.bind(e.concat(results, axis), unit)


def _few_factors(graph: Graph, unit: Unit) -> str | None:
    if unit.inputs[1] not in graph.constants:
        return "its axis is not constant"
    shape = graph.shape(unit.inputs[0])
    size = shape[int(graph.constants[unit.inputs[1]].reshape(())) % len(shape)]
    return None if size <= 64 else f"{size} factors, over 64"


def _short(graph: Graph, unit: Unit) -> str | None:
    value = graph.values[unit.inputs[0]]
    if lite_dtype(value.dtype) != "float32":
        return "it is not of floats"
    size = value.shape[int(unit.attrs["axis"]) % len(value.shape)]
    return None if size <= LONGEST else f"{size} elements, over {LONGEST}"


def _not_short(graph: Graph, unit: Unit) -> str | None:
    return None if _short(graph, unit) else "a matrix holds it"


def emit_log_softmax(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    rank = len(e.shape(x))
    axis = int(unit.attrs.get("axis", -1)) % rank
    perm = (*(a for a in range(rank) if a != axis), axis)
    moved = e.transpose(x, perm)
    y = e.op("LOG_SOFTMAX", [moved], e.shape(moved), hint="log_softmax")
    e.bind(e.transpose(y, tuple(perm.index(a) for a in range(rank))), unit)


def emit_hardmax(e: Emitter, unit: Unit) -> None:
    """1 at the first largest element of the axis, 0 elsewhere."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axis = int(unit.attrs.get("axis", -1)) % len(shape)
    best = e.op(
        "ARG_MAX",
        [x, e.const(axis, "axis", dtype="int32")],
        tuple(size for a, size in enumerate(shape) if a != axis),
        dtype="int32",
        output_type="INT32",
        hint="best",
    )
    best = e.reshape(best, tuple(1 if a == axis else n for a, n in enumerate(shape)))
    _one_hot(e, unit, best, axis, shape[axis], (0, 1))


def emit_one_hot(e: Emitter, unit: Unit) -> None:
    """Negative indices count from the end; what lies outside is `off` everywhere."""
    indices = e.value(unit.inputs[0])
    shape = e.graph.shape(unit.outputs[0])
    axis = int(unit.attrs.get("axis", -1)) % len(shape)
    if e.dtype(indices) != "int32":
        indices = e.op("CAST", [indices], e.shape(indices), dtype="int32", hint="indices")
    indices = e.reshape(indices, tuple(1 if a == axis else n for a, n in enumerate(shape)))
    depth = int(unit.attrs["depth"])
    _one_hot(e, unit, indices, axis, depth, unit.attrs.get("values", (0, 1)), wrap=True)


def _one_hot(
    e: Emitter,
    unit: Unit,
    indices: str,
    axis: int,
    depth: int,
    values: tuple[float, float],
    *,
    wrap: bool = False,
) -> None:
    """indices [.., 1, ..] against 0..depth-1 along the axis."""
    rank = len(e.shape(indices))
    dtype = lite_dtype(e.graph.values[unit.outputs[0]].dtype)
    hit = _equals(e, indices, np.arange(depth), axis, rank)
    if wrap:
        ends = _equals(e, indices, np.arange(-depth, 0), axis, rank)
        hit = e.op("LOGICAL_OR", [hit, ends], e.shape(hit), dtype="bool", hint="hit")
    on, off = (e.const(values[i], name, dtype=dtype) for i, name in ((1, "on"), (0, "off")))
    e.finish("SELECT_V2", unit, [hit, on, off])


def _equals(e: Emitter, indices: str, numbers: Array, axis: int, rank: int) -> str:
    column = numbers.reshape([-1 if a == axis else 1 for a in range(rank)])
    other = e.const(column, "positions", dtype="int32")
    shape = broadcast(e.shape(indices), column.shape)
    return e.op("EQUAL", [indices, other], shape, dtype="bool", hint="hit")


def emit_trilu(e: Emitter, unit: Unit) -> None:
    """A choice by a constant mask, which also keeps infinities out."""
    x = e.value(unit.inputs[0])
    rows, columns = e.shape(x)[-2:]
    k = int(unit.attrs.get("k", 0))
    ones = np.ones((rows, columns), bool)
    mask: Array = np.triu(ones, k) if unit.attrs.get("upper", 1) else np.tril(ones, k)
    mask = mask.reshape((1,) * (len(e.shape(x)) - 2) + mask.shape)
    zero = e.const(0, "zero", dtype=e.dtype(x))
    if e.dtype(x) == "bool":
        e.finish("LOGICAL_AND", unit, [x, e.const(mask, "mask", dtype="bool")])
        return
    e.finish("SELECT_V2", unit, [e.const(mask, "mask", dtype="bool"), x, zero])


OPS = (
    Op(
        "CumSum",
        (
            Lowering("triangular_matrix", emit_triangle, applies=_short),
            Lowering("cumsum", emit_cumsum, applies=_not_short),
        ),
    ),
    Op("CumProd", (Lowering("products", emit_cumprod, applies=_few_factors),)),
    Op("LogSoftmax", (Lowering("log_softmax", emit_log_softmax),), commute="axis"),
    Op("Hardmax", (Lowering("arg_max", emit_hardmax),)),
    Op("OneHot", (Lowering("equal", emit_one_hot),)),
    Op("Trilu", (Lowering("select", emit_trilu),)),
)
