"""GridSample: bilinear sampling as dense matrix products, no gather.

The weight of pixel j for a sample at x (in pixels) is the hat max(0, 1 - |x - j|) = 1 - |clamp(x - j)|
with the clamp to [-1, 1]. x - j is affine in the grid, so it is FULLY_CONNECTED with weights that
int8 holds exactly and the offsets in the 32-bit bias; pixels outside weigh nothing, which is ONNX's
padding_mode "zeros". Rows and columns multiply to a weight for each pixel, and BATCH_MATMUL sums.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter, Lowering, Op


def _hat(e: Emitter, grid: str, column: int, size: int, *, align_corners: bool) -> str:
    """Weights [points, size] of the pixels of one axis for grid [points, 2] in -1..1."""
    slope = (size - 1) / 2 if align_corners else size / 2
    center = (size - 1) / 2
    weight = np.zeros((size, 2))
    weight[:, column] = slope
    distance = fully_connected(
        e, grid, e.const(weight, "slope"), e.const(center - np.arange(size), "offset"),
        activation="RELU_N1_TO_1", hint="distance",
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
        "BATCH_MATMUL", [weights, image], (n, points, c), hint="sampled",
        adj_x=False, adj_y=False, asymmetric_quantize_inputs=False,
    )
    e.reshape(y, e.graph.shape(unit.outputs[0]), out=unit.outputs[0])


def _bilinear(graph: Graph, unit: Unit) -> str | None:
    mode = unit.attrs.get("mode", "bilinear")
    if mode not in ("bilinear", "linear"):
        return f"mode {mode}"
    if unit.attrs.get("padding_mode", "zeros") != "zeros":
        return f"padding_mode {unit.attrs['padding_mode']}"
    return None if len(graph.shape(unit.inputs[0])) == 4 else "it is not two-dimensional"


OPS = (
    Op("GridSample", (Lowering("hat_matmul", emit_hat, applies=_bilinear),), commute="channels_last"),
)
