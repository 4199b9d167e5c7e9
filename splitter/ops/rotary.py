"""RotaryEmbedding: pairs of features turned by an angle that grows with the position."""

from __future__ import annotations

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter, Lowering, Op


def _input(unit: Unit, index: int) -> str:
    return unit.inputs[index] if len(unit.inputs) > index else ""


def _angles(e: Emitter, unit: Unit, index: int, batch: int, length: int) -> str:
    """The cosines or sines [B, L, 1, D / 2] of the tokens' positions."""
    cache, positions = e.value(unit.inputs[index]), _input(unit, 3)
    half = e.shape(cache)[-1]
    if positions:
        cache = e.op(
            "GATHER",
            [cache, e.value(positions)],
            (*e.graph.shape(positions), half),
            hint="angles",
            axis=0,
            batch_dims=0,
        )
    rows = e.shape(cache)[0]
    return e.reshape(cache, (rows, length, 1, half))


def _halves(e: Emitter, x: str, half: int, *, interleaved: bool) -> tuple[str, str]:
    """The two features of each pair, x [B, L, H, 2 half] -> two of [B, L, H, half]."""
    shape = e.shape(x)
    if not interleaved:
        size = (*shape[:3], half)
        return e.slice(x, (0, 0, 0, 0), size), e.slice(x, (0, 0, 0, half), size)
    rows = int(np.prod(shape[:3]))
    pairs = e.reshape(x, (rows, half, 2))
    first, second = (
        e.reshape(e.slice(pairs, (0, 0, i), (rows, half, 1)), (*shape[:3], half)) for i in (0, 1)
    )
    return first, second


def emit_rotary(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    rank4 = len(e.shape(x)) == 4
    if rank4:
        x = e.transpose(x, (0, 2, 1, 3))
    else:
        b, n, width = e.shape(x)
        heads = int(unit.attrs["num_heads"])
        x = e.reshape(x, (b, n, heads, width // heads))
    batch, length, heads, depth = e.shape(x)
    turned = int(unit.attrs.get("rotary_embedding_dim", 0)) or depth
    half, interleaved = turned // 2, bool(unit.attrs.get("interleaved", 0))
    whole = x
    if turned < depth:
        x = e.slice(whole, (0, 0, 0, 0), (batch, length, heads, turned))
    first, second = _halves(e, x, half, interleaved=interleaved)
    cos, sin = (_angles(e, unit, i, batch, length) for i in (1, 2))
    real = two(e, "SUB", two(e, "MUL", first, cos), two(e, "MUL", second, sin))
    imaginary = two(e, "ADD", two(e, "MUL", first, sin), two(e, "MUL", second, cos))
    if interleaved:
        columns = [e.reshape(part, (batch * length * heads, half, 1)) for part in (real, imaginary)]
        y = e.reshape(e.concat(columns, 2), (batch, length, heads, turned))
    else:
        y = e.concat([real, imaginary], 3)
    if turned < depth:
        rest = e.slice(whole, (0, 0, 0, turned), (batch, length, heads, depth - turned))
        y = e.concat([y, rest], 3)
    y = e.transpose(y, (0, 2, 1, 3)) if rank4 else y
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def _applies(graph: Graph, unit: Unit) -> str | None:
    rank = len(graph.shape(unit.inputs[0]))
    if rank == 3 and not unit.attrs.get("num_heads"):
        return "the number of heads is not given"
    return None if rank in (3, 4) else f"rank {rank}"


OPS = (Op("RotaryEmbedding", (Lowering("halves", emit_rotary, applies=_applies),)),)
