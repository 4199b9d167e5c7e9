"""Moving data without changing it: reshape, transpose, slice, concat, split, pad, tile, gather."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.strides import by_reshape, unstrided

UNMASKED: Mapping[str, Any] = {
    "begin_mask": 0,
    "end_mask": 0,
    "ellipsis_mask": 0,
    "new_axis_mask": 0,
    "shrink_axis_mask": 0,
    "offset": False,
}
"""STRIDED_SLICE takes begin, end and step of every axis as they are."""


def emit_reshape(e: Emitter, unit: Unit) -> None:
    e.reshape(e.value(unit.inputs[0]), e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def emit_transpose(e: Emitter, unit: Unit) -> None:
    e.transpose(e.value(unit.inputs[0]), unit.attrs["perm"], out=unit.outputs[0])


def _ranges(graph: Graph, unit: Unit) -> list[tuple[int, int, int]]:
    """(start, length, step) for every axis of a Slice unit."""
    attrs = unit.attrs
    return [
        (start, len(range(start, end, step)), step)
        for start, end, step in zip(attrs["starts"], attrs["ends"], attrs["steps"], strict=True)
    ]


def emit_slice(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    ranges = _ranges(e.graph, unit)
    if all(step == 1 for _, _, step in ranges):
        e.slice(x, [r[0] for r in ranges], [r[1] for r in ranges], out=unit.outputs[0])
        return
    reverse = [axis for axis, r in enumerate(ranges) if r[2] < 0]
    if reverse:
        x = e.op(
            "REVERSE_V2",
            [x, e.const(reverse, "axes", dtype="int32")],
            e.shape(x),
            dtype=e.dtype(x),
            hint="reverse",
        )
    shape = e.shape(x)
    begin = [shape[a] - 1 - b if s < 0 else b for a, (b, _, s) in enumerate(ranges)]
    step = [abs(s) for _, _, s in ranges]
    end = [b + (n - 1) * s + 1 for b, (_, n, _), s in zip(begin, ranges, step, strict=True)]
    bounds = [
        e.const(v, h, dtype="int32") for v, h in ((begin, "begin"), (end, "end"), (step, "step"))
    ]
    e.finish(
        "STRIDED_SLICE",
        unit,
        [x, *bounds],
        **UNMASKED,
    )


def emit_unstrided(e: Emitter, unit: Unit) -> None:
    """SLICE, RESHAPE and SLICE, for compilers that take unit steps only."""
    e.bind(by_reshape(e, e.value(unit.inputs[0]), _ranges(e.graph, unit)), unit)


def _strided_slice(graph: Graph, unit: Unit) -> str | None:
    return unstrided(graph.shape(unit.inputs[0]), _ranges(graph, unit))


def strided(e: Emitter, x: str, axis: int, start: int, count: int, step: int) -> str:
    """`count` elements of an axis from `start` on, `step` apart."""
    shape = list(e.shape(x))
    begin, end, steps = [0] * len(shape), list(shape), [1] * len(shape)
    begin[axis], steps[axis] = start, step
    end[axis] = start + (count - 1) * step + 1
    shape[axis] = count
    if step == 1:
        return e.slice(x, begin, shape)
    bounds = [
        e.const(v, h, dtype="int32") for v, h in ((begin, "begin"), (end, "end"), (steps, "step"))
    ]
    return e.op(
        "STRIDED_SLICE",
        [x, *bounds],
        shape,
        dtype=e.dtype(x),
        hint="taps",
        **UNMASKED,
    )


def _axis(unit: Unit, rank: int, default: int = 0) -> int:
    return int(unit.attrs.get("axis", default)) % max(rank, 1)


def emit_concat(e: Emitter, unit: Unit) -> None:
    tensors = [e.value(name) for name in unit.inputs if e.graph.values[name].elements]
    e.concat(tensors, _axis(unit, len(e.shape(tensors[0]))), out=unit.outputs[0])


def emit_split(e: Emitter, unit: Unit) -> None:
    """One SLICE an output: what NPU compilers make of SPLIT anyway."""
    x = e.value(unit.inputs[0])
    axis = _axis(unit, len(e.shape(x)))
    begin = [0] * len(e.shape(x))
    for name in unit.outputs:
        if name:
            e.slice(x, begin, e.graph.shape(name), out=name)
            begin[axis] += e.graph.shape(name)[axis]


def emit_expand(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    shape = e.graph.shape(unit.outputs[0])
    if e.graph.values[unit.inputs[0]].elements == int(np.prod(shape)):
        e.reshape(x, shape, out=unit.outputs[0])
        return
    e.finish("BROADCAST_TO", unit, [x, e.const(shape, "shape", dtype="int32")])


def emit_tile(e: Emitter, unit: Unit) -> None:
    repeats = e.const(unit.attrs["repeats"], "repeats", dtype="int32")
    e.finish("TILE", unit, [e.value(unit.inputs[0]), repeats])


def _repeats(graph: Graph, unit: Unit) -> list[int]:
    source, target = graph.shape(unit.inputs[0]), graph.shape(unit.outputs[0])
    source = (1,) * (len(target) - len(source)) + tuple(source)
    return [t // s for s, t in zip(source, target, strict=True)]


def emit_repeat_by_concat(e: Emitter, unit: Unit) -> None:
    """Tile or Expand as CONCATENATION of the same tensor, axis by axis."""
    target = e.graph.shape(unit.outputs[0])
    x = e.value(unit.inputs[0])
    x = e.reshape(x, (1,) * (len(target) - len(e.shape(x))) + e.shape(x))
    repeats = _repeats(e.graph, unit)
    last = max(axis for axis, count in enumerate(repeats) if count > 1)
    for axis, count in enumerate(repeats):
        if count > 1:
            x = e.concat([x] * count, axis, out=unit.outputs[0] if axis == last else "")


def _few_repeats(graph: Graph, unit: Unit) -> str | None:
    repeats = _repeats(graph, unit)
    if max(repeats, default=1) == 1:
        return "nothing is repeated"
    return None if max(repeats) <= 64 else f"{max(repeats)} copies on one axis, over 64"


def emit_gather(e: Emitter, unit: Unit) -> None:
    x, indices = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    data = e.graph.constants.get(unit.inputs[1])
    axis = _axis(unit, len(e.shape(x)))
    size = e.shape(x)[axis]
    if data is not None:
        wrapped = np.where(data < 0, data + size, data)
        indices = e.const(wrapped, "indices", dtype="int32")
    e.finish("GATHER", unit, [x, indices], axis=axis, batch_dims=0)


VIEWS = frozenset(
    ("Cast", "Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Tile", "Transpose")
)


def _counts_up(graph: Graph, name: str) -> bool:
    """Whether indices come from TopK or ArgMax, which never give negative ones."""
    maker = graph.producers.get(name)
    if maker is None:
        data = graph.constants.get(name)
        return data is not None and bool(np.all(data >= 0))
    if maker.op in ("TopK", "ArgMax", "ArgMin"):
        return True
    sources = maker.inputs if maker.op == "Concat" else maker.inputs[:1]
    return maker.op in VIEWS and all(_counts_up(graph, source) for source in sources)


def _wrapped(e: Emitter, unit: Unit, indices: str, size: int) -> str:
    """Negative indices count from the end, where there may be any."""
    data = e.graph.constants.get(unit.inputs[1])
    if data is not None:
        return e.const(np.where(data < 0, data + size, data), "indices", dtype="int32")
    if _counts_up(e.graph, unit.inputs[1]):
        return indices
    zero = e.const(0, "zero", dtype="int32")
    below = e.op("LESS", [indices, zero], e.shape(indices), dtype="bool", hint="negative")
    turns = e.op("CAST", [below], e.shape(indices), dtype="int32", hint="turns")
    return two(e, "ADD", indices, two(e, "MUL", turns, e.const(size, "size", dtype="int32")))


def emit_gather_elements(e: Emitter, unit: Unit) -> None:
    """GATHER over the flattened data: index * stride of the axis + the constant rest."""
    x, indices = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    shape, picked = e.shape(x), e.shape(indices)
    axis = _axis(unit, len(shape))
    strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    grid = np.indices(picked, dtype=np.int64)
    rest = sum(grid[a] * strides[a] for a in range(len(shape)) if a != axis)
    offset = e.const(np.broadcast_to(rest, picked), "offset", dtype="int32")
    flat = _wrapped(e, unit, indices, shape[axis])
    if strides[axis] != 1:
        flat = two(e, "MUL", flat, e.const(strides[axis], "stride", dtype="int32"))
    flat = two(e, "ADD", flat, offset)
    vector = e.reshape(x, (int(np.prod(shape)),))
    e.finish("GATHER", unit, [vector, flat], axis=0, batch_dims=0)


def cut_negative(
    e: Emitter, x: str, pads: list[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """SLICE by the negative pads; what is left to pad."""
    if all(p >= 0 for pair in pads for p in pair):
        return x, pads
    begin = [max(-before, 0) for before, _ in pads]
    size = [
        n - b - max(-after, 0) for n, b, (_, after) in zip(e.shape(x), begin, pads, strict=True)
    ]
    return e.slice(x, begin, size), [(max(before, 0), max(after, 0)) for before, after in pads]


def emit_pad(e: Emitter, unit: Unit) -> None:
    pads = [tuple(pair) for pair in unit.attrs["pads"]]
    x, pads = cut_negative(e, e.value(unit.inputs[0]), pads)
    table = e.const(pads, "paddings", dtype="int32")
    value = unit.attrs.get("value", 0.0) or 0.0
    if unit.attrs.get("mode", "constant") == "reflect":
        e.finish("MIRROR_PAD", unit, [x, table], mode="REFLECT")
    elif value == 0.0 and e.dtype(x) != "bool":
        e.finish("PAD", unit, [x, table])
    else:
        e.finish("PADV2", unit, [x, table, e.const(value, "pad_value", dtype=e.dtype(x))])


def emit_pad_pieces(e: Emitter, unit: Unit) -> None:
    """Slices of the data (its edge, its other end, its mirror) joined before and after, by axis."""
    pads = [tuple(pair) for pair in unit.attrs["pads"]]
    x, pads = cut_negative(e, e.value(unit.inputs[0]), pads)
    mode = unit.attrs["mode"]
    for axis, (before, after) in enumerate(pads):
        size = e.shape(x)[axis]
        if mode == "edge":
            x = repeat_edge(e, x, axis, before, after)
            continue
        span = np.arange(-before, size + after)
        if mode == "wrap":
            source = span % size
        else:
            folded = np.abs(span) % max(2 * size - 2, 1)
            source = np.where(folded < size, folded, 2 * size - 2 - folded)
        if before or after:
            x = pieces(e, x, axis, source.tolist())
    e.bind(x, unit)


def pieces(e: Emitter, x: str, axis: int, source: list[int]) -> str:
    """The elements `source` of an axis in this order, as ascending slices joined."""
    shape = e.shape(x)
    parts: list[str] = []
    start = 0
    for end in range(1, len(source) + 1):
        if end == len(source) or source[end] != source[end - 1] + 1:
            begin = [source[start] if a == axis else 0 for a in range(len(shape))]
            size = [end - start if a == axis else n for a, n in enumerate(shape)]
            whole = tuple(size) == shape
            parts.append(x if whole else e.slice(x, begin, size))
            start = end
    return e.concat(parts, axis)


def repeat_edge(e: Emitter, x: str, axis: int, before: int, after: int) -> str:
    """The first and last element of an axis repeated, as SLICE and CONCATENATION."""
    shape = e.shape(x)
    size = (*shape[:axis], 1, *shape[axis + 1 :])
    begin = [0] * len(shape)
    first = [e.slice(x, begin, size)] * before if before else []
    begin[axis] = shape[axis] - 1
    last = [e.slice(x, begin, size)] * after if after else []
    return e.concat([*first, x, *last], axis) if first or last else x


def _pad_operator(graph: Graph, unit: Unit) -> str | None:
    mode = unit.attrs.get("mode", "constant")
    shape = graph.shape(unit.inputs[0])
    if mode == "constant":
        return None if len(shape) <= 5 else f"PAD of rank {len(shape)}"
    if mode != "reflect":
        return f"TFLite has no Pad mode {mode}"
    reach = max(p for pair in unit.attrs["pads"] for p in pair)
    small = any(max(pair) >= n for pair, n in zip(unit.attrs["pads"], shape, strict=True))
    return f"it reflects {reach} elements of fewer" if small else None


def _pad_pieces(graph: Graph, unit: Unit) -> str | None:
    return "it is constant" if unit.attrs.get("mode", "constant") == "constant" else None


OPS = (
    Op("Reshape", (Lowering("reshape", emit_reshape),)),
    Op("Transpose", (Lowering("transpose", emit_transpose),)),
    Op("Identity", (Lowering("reshape", emit_reshape),), commute="elementwise"),
    Op(
        "Slice",
        (
            Lowering("slice", emit_slice),
            Lowering("reshape", emit_unstrided, applies=_strided_slice),
        ),
        commute="axis",
    ),
    Op("Concat", (Lowering("concatenation", emit_concat),), commute="axis"),
    Op("Split", (Lowering("slices", emit_split),), commute="axis"),
    Op(
        "Expand",
        (
            Lowering("broadcast_to", emit_expand),
            Lowering("concatenation", emit_repeat_by_concat, applies=_few_repeats),
        ),
    ),
    Op(
        "Tile",
        (
            Lowering("tile", emit_tile),
            Lowering("concatenation", emit_repeat_by_concat, applies=_few_repeats),
        ),
    ),
    Op("Gather", (Lowering("gather", emit_gather),)),
    Op("GatherElements", (Lowering("gather_flat", emit_gather_elements),)),
    Op(
        "Pad",
        (
            Lowering("pad", emit_pad, applies=_pad_operator),
            Lowering("concatenation", emit_pad_pieces, applies=_pad_pieces),
        ),
        commute="axis",
    ),
)
