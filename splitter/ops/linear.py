"""Matrix products: FullyConnected (constant right side) and MatMul (two variables)."""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import broadcast
from splitter.ops.registry import Emitter, Lowering, Op


def fully_connected(
    e: Emitter, x: str, weight: str, bias: str, *, activation: str = "NONE", hint: str = "fc"
) -> str:
    """FULLY_CONNECTED over the last axis: x [.., K], weight [N, K], bias [N] or "" -> [.., N]."""
    shape = (*e.shape(x)[:-1], e.shape(weight)[0])
    bias = bias or e.const(np.zeros(shape[-1]), "bias")
    return e.op(
        "FULLY_CONNECTED",
        [x, weight, bias],
        shape,
        hint=hint,
        fused_activation_function=activation,
        weights_format="DEFAULT",
        keep_num_dims=len(shape) != 2,
    )


def over_rows(
    e: Emitter,
    x: str,
    weight: str,
    bias: str,
    *,
    activation: str = "NONE",
    out: str = "",
    shape: tuple[int, ...] | None = None,
) -> str:
    """FULLY_CONNECTED with every axis but the last flattened to rows, the rank that NPU compilers
    take; the result has x's leading axes again (or `shape`)."""
    leading = e.shape(x)[:-1]
    flat = e.reshape(x, (prod(leading), e.shape(x)[-1]))
    units = e.shape(weight)[0]
    bias = bias or e.const(np.zeros(units), "bias")
    if len(leading) == 1 and out and shape in (None, (*leading, units)):
        return e.op(
            "FULLY_CONNECTED",
            [flat, weight, bias],
            (*leading, units),
            out=out,
            fused_activation_function=activation,
            weights_format="DEFAULT",
            keep_num_dims=False,
        )
    y = fully_connected(e, flat, weight, bias, activation=activation)
    return e.reshape(y, (*leading, units) if shape is None else shape, out=out)


def emit_fully_connected(e: Emitter, unit: Unit) -> None:
    x, weight = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    has_bias = len(unit.inputs) > 2 and unit.inputs[2]
    bias = e.value(unit.inputs[2]) if has_bias else ""
    over_rows(
        e,
        x,
        weight,
        bias,
        activation=unit.attrs.get("activation") or "NONE",
        out=unit.outputs[0],
        shape=e.graph.shape(unit.outputs[0]),
    )


def _padded(e: Emitter, name: str, *, left: bool) -> str:
    """A 1-D operand becomes a row (left) or a column (right)."""
    tensor = e.value(name)
    shape = e.shape(tensor)
    if len(shape) == 1:
        return e.reshape(tensor, (1, shape[0]) if left else (shape[0], 1))
    return tensor


def emit_batch_matmul(e: Emitter, unit: Unit) -> None:
    """BATCH_MATMUL of rank 3 where the batch axes are equal, else of full rank."""
    a, b = _padded(e, unit.inputs[0], left=True), _padded(e, unit.inputs[1], left=False)
    sa, sb = e.shape(a), e.shape(b)
    out = e.graph.shape(unit.outputs[0])
    adj_x, adj_y = bool(unit.attrs.get("adj_x")), bool(unit.attrs.get("adj_y"))
    m = sa[-1] if adj_x else sa[-2]
    n = sb[-2] if adj_y else sb[-1]
    batch = broadcast(sa[:-2], sb[:-2])
    count = prod(batch)
    if prod(sa[:-2]) == count == prod(sb[:-2]):
        a = e.reshape(a, (count, *sa[-2:]))
        b = e.reshape(b, (count, *sb[-2:]))
        batch = (count,)
    y = e.op(
        "BATCH_MATMUL",
        [a, b],
        (*batch, m, n),
        hint="matmul",
        out=unit.outputs[0] if out == (*batch, m, n) else "",
        adj_x=adj_x,
        adj_y=adj_y,
        asymmetric_quantize_inputs=False,
    )
    if y != unit.outputs[0]:
        e.reshape(y, out, out=unit.outputs[0])


def _constant_left(graph: Graph, unit: Unit) -> str | None:
    a = graph.constants.get(unit.inputs[0])
    if a is None or a.ndim < 2 or prod(a.shape[:-2]) != 1:
        return "the left side is not one constant matrix"
    if len(graph.shape(unit.inputs[1])) < 2:
        return "the right side is a vector"
    return None


def emit_constant_left(e: Emitter, unit: Unit) -> None:
    """A @ X = (X^T A^T)^T: FULLY_CONNECTED between two transposes: A has per-channel scales."""
    data = e.graph.constants[unit.inputs[0]]
    data = data.reshape(data.shape[-2:])
    x = e.value(unit.inputs[1])
    rank = len(e.shape(x))
    swap = (*range(rank - 2), rank - 1, rank - 2)
    weight = e.const(data.T if unit.attrs.get("adj_x") else data, "weight")
    y = over_rows(e, x if unit.attrs.get("adj_y") else e.transpose(x, swap), weight, "")
    y = e.transpose(y, swap)
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


OPS = (
    Op("FullyConnected", (Lowering("rows", emit_fully_connected),)),
    Op(
        "MatMul",
        (
            Lowering("constant_left", emit_constant_left, applies=_constant_left),
            Lowering("batch_matmul", emit_batch_matmul),
        ),
    ),
)
