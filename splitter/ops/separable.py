"""GridSample with two products: rows by BATCH_MATMUL, then columns by MUL and FULLY_CONNECTED.

No weight for each pair of row and column is ever stored, no input of a product is broadcast on both
sides, and nothing is gathered: what an NPU takes. The hat weights are as in `sample`; a sum over
columns is FULLY_CONNECTED with weights 0 and 1, which int8 holds exactly, and 32-bit sums.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.grid import sampling
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter

LARGEST = 1 << 25
"""Points times columns times channels: what lies between the two products, 32 MB in int8."""


def _hat(e: Emitter, grid: str, column: int, size: int, *, align_corners: bool) -> str:
    """Weights [points, size] of the pixels of one axis, straight from the grid [points, 2]."""
    weight = np.zeros((size, 2))
    weight[:, column] = (size - 1) / 2 if align_corners else size / 2
    distance = fully_connected(
        e,
        grid,
        e.const(weight, "slope"),
        e.const((size - 1) / 2 - np.arange(size), "offset"),
        activation="RELU_N1_TO_1",
        hint="distance",
    )
    return two(e, "SUB", e.const(1.0, "one"), one(e, "ABS", distance), hint="hat")


def _clamped(e: Emitter, grid: str, sizes: tuple[int, int], *, align_corners: bool) -> str:
    """The grid kept within the middles of the outermost pixels: padding by the border."""
    reach = np.array([1.0 if align_corners else 1 - 1 / size for size in sizes])
    high = two(e, "MINIMUM", grid, e.const(reach, "last"))
    return two(e, "MAXIMUM", high, e.const(-reach, "first"))


def emit_separable(e: Emitter, unit: Unit) -> None:
    x, grid = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    how = sampling(unit)
    n, h, w, c = e.shape(x)
    points = prod(e.shape(grid)[1:3])
    flat = e.reshape(grid, (n * points, 2))
    if how.padding == "border":
        flat = _clamped(e, flat, (w, h), align_corners=how.align_corners)
    rows = _hat(e, flat, 1, h, align_corners=how.align_corners)
    columns = _hat(e, flat, 0, w, align_corners=how.align_corners)
    lines = e.op(
        "BATCH_MATMUL",
        [e.reshape(rows, (n, points, h)), e.reshape(x, (n, h, w * c))],
        (n, points, w * c),
        hint="lines",
        adj_x=False,
        adj_y=False,
        asymmetric_quantize_inputs=False,
    )
    lines = e.reshape(lines, (n * points, w, c))
    weighed = two(e, "MUL", lines, e.reshape(columns, (n * points, w, 1)), hint="weighed")
    sums = e.const(np.tile(np.eye(c), (1, w)), "sums")
    y = fully_connected(e, e.reshape(weighed, (n * points, w * c)), sums, "", hint="sampled")
    e.bind(e.reshape(y, e.graph.shape(unit.outputs[0])), unit)


def separable(graph: Graph, unit: Unit) -> str | None:
    """None for bilinear sampling of images that pads with zeros or the border."""
    how = sampling(unit)
    shape = graph.shape(unit.inputs[0])
    if len(shape) != 4:
        return "it is not two-dimensional"
    if how.mode != "linear" or how.padding == "reflection":
        return f"mode {how.mode}, padding {how.padding}"
    size = prod(graph.shape(unit.inputs[1])[:-1]) * shape[2] * shape[3]
    return f"{size} values, over {LARGEST}" if size > LARGEST else None
