"""Attention (opset 23 and later): scaled dot products with masks, caches and grouped heads.

Written as two BATCH_MATMULs of rank 3 around SOFTMAX. A masked score becomes the least score of its
row minus 20 instead of minus infinity: its weight is below 2e-9, and the range of the scores stays
one that int8 resolves. Masks known beforehand are combined here; others are choices at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod, sqrt

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.attention import softmax
from splitter.ops.elementwise import broadcast, one, two
from splitter.ops.functions import compare, scaled, select, shifted
from splitter.ops.reduce import reduce
from splitter.ops.registry import Emitter, Lowering, Op

MARGIN = 20.0
"""How far a masked score lies under the least of its row; exp(-20) is 2e-9."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Sizes: batch, heads of the query, heads of key and value, query and key lengths."""

    batch: int
    query: int
    shared: int
    rows: int
    columns: int

    @property
    def scores(self) -> tuple[int, int, int, int]:
        return self.batch, self.query, self.rows, self.columns


@dataclass(frozen=True, slots=True)
class Mask:
    """allowed: constant bool that broadcasts to the scores, or None. choices: bool tensors.
    bias: a float tensor that is added, or ""."""

    allowed: Array | None = None
    choices: tuple[str, ...] = ()
    bias: str = ""

    def forbid(self, allowed: Array) -> Mask:
        """Also only what this constant allows."""
        both = allowed if self.allowed is None else self.allowed & allowed
        return replace(self, allowed=both)


def split_heads(e: Emitter, x: str, heads: int) -> str:
    """[B, L, heads * D] -> [B, heads, L, D]; data of rank 4 has its heads already."""
    shape = e.shape(x)
    if len(shape) == 4:
        return x
    b, length, width = shape
    return e.transpose(e.reshape(x, (b, length, heads, width // heads)), (0, 2, 1, 3))


def _input(unit: Unit, index: int) -> str:
    return unit.inputs[index] if len(unit.inputs) > index else ""


def _cached(e: Emitter, unit: Unit, x: str, past: int, present: int) -> str:
    """The past cache before x along the sequence; the whole is also an output where asked."""
    name = _input(unit, past)
    out = unit.outputs[present] if len(unit.outputs) > present else ""
    if name:
        return e.concat([e.value(name), x], 2, out=out)
    return e.reshape(x, e.shape(x), out=out) if out else x


def _frontier(unit: Unit, heads: Heads, offset: Array) -> Array | None:
    """Which keys is_causal and the windows allow, [B or 1, 1, L, S]."""
    left = int(unit.attrs.get("left_window_size", -1))
    right = int(unit.attrs.get("right_window_size", -1))
    rows = np.arange(heads.rows)[None, :, None] + offset.reshape(-1, 1, 1)
    distance = np.arange(heads.columns)[None, None, :] - rows
    allowed = np.ones(distance.shape, bool)
    if unit.attrs.get("is_causal"):
        allowed &= distance <= 0
    if left >= 0:
        allowed &= distance >= -left
    if right >= 0:
        allowed &= distance <= right
    return None if allowed.all() else allowed[:, None]


def _read_mask(e: Emitter, unit: Unit, heads: Heads) -> Mask:
    mask = _given_mask(e, unit, heads)
    past, lengths = _input(unit, 4), _input(unit, 6)
    offset = np.array([e.graph.shape(past)[2] if past else 0])
    if lengths:
        known = e.graph.constants.get(lengths)
        if known is None:
            positions = e.const(
                np.arange(heads.columns).reshape(1, 1, 1, -1), "positions", dtype="int32"
            )
            column = e.reshape(e.value(lengths), (heads.batch, 1, 1, 1))
            shape = (heads.batch, 1, 1, heads.columns)
            valid = e.op("LESS", [positions, column], shape, dtype="bool", hint="valid")
            mask = replace(mask, choices=(*mask.choices, valid))
        else:
            mask = mask.forbid(np.arange(heads.columns) < known.reshape(-1, 1, 1, 1))
            offset = known.reshape(-1) - heads.rows
    frontier = _frontier(unit, heads, offset)
    return mask if frontier is None else mask.forbid(frontier)


def _given_mask(e: Emitter, unit: Unit, heads: Heads) -> Mask:
    """The attn_mask input; keys that it is too short for are forbidden."""
    name = _input(unit, 3)
    if not name:
        return Mask()
    data, value = e.graph.constants.get(name), e.graph.values[name]
    short = heads.columns - value.shape[-1]
    mask = Mask()
    if short:
        mask = mask.forbid((np.arange(heads.columns) < value.shape[-1]).reshape(1, 1, 1, -1))
    if data is not None:
        widths = [(0, 0)] * (data.ndim - 1) + [(0, short)]
        data = np.pad(data, widths)
        if data.dtype == bool:
            return mask.forbid(data)
        finite = data > -1e30
        mask = mask if finite.all() else mask.forbid(finite)
        rest = np.where(finite, data, 0)
        return replace(mask, bias=e.const(rest, "bias") if rest.any() else "")
    x = e.value(name)
    if short:
        table = [[0, 0]] * (len(value.shape) - 1) + [[0, short]]
        shape = (*value.shape[:-1], heads.columns)
        paddings = e.const(table, "paddings", dtype="int32")
        x = e.op("PAD", [x, paddings], shape, dtype=e.dtype(x), hint="mask")
    if e.dtype(x) == "bool":
        return replace(mask, choices=(x,))
    finite_tensor = compare(e, "GREATER", x, -1e30)
    bias = select(e, finite_tensor, x, e.const(0.0, "zero"))
    return replace(mask, choices=(finite_tensor,), bias=bias)


def _masked(e: Emitter, scores: str, mask: Mask) -> str:
    if mask.bias:
        scores = two(e, "ADD", scores, mask.bias, hint="biased")
    chosen = _choice(e, mask)
    if not chosen:
        return scores
    least = reduce(e, "REDUCE_MIN", scores, (3,), True)
    low = shifted(e, least, -MARGIN)
    return e.op("SELECT_V2", [chosen, scores, low], e.shape(scores), hint="masked")


def _choice(e: Emitter, mask: Mask) -> str:
    """One bool tensor of rank 4 of all masks, "" when everything is allowed."""
    tensors = [_rank4(e, choice) for choice in mask.choices]
    if mask.allowed is not None:
        data = mask.allowed.reshape((1,) * (4 - mask.allowed.ndim) + mask.allowed.shape)
        tensors.append(e.const(data, "allowed", dtype="bool"))
    if not tensors:
        return ""
    total = tensors[0]
    for tensor in tensors[1:]:
        shape = broadcast(e.shape(total), e.shape(tensor))
        total = e.op("LOGICAL_AND", [total, tensor], shape, dtype="bool", hint="allowed")
    return total


def _rank4(e: Emitter, x: str) -> str:
    return e.reshape(x, (1,) * (4 - len(e.shape(x))) + e.shape(x))


def _some_allowed(e: Emitter, weights: str, mask: Mask) -> str:
    """Weights are 0 in a row that may see nothing."""
    chosen = _choice(e, mask)
    if not chosen:
        return weights
    if not mask.choices:
        assert mask.allowed is not None
        data = mask.allowed.any(axis=-1, keepdims=True)
        if data.all():
            return weights
        some = e.const(data.reshape((1,) * (4 - data.ndim) + data.shape), "some", dtype="bool")
    else:
        some = reduce(e, "REDUCE_ANY", chosen, (3,), True)
    return e.op(
        "SELECT_V2", [some, weights, e.const(0.0, "zero")], e.shape(weights), hint="weights"
    )


def _product(e: Emitter, a: str, b: str, *, transposed: bool) -> str:
    """BATCH_MATMUL of [N, M, K] with [N, K, L], or [N, L, K] where transposed."""
    n, m, _ = e.shape(a)
    columns = e.shape(b)[1] if transposed else e.shape(b)[2]
    return e.op(
        "BATCH_MATMUL",
        [a, b],
        (n, m, columns),
        hint="product",
        adj_x=False,
        adj_y=transposed,
        asymmetric_quantize_inputs=False,
    )


def emit_attention(e: Emitter, unit: Unit) -> None:
    tensors = [e.value(name) for name in unit.inputs[:3]]
    grouped = int(unit.attrs.get("kv_num_heads", 0))
    counts = (int(unit.attrs.get("q_num_heads", 0)), grouped, grouped)
    q, k, v = (split_heads(e, x, n) for x, n in zip(tensors, counts, strict=True))
    k, v = _cached(e, unit, k, 4, 1), _cached(e, unit, v, 5, 2)
    (batch, query, rows, depth), (_, shared, columns, _) = e.shape(q), e.shape(k)
    heads = Heads(batch, query, shared, rows, columns)
    factor = unit.attrs.get("scale")
    q = scaled(e, q, 1.0 / sqrt(depth) if factor is None else float(factor))
    groups, rows3 = batch * shared, query // shared * rows
    scores = _product(
        e,
        e.reshape(q, (groups, rows3, depth)),
        e.reshape(k, (groups, columns, depth)),
        transposed=True,
    )
    weights = _weights(e, unit, e.reshape(scores, heads.scores), _read_mask(e, unit, heads))
    width = e.shape(v)[3]
    y = _product(
        e,
        e.reshape(weights, (groups, rows3, columns)),
        e.reshape(v, (groups, columns, width)),
        transposed=False,
    )
    y = e.reshape(y, (batch, query, rows, width))
    if len(e.graph.shape(unit.outputs[0])) == 3:
        y = e.transpose(y, (0, 2, 1, 3))
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def _weights(e: Emitter, unit: Unit, scores: str, mask: Mask) -> str:
    """Softmax of the masked scores; one of the stages is the fourth output."""
    out = unit.outputs[3] if len(unit.outputs) > 3 else ""
    mode = int(unit.attrs.get("qk_matmul_output_mode", 0))
    cap = float(unit.attrs.get("softcap", 0.0) or 0.0)
    stages = [scores]
    if cap:
        scores = scaled(e, one(e, "TANH", scaled(e, scores, 1.0 / cap)), cap)
    stages.append(scores)
    masked = _masked(e, scores, mask)
    stages.append(masked)
    weights = _some_allowed(e, softmax(e, masked), mask)
    stages.append(weights)
    if out:
        e.reshape(stages[mode], e.shape(stages[mode]), out=out)
    return weights


def _applies(graph: Graph, unit: Unit) -> str | None:
    if len({len(graph.shape(name)) for name in unit.inputs[:3]}) > 1:
        return "query, key and value have different ranks"
    lengths = _input(unit, 6)
    windows = max(int(unit.attrs.get(f"{s}_window_size", -1)) for s in ("left", "right"))
    moving = unit.attrs.get("is_causal") or windows >= 0
    if lengths and lengths not in graph.constants and moving:
        return "is_causal with key lengths that are not constant"
    shows_mask = int(unit.attrs.get("qk_matmul_output_mode", 0)) == 2
    if len(unit.outputs) > 3 and unit.outputs[3] and shows_mask:
        masked = _input(unit, 3) or lengths or moving
        return "its output of masked scores holds infinities" if masked else None
    if prod(graph.shape(unit.outputs[0])) == 0:
        return "it is empty"
    return None


OPS = (Op("Attention", (Lowering("batch_matmul", emit_attention, applies=_applies),)),)
