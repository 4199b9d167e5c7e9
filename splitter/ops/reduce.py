"""Reductions over axes, TopK, ArgMax and ArgMin."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.linear import over_rows
from splitter.ops.registry import Emitter, Lowering, Op


def axes_of(graph: Graph, unit: Unit) -> tuple[int, ...]:
    """The reduced axes, not negative, in order; all when the unit says nothing of axes."""
    rank = len(graph.shape(unit.inputs[0]))
    axes = unit.attrs.get("axes")
    if axes is None:
        return tuple(range(rank))
    return tuple(sorted(int(axis) % rank for axis in axes))


def reduce(
    e: Emitter, code: str, x: str, axes: tuple[int, ...], keep: bool, *, out: str = ""
) -> str:
    """A TFLite reduction of x over axes."""
    shape = e.shape(x)
    if e.dtype(x) == "bool":
        code = {"REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL"}.get(code, code)
    result = tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes
    )
    table = e.const(axes, "axes", dtype="int32")
    return e.op(
        code, [x, table], result, dtype=e.dtype(x), out=out, hint=code.lower(), keep_dims=keep
    )


def reduction(name: str, code: str) -> Op:
    def emit(e: Emitter, unit: Unit) -> None:
        x, axes = e.value(unit.inputs[0]), axes_of(e.graph, unit)
        if not axes:
            e.reshape(x, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])
            return
        reduce(e, code, x, axes, bool(unit.attrs.get("keepdims", 1)), out=unit.outputs[0])

    return Op(name, (Lowering(code.lower(), emit),), commute="axis")


def sum_by_matmul(name: str, *, mean: bool) -> Lowering:
    """A sum or mean over the last axis as FULLY_CONNECTED with constant weights: 32-bit
    accumulation, and a scale of its own for the result."""

    def emit(e: Emitter, unit: Unit) -> None:
        x, axes = e.value(unit.inputs[0]), axes_of(e.graph, unit)
        shape = e.shape(x)
        size = prod(shape[axis] for axis in axes)
        flat = e.reshape(x, (*shape[: axes[0]], size))
        weight = e.const(np.full((1, size), 1.0 / size if mean else 1.0), "ones")
        over_rows(e, flat, weight, "", out=unit.outputs[0], shape=e.graph.shape(unit.outputs[0]))

    def applies(graph: Graph, unit: Unit) -> str | None:
        axes, rank = axes_of(graph, unit), len(graph.shape(unit.inputs[0]))
        if graph.values[unit.inputs[0]].dtype != "float32":
            return "it is not a float reduction"
        return None if axes and axes == tuple(range(rank))[-len(axes) :] else "not the last axes"

    return Lowering(name, emit, applies=applies)


def emit_top_k(e: Emitter, unit: Unit) -> None:
    """TOPK_V2 over the last axis (largest first; ties by the lower index, as in ONNX Runtime)."""
    x = e.value(unit.inputs[0])
    rank = len(e.shape(x))
    axis = int(unit.attrs.get("axis", -1)) % rank
    perm = (*(a for a in range(rank) if a != axis), axis)
    inverse = tuple(perm.index(a) for a in range(rank))
    smallest = not unit.attrs.get("largest", 1)
    x = e.transpose(x, perm)
    if smallest:
        x = one(e, "NEG", x)
    k = e.const(int(unit.attrs["k"]), "k", dtype="int32")
    shape = (*e.shape(x)[:-1], int(unit.attrs["k"]))
    last = axis == rank - 1
    names = (*unit.outputs, "")[:2]
    values, indices = e.multi(
        "TOPK_V2",
        [x, k],
        [
            (names[0] if last and not smallest else "", shape, e.dtype(x)),
            (names[1] if last else "", shape, "int32"),
        ],
        hint="topk",
    )
    if smallest and names[0]:
        values = e.op(
            "NEG", [values], shape, dtype=e.dtype(x), out=names[0] if last else "", hint="neg"
        )
    if not last:
        for tensor, name in ((values, names[0]), (indices, names[1])):
            if name:
                e.transpose(tensor, inverse, out=name)


def arg(name: str, code: str) -> Op:
    def emit(e: Emitter, unit: Unit) -> None:
        x = e.value(unit.inputs[0])
        shape = e.shape(x)
        axis = int(unit.attrs.get("axis", 0)) % len(shape)
        table = e.const(axis, "axis", dtype="int32")
        reduced = tuple(size for a, size in enumerate(shape) if a != axis)
        last = bool(unit.attrs.get("select_last_index"))
        if last:
            x = e.op(
                "REVERSE_V2",
                [x, e.const([axis], "axes", dtype="int32")],
                shape,
                dtype=e.dtype(x),
                hint="reversed",
            )
        y = e.op(code, [x, table], reduced, dtype="int32", hint=code.lower(), output_type="INT32")
        if last:
            y = two(e, "SUB", e.const(shape[axis] - 1, "last", dtype="int32"), y)
        e.bind(y, unit)

    return Op(name, (Lowering(code.lower(), emit),), commute="axis")


def emit_sum_square(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    keep = bool(unit.attrs.get("keepdims", 1))
    reduce(e, "SUM", two(e, "MUL", x, x), axes_of(e.graph, unit), keep, out=unit.outputs[0])


def emit_l2(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    keep = bool(unit.attrs.get("keepdims", 1))
    e.finish("SQRT", unit, [reduce(e, "SUM", two(e, "MUL", x, x), axes_of(e.graph, unit), keep)])


def emit_l1(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    keep = bool(unit.attrs.get("keepdims", 1))
    reduce(e, "SUM", one(e, "ABS", x), axes_of(e.graph, unit), keep, out=unit.outputs[0])


def emit_log_sum(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    keep = bool(unit.attrs.get("keepdims", 1))
    e.finish("LOG", unit, [reduce(e, "SUM", x, axes_of(e.graph, unit), keep)])


def emit_log_sum_exp(e: Emitter, unit: Unit) -> None:
    """The largest element plus log(sum(exp(x - largest))), which cannot overflow."""
    x, axes = e.value(unit.inputs[0]), axes_of(e.graph, unit)
    top = reduce(e, "REDUCE_MAX", x, axes, True)
    total = reduce(e, "SUM", one(e, "EXP", two(e, "SUB", x, top)), axes, True)
    e.bind(two(e, "ADD", one(e, "LOG", total), top), unit)


def emit_over_image(code: str) -> Callable[[Emitter, Unit], None]:
    """A global pool, channels second: over all axes from the third on."""

    def emit(e: Emitter, unit: Unit) -> None:
        x = e.value(unit.inputs[0])
        axes = tuple(range(2, len(e.shape(x))))
        reduce(e, code, x, axes, True, out=unit.outputs[0])

    return emit


_SUM, _MEAN = reduction("ReduceSum", "SUM"), reduction("ReduceMean", "MEAN")

OPS = (
    Op(
        "ReduceSum",
        (sum_by_matmul("fully_connected", mean=False), *_SUM.lowerings),
        commute="axis",
    ),
    Op(
        "ReduceMean",
        (sum_by_matmul("fully_connected", mean=True), *_MEAN.lowerings),
        commute="axis",
    ),
    reduction("ReduceMax", "REDUCE_MAX"),
    reduction("ReduceMin", "REDUCE_MIN"),
    reduction("ReduceProd", "REDUCE_PROD"),
    Op("ReduceSumSquare", (Lowering("sum", emit_sum_square),), commute="axis"),
    Op("ReduceL2", (Lowering("sqrt", emit_l2),), commute="axis"),
    Op("ReduceL1", (Lowering("sum", emit_l1),), commute="axis"),
    Op("ReduceLogSum", (Lowering("log", emit_log_sum),), commute="axis"),
    Op("ReduceLogSumExp", (Lowering("shifted", emit_log_sum_exp),), commute="axis"),
    Op("GlobalAveragePool", (Lowering("mean", emit_over_image("MEAN")),)),
    Op("GlobalMaxPool", (Lowering("reduce_max", emit_over_image("REDUCE_MAX")),)),
    Op("TopK", (Lowering("topk_v2", emit_top_k),)),
    arg("ArgMax", "ARG_MAX"),
    arg("ArgMin", "ARG_MIN"),
)
