"""GridSample: bilinear sampling, from four corners or as dense matrix products.

Four corners: index and weight of each corner are functions of one coordinate, which integers do by
table without rounding the position again; BATCH_MATMUL adds the corners in 32 bits.

Dense, with no gather: the weight of pixel j for a sample at x (in pixels) is the hat
max(0, 1 - |x - j|), that is 1 - |clamp(x - j)| with the clamp to [-1, 1]. x - j is affine in the
grid, so it is FULLY_CONNECTED with weights that int8 holds exactly and the offsets in the 32-bit
bias; pixels outside weigh nothing, which is ONNX's padding_mode "zeros". Rows and columns multiply
to a weight for each pixel, and BATCH_MATMUL sums.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.functions import compare, scaled, shifted
from splitter.ops.grid import LOWERINGS, too_large
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.separable import emit_separable, separable


def _hat(e: Emitter, grid: str, column: int, size: int, *, align_corners: bool) -> str:
    """Weights [points, size] of the pixels of one axis for grid [points, 2] in -1..1."""
    slope = (size - 1) / 2 if align_corners else size / 2
    center = (size - 1) / 2
    weight = np.zeros((size, 2))
    weight[:, column] = slope
    distance = fully_connected(
        e,
        grid,
        e.const(weight, "slope"),
        e.const(center - np.arange(size), "offset"),
        activation="RELU_N1_TO_1",
        hint="distance",
    )
    return two(e, "SUB", e.const(1.0, "one"), one(e, "ABS", distance), hint="hat")


def emit_hat(e: Emitter, unit: Unit) -> None:
    x, grid = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    n, h, w, c = e.shape(x)
    points = prod(e.shape(grid)[1:3])
    align = bool(unit.attrs.get("align_corners", 0))
    flat = e.reshape(grid, (n * points, 2))
    columns = e.reshape(_hat(e, flat, 0, w, align_corners=align), (n * points, 1, w))
    rows = e.reshape(_hat(e, flat, 1, h, align_corners=align), (n * points, h, 1))
    weights = e.reshape(two(e, "MUL", rows, columns, hint="weights"), (n, points, h * w))
    image = e.reshape(x, (n, h * w, c))
    y = e.op(
        "BATCH_MATMUL",
        [weights, image],
        (n, points, c),
        hint="sampled",
        adj_x=False,
        adj_y=False,
        asymmetric_quantize_inputs=False,
    )
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def _bilinear(graph: Graph, unit: Unit) -> str | None:
    mode = unit.attrs.get("mode", "bilinear")
    if mode not in ("bilinear", "linear"):
        return f"mode {mode}"
    if unit.attrs.get("padding_mode", "zeros") != "zeros":
        return f"padding_mode {unit.attrs['padding_mode']}"
    if len(graph.shape(unit.inputs[0])) != 4:
        return "it is not two-dimensional"
    return too_large(graph, unit)


def _corner(e: Emitter, place: str, weight: str, size: int) -> tuple[str, str]:
    """(index, weight) of one corner [points, 1]: outside the image the weight is 0."""
    middle = one(e, "ABS", shifted(e, place, -(size - 1) / 2))
    valid = e.op("CAST", [compare(e, "LESS", middle, size / 2)], e.shape(place), hint="valid")
    inside = two(e, "MAXIMUM", place, e.const(0.0, "first"))
    inside = two(e, "MINIMUM", inside, e.const(size - 1.0, "last"))
    index = e.op("CAST", [inside], e.shape(place), dtype="int32", hint="index")
    return index, two(e, "MUL", weight, valid, hint="weight")


def _corners(e: Emitter, g: str, size: int, unit: Unit) -> tuple[str, str]:
    """Indices and weights [points, 2] of the two pixels around a coordinate g in -1..1."""
    align = bool(unit.attrs.get("align_corners", 0))
    x = shifted(e, scaled(e, g, (size - 1) / 2 if align else size / 2), (size - 1) / 2)
    if unit.attrs.get("padding_mode") == "border":
        x = two(
            e, "MINIMUM", two(e, "MAXIMUM", x, e.const(0.0, "first")), e.const(size - 1.0, "last")
        )
    low = one(e, "FLOOR", x)
    upper = two(e, "SUB", x, low, hint="fraction")
    lower = two(e, "SUB", e.const(1.0, "one"), upper, hint="rest")
    pairs = [_corner(e, low, lower, size), _corner(e, shifted(e, low, 1.0), upper, size)]
    return e.concat([pair[0] for pair in pairs], 1), e.concat([pair[1] for pair in pairs], 1)


def emit_corners(e: Emitter, unit: Unit) -> None:
    x, grid = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    n, h, w, c = e.shape(x)
    points = prod(e.shape(grid)[:3])
    flat = e.reshape(grid, (points, 2))
    column, columns = _corners(e, e.slice(flat, (0, 0), (points, 1)), w, unit)
    row, rows = _corners(e, e.slice(flat, (0, 1), (points, 1)), h, unit)
    row = two(e, "MUL", row, e.const(w, "width", dtype="int32"))
    if n > 1:
        image = np.repeat(np.arange(n) * h * w, points // n).reshape(points, 1)
        row = two(e, "ADD", row, e.const(image, "image", dtype="int32"))
    row, column = e.reshape(row, (points, 2, 1)), e.reshape(column, (points, 1, 2))
    index = e.reshape(two(e, "ADD", row, column, hint="index"), (points, 4))
    pixels = e.op(
        "GATHER",
        [e.reshape(x, (n * h * w, c)), index],
        (points, 4, c),
        hint="pixels",
        axis=0,
        batch_dims=0,
    )
    rows, columns = e.reshape(rows, (points, 2, 1)), e.reshape(columns, (points, 1, 2))
    weights = e.reshape(two(e, "MUL", rows, columns, hint="weights"), (points, 1, 4))
    y = e.op(
        "BATCH_MATMUL",
        [weights, pixels],
        (points, 1, c),
        hint="sampled",
        adj_x=False,
        adj_y=False,
        asymmetric_quantize_inputs=False,
    )
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def _has_corners(graph: Graph, unit: Unit) -> str | None:
    if unit.attrs.get("mode", "linear") not in ("bilinear", "linear"):
        return f"mode {unit.attrs['mode']}"
    if unit.attrs.get("padding_mode", "zeros") not in ("zeros", "border"):
        return f"padding_mode {unit.attrs['padding_mode']}"
    return None if len(graph.shape(unit.inputs[0])) == 4 else "it is not two-dimensional"


OPS = (
    Op(
        "GridSample",
        (
            Lowering("corners", emit_corners, applies=_has_corners),
            Lowering("hat_matmul", emit_hat, applies=_bilinear),
            Lowering("separable", emit_separable, applies=separable),
            *LOWERINGS,
        ),
        commute="channels_last",
    ),
)
