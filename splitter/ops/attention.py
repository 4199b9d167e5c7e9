"""Softmax, whole or by head, alone or with the product that reads it."""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.linear import fully_connected
from splitter.ops.reduce import reduce
from splitter.ops.registry import Emitter, Lowering, Op

ROWS, ELEMENTS = 4096, 1 << 19
"""The largest SOFTMAX that eIQ Neutron-C takes (backends/nxp of pytorch/executorch); others take
more or have no limit."""


def softmax(e: Emitter, x: str, *, out: str = "") -> str:
    """SOFTMAX over the last axis."""
    return e.op("SOFTMAX", [x], e.shape(x), out=out, hint="softmax", beta=1.0)


def _last_axis(e: Emitter, unit: Unit) -> tuple[str, tuple[int, ...]]:
    """The input with the softmax axis last, and the permutation that was used."""
    x = e.value(unit.inputs[0])
    rank = len(e.shape(x))
    axis = int(unit.attrs.get("axis", -1)) % rank
    perm = (*(a for a in range(rank) if a != axis), axis)
    return e.transpose(x, perm), perm


def _finish(e: Emitter, unit: Unit, y: str, perm: tuple[int, ...]) -> None:
    inverse = tuple(perm.index(a) for a in range(len(perm)))
    if inverse == tuple(range(len(perm))):
        e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])
    else:
        e.transpose(y, inverse, out=unit.outputs[0])


def emit_softmax(e: Emitter, unit: Unit) -> None:
    x, perm = _last_axis(e, unit)
    if perm == tuple(range(len(perm))):
        softmax(e, x, out=unit.outputs[0])
    else:
        _finish(e, unit, softmax(e, x), perm)


def softmax_in_pieces(e: Emitter, x: str, step: int) -> str:
    """One SOFTMAX for every `step` entries of the first axis."""
    count, *rest = e.shape(x)
    begin = (0,) * len(rest)
    parts = [
        softmax(e, e.slice(x, (first, *begin), (min(step, count - first), *rest)))
        for first in range(0, count, step)
    ]
    return e.concat(parts, 0)


def emit_softmax_by_head(e: Emitter, unit: Unit) -> None:
    """One SOFTMAX for each matrix of the last two axes, for targets with a size limit."""
    x, perm = _last_axis(e, unit)
    shape = e.shape(x)
    stack = e.reshape(x, (prod(shape[:-2]), *shape[-2:]))
    _finish(e, unit, e.reshape(softmax_in_pieces(e, stack, 1), shape), perm)


def emit_softmax_by_rows(e: Emitter, unit: Unit) -> None:
    """One SOFTMAX for each run of rows that the NPUs with a size limit take."""
    x, perm = _last_axis(e, unit)
    shape = e.shape(x)
    rows, columns = prod(shape[:-1]), shape[-1]
    flat = e.reshape(x, (rows, columns))
    step = -(-rows // _pieces(rows, columns))
    _finish(e, unit, e.reshape(softmax_in_pieces(e, flat, step), shape), perm)


def _pieces(rows: int, columns: int) -> int:
    return max(-(-rows // ROWS), -(-rows * columns // ELEMENTS))


def _many_rows(graph: Graph, unit: Unit) -> str | None:
    shape = graph.shape(unit.inputs[0])
    columns = shape[int(unit.attrs.get("axis", -1))] if shape else 1
    pieces = _pieces(prod(shape) // max(1, columns), columns)
    if pieces < 2:
        return f"at most {ROWS} rows and {ELEMENTS} elements"
    return None if pieces <= 64 else f"{pieces} pieces, over 64"


def _several_heads(graph: Graph, unit: Unit) -> str | None:
    heads = prod(graph.shape(unit.inputs[0])[:-2])
    if heads == 1:
        return "there is one head only"
    return None if heads <= 64 else f"{heads} heads, over 64"


def _rows(e: Emitter, unit: Unit) -> tuple[str, str]:
    """Scores [batch, rows, columns] and values [batch, ...] of an Attend unit."""
    scores, values = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    batch = prod(e.shape(scores)[:-2])
    scores = e.reshape(scores, (batch, *e.shape(scores)[-2:]))
    return scores, e.reshape(values, (batch, *e.shape(values)[-2:]))


def _weigh(e: Emitter, unit: Unit, weights: str, values: str) -> str:
    """weights [batch, rows, columns] @ values -> [batch, rows, width]."""
    adj_y = bool(unit.attrs.get("adj_y"))
    width = e.shape(values)[1 if adj_y else 2]
    return e.op(
        "BATCH_MATMUL",
        [weights, values],
        (*e.shape(weights)[:2], width),
        hint="weighed",
        adj_x=False,
        adj_y=adj_y,
        asymmetric_quantize_inputs=False,
    )


def emit_attend(e: Emitter, unit: Unit) -> None:
    scores, values = _rows(e, unit)
    y = _weigh(e, unit, softmax(e, scores), values)
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def emit_attend_by_head(e: Emitter, unit: Unit) -> None:
    """As `attend`, with one SOFTMAX for each head."""
    scores, values = _rows(e, unit)
    y = _weigh(e, unit, softmax_in_pieces(e, scores, 1), values)
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def emit_attend_exponential(e: Emitter, unit: Unit) -> None:
    """exp(score - row maximum) @ values, divided by the row's sum afterwards.

    In int8 the exponentials have a step of 1/127 of the row's largest weight, however many tokens
    share the row. The division is two products with 1 / sqrt(sum), whose range over the rows is the
    square root of the sum's.
    """
    scores, values = _rows(e, unit)
    batch, rows, columns = e.shape(scores)
    top = reduce(e, "REDUCE_MAX", scores, (2,), True)
    weights = one(e, "EXP", two(e, "SUB", scores, top, hint="below_top"))
    flat = e.reshape(weights, (batch * rows, columns))
    total = fully_connected(e, flat, e.const(np.ones((1, columns)), "ones"), "", hint="total")
    root = e.reshape(one(e, "RSQRT", total), (batch, rows, 1))
    y = _weigh(e, unit, weights, values)
    y = two(e, "MUL", two(e, "MUL", y, root), root)
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


OPS = (
    Op(
        "Attend",
        (
            Lowering("exponential", emit_attend_exponential),
            Lowering("softmax", emit_attend),
            Lowering("softmax_by_head", emit_attend_by_head, applies=_several_heads),
        ),
    ),
    Op(
        "Softmax",
        (
            Lowering("softmax", emit_softmax),
            Lowering("softmax_by_head", emit_softmax_by_head, applies=_several_heads),
            Lowering("softmax_by_rows", emit_softmax_by_rows, applies=_many_rows),
        ),
        commute="axis",
    ),
)
