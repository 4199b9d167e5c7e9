"""Softmax, whole or by head."""

from __future__ import annotations

from math import prod

from splitter.graph import Graph, Unit
from splitter.ops.registry import Emitter, Lowering, Op


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


def emit_softmax_by_head(e: Emitter, unit: Unit) -> None:
    """One SOFTMAX for each matrix of the last two axes, for targets with a size limit."""
    x, perm = _last_axis(e, unit)
    shape = e.shape(x)
    heads, rows, columns = prod(shape[:-2]), shape[-2], shape[-1]
    stack = e.reshape(x, (heads, rows, columns))
    parts = [
        softmax(e, e.slice(stack, (head, 0, 0), (1, rows, columns))) for head in range(heads)
    ]
    y = e.reshape(e.concat(parts, 0), shape)
    _finish(e, unit, y, perm)


def _several_heads(graph: Graph, unit: Unit) -> str | None:
    shape = graph.shape(unit.inputs[0])
    heads = prod(shape) // max(1, prod(shape[-2:]))
    if len(shape) < 3 or heads == 1:
        return "there is one head only"
    return None if heads <= 64 else f"{heads} heads, over 64"


OPS = (
    Op(
        "Softmax",
        (
            Lowering("softmax", emit_softmax),
            Lowering("softmax_by_head", emit_softmax_by_head, applies=_several_heads),
        ),
        commute="axis",
    ),
)
