"""Specimens of operators that move, pick, join and resize."""

from __future__ import annotations

from splitter.specimens.bench import Bench, Shape, divisor
from splitter.tflite.types import LiteGraph


def resize(bench: Bench) -> LiteGraph:
    trivial, aligned = bench.flag("trivial", False), bench.flag("align_corners", False)
    channels, rank = bench.number("channels", 16), bench.number("input_rank", 4)
    both = bench.get("factor", 2)
    factors = [bench.get("factor_h", both), bench.get("factor_w", both)]
    if not bench.flag("same_factor", True):
        factors[1] = 2 * factors[0]
    side = 1 if trivial else 5 if aligned else 4
    outs = [round((side - 1) * f + 1) if aligned and side > 1 else round(side * f) for f in factors]
    lead = (1,) * (rank - 4) + ((bench.lead,) if rank > 3 else ())
    x = bench.data("x", (*lead, side, side, channels))
    return bench.finish(
        (x, bench.parameter("size", outs)),
        (*lead, *outs, channels),
        align_corners=aligned,
        half_pixel_centers=bench.flag("half_pixel", False),
    )


_SWAPS = {"none": (0, 1, 2), "HW": (1, 0, 2), "WC": (0, 2, 1), "HC": (2, 1, 0)}


def transpose(bench: Bench) -> LiteGraph:
    order, shape = _order(bench)
    x = bench.data("x", shape)
    perm = bench.parameter("order", order, constant=bench.flag("parameters_constant", True))
    return bench.finish((x, perm), tuple(shape[axis] for axis in order))


def _order(bench: Bench) -> tuple[list[int], Shape]:
    """Permutation and shape."""
    batch = bench.lead
    if "outer_product" in bench.want:
        count = bench.number("outer_product", 4)
        most = divisor(count, int(count**0.5))
        less = min(most, 2)
        return [1, 0, 2, 3], (less, less, most, count // most)
    if "max_dimension" in bench.want:
        return [0, 2, 1, 3], (1, bench.number("max_dimension", 2), 2, 2)
    if "permutation" in bench.want:
        order = [int(part) for part in str(bench.want["permutation"])[1:-1].split(",")]
        return order, (batch, 2, 3, 16)[: len(order)]
    if "swap" in bench.want:
        kind, _, flat = str(bench.want["swap"]).partition("_")
        if kind == "other":
            return [1, 0, 2, 3], (2, 3, 4, 5)
        shape = [batch, 2, 3, bench.number("channels", 16)]
        if flat:
            shape[1 if kind == "WC" else 2] = 1
        return [0, *(1 + axis for axis in _SWAPS[kind])], tuple(shape)
    rank = bench.number("rank", bench.number("input_rank", 4))
    shape = [*(1,) * max(rank - 4, 0), batch, 2, 3, bench.number("channels", 16)][-rank:]
    order = list(range(rank))
    if not bench.flag("within_plane", True):
        order[0], order[1] = 1, 0
        return order, (2, 3, *shape[2:])
    if not bench.flag("identity", False):
        at = max(rank - 3, 0)
        order[at], order[at + 1] = order[at + 1], order[at]
    return order, tuple(shape)


def pad(bench: Bench) -> LiteGraph:
    last, first = (
        1 if bench.flag(fact, False) else 0 for fact in ("pads_channels", "pads_leading")
    )
    rank = bench.number("input_rank", 4)
    table = [[first, 0], [1, 1], [1, 1], [0, last]][-rank:]
    pads = bench.parameter("pads", table, constant=bench.flag("parameters_constant", True))
    inputs = [bench.data("x", (bench.lead, 4, 4, 16)[-rank:]), pads]
    if bench.code == "PADV2":
        inputs.append(bench.data("z", (), constant=True))
    shape = (bench.lead + first, 6, 6, 16 + last)[-rank:]
    if bench.code == "MIRROR_PAD":
        return bench.finish(tuple(inputs), shape, mode="REFLECT")
    return bench.finish(tuple(inputs), shape)


def slice_(bench: Bench) -> LiteGraph:
    constant = bench.flag("parameters_constant", True)
    lead = bench.lead
    begin = bench.parameter("begin", (0, 0, 0, 0), constant=constant)
    size = bench.parameter("size", (lead, 2, 4, 16), constant=constant)
    return bench.finish((bench.data("x", (lead, 4, 4, 16)), begin, size), (lead, 2, 4, 16))


def strided_slice(bench: Bench) -> LiteGraph:
    constant = bench.flag("parameters_constant", True)
    begin, end, steps = [0, 0, 0, 0], [1, 4, 4, 16], [1, 1, 1, 1]
    if not bench.flag("unit_step", True):
        steps[1] = 2
    if not bench.flag("steps_in_plane", True):
        steps[3] = 2
    if not bench.flag("positive_steps", True):
        begin[1], end[1], steps[1] = 3, 0, -1
    lengths = [-(-(e - b) // s) for b, e, s in zip(begin, end, steps, strict=True)]
    names = [
        bench.parameter(name, values, constant=constant)
        for name, values in (("begin", begin), ("end", end), ("step", steps))
    ]
    return bench.finish(
        (bench.data("x", (1, 4, 4, 16)), *names),
        tuple(lengths),
        begin_mask=0,
        end_mask=0,
        ellipsis_mask=bench.number("ellipsis_mask", 0),
        new_axis_mask=bench.number("new_axis_mask", 0),
        shrink_axis_mask=bench.number("shrink_axis_mask", 0),
    )


def concatenation(bench: Bench) -> LiteGraph:
    names = ("x", "z", *(f"x{i}" for i in range(100)))[: bench.number("inputs", 2)]
    rank, axis = bench.number("rank", 4), bench.number("axis", 3)
    shape = [*(1,) * (rank - 4), bench.lead, 4, 4, 16][-rank:]
    axis = min(axis, rank - 1)
    constant = bench.flag("data_constant", False)
    inputs = tuple(
        bench.data(name, tuple(shape), constant=constant and name == "z") for name in names
    )
    shape[axis] *= len(inputs)
    fused = str(bench.get("fused_activation", "NONE"))
    return bench.finish(inputs, tuple(shape), axis=axis, fused_activation_function=fused)


def pack(bench: Bench) -> LiteGraph:
    axis = bench.number("axis", 1)
    shape = [*(bench.lead,) * (bench.lead > 1), 4, 4, 16]
    inputs = tuple(bench.data(name, tuple(shape)) for name in ("x", "z"))
    shape.insert(axis, 2)
    return bench.finish(inputs, tuple(shape), axis=axis, values_count=2)


def unpack(bench: Bench) -> LiteGraph:
    x = bench.data("x", (2, 4, 4, 16))
    return bench.finish_many((x,), [(4, 4, 16)] * 2, axis=0, num=2)


def reshape(bench: Bench) -> LiteGraph:
    shape = (1,) * (bench.number("rank", 4) - 1) + (bench.number("max_dimension", 16),)
    constant = bench.flag("parameters_constant", True)
    new = bench.parameter("new", shape, constant=constant)
    return bench.finish((bench.data("x", shape[-1:]), new), shape, new_shape=shape)


def squeeze(bench: Bench) -> LiteGraph:
    shape = (1,) * (bench.number("rank", 4) - 1) + (16,)
    return bench.finish((bench.data("x", shape),), (16,), squeeze_dims=list(range(len(shape) - 1)))


def expand_dims(bench: Bench) -> LiteGraph:
    constant = bench.flag("parameters_constant", True)
    axis = bench.parameter("axis", 0, constant=constant)
    shape = (bench.lead, 2, 4, 16) if bench.lead > 1 else (4, 16)
    return bench.finish((bench.data("x", shape), axis), (1, *shape))


def split(bench: Bench) -> LiteGraph:
    parts = bench.number("parts", 2)
    axis = bench.parameter("axis", 1)
    x = bench.data("x", (1, 2 * parts, 4, 16))
    shapes: list[Shape] = [(1, 2, 4, 16)] * parts
    if bench.code == "SPLIT_V":
        sizes = bench.parameter("sizes", [2] * parts)
        return bench.finish_many((x, sizes, axis), shapes, num_splits=parts)
    return bench.finish_many((axis, x), shapes, num_splits=parts)


def tile(bench: Bench) -> LiteGraph:
    constant = bench.flag("parameters_constant", True)
    multiples = bench.parameter("multiples", (1, 2, 1, 1), constant=constant)
    return bench.finish((bench.data("x", (1, 4, 4, 16)), multiples), (1, 8, 4, 16))


def broadcast_to(bench: Bench) -> LiteGraph:
    constant = bench.flag("parameters_constant", True)
    shape = bench.parameter("shape", (1, 4, 4, 16), constant=constant)
    return bench.finish((bench.data("x", (1, 1, 4, 16)), shape), (1, 4, 4, 16))


def reverse(bench: Bench) -> LiteGraph:
    axes = bench.parameter("axes", (1,), constant=bench.flag("parameters_constant", True))
    return bench.finish((bench.data("x", (1, 4, 4, 16)), axes), (1, 4, 4, 16))


def gather(bench: Bench) -> LiteGraph:
    axis = bench.number("axis", 0 if bench.flag("axis_is_batch_dims", True) else 1)
    rank = bench.number("indices_rank", 1)
    count = (*(1,) * (rank - 1), 3)
    constant = bench.flag("indices_constant", False)
    indices = bench.data("i", count, constant=constant, dtype="int32")
    shape = [4, 8, 16]
    x = bench.data("x", tuple(shape))
    out = (*shape[:axis], *count, *shape[axis + 1 :])
    return bench.finish((x, indices), out, axis=axis, batch_dims=bench.number("batch_dims", 0))


def scatter(bench: Bench) -> LiteGraph:
    channels = bench.number("index_channels", 1)
    rows = [[i] + [0] * (channels - 1) for i in range(3)]
    if not bench.flag("indices_unique", True):
        rows[1] = rows[0]
    index = bench.parameter("i", rows, constant=bench.flag("indices_constant", True))
    shape = (4,) * channels + (16,)
    updates = bench.data("x", (3, 16))
    return bench.finish((index, updates, bench.parameter("shape", shape)), shape)


def gather_nd(bench: Bench) -> LiteGraph:
    indices = bench.data("i", (3, 1), dtype="int32")
    return bench.finish((bench.data("x", (4, 16)), indices), (3, 16))


def blocks(bench: Bench) -> LiteGraph:
    inner, outer = (1, 4, 4, 4), (1, 2, 2, 16)
    if bench.code == "DEPTH_TO_SPACE":
        inner, outer = outer, inner
    return bench.finish((bench.data("x", inner),), outer, block_size=2)
