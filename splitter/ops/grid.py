"""GridSample of every mode and padding, as dense products or as gathers.

A coordinate in pixels u is affine in the grid. Padding and mode are functions of u: clamped to the
image (border), folded back into it (reflection), rounded (nearest). What a pixel j weighs follows
from u - j. Dense: the weights of all pixels times the image; small images, no gather. Gathered:
four pixels a point, for images too large for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.functions import scaled, select, shifted
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter, Lowering
from splitter.ops.shape import pieces

LARGEST = 1 << 26
"""Weights (points times pixels) up to which sampling is a matrix product: 256 MB in float."""

CUBIC = -0.75
"""Slope of the cubic convolution in GridSample; ONNX operator specification."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a GridSample unit asks for."""

    mode: str
    padding: str
    align_corners: bool

    def border(self, size: int) -> tuple[float, float]:
        """Where reflection turns back, in pixels."""
        return (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)


def sampling(unit: Unit) -> Sampling:
    mode = str(unit.attrs.get("mode", "linear"))
    return Sampling(
        {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        str(unit.attrs.get("padding_mode", "zeros")),
        bool(unit.attrs.get("align_corners", 0)),
    )


def coordinate(e: Emitter, grid: str, column: int, size: int, how: Sampling) -> str:
    """Pixels [points, 1] from the grid [points, 2 or 3] in -1..1, padding and rounding applied."""
    slope = (size - 1) / 2 if how.align_corners else size / 2
    weight = np.zeros((1, e.shape(grid)[-1]))
    weight[0, column] = slope
    u = fully_connected(
        e, grid, e.const(weight, "slope"), e.const([(size - 1) / 2], "center"), hint="pixel"
    )
    if how.padding == "reflection":
        u = _reflected(e, u, *how.border(size))
    cubic = how.mode == "cubic"
    if how.padding == "border" or (how.padding == "reflection" and not cubic):
        # Beyond one element outside, all four cubic taps read the edge.
        u = two(e, "MAXIMUM", u, e.const(-1.0 if cubic else 0.0, "first"))
        u = two(e, "MINIMUM", u, e.const(float(size if cubic else size - 1), "last"))
    if how.mode == "nearest":
        u = one(e, "ROUND", u)
    return u


def _reflected(e: Emitter, u: str, low: float, high: float) -> str:
    """Folded back at both borders as often as needed."""
    span = high - low
    if span == 0:
        return scaled(e, u, 0.0)
    away = one(e, "ABS", shifted(e, u, -low))
    cycle = two(e, "FLOOR_MOD", away, e.const(2 * span, "period"))
    back = one(e, "ABS", shifted(e, cycle, -span))
    return two(e, "SUB", e.const(high, "high"), back)


# -- dense ------------------------------------------------------------------------------------


def _weights(e: Emitter, u: str, positions: Array, how: Sampling) -> str:
    """What each position [size] weighs for u [points, 1] -> [points, size]."""
    reach = 2.0 if how.mode == "cubic" else 1.0
    distance = fully_connected(
        e,
        u,
        e.const(np.full((len(positions), 1), 1 / reach), "one"),
        e.const(-positions / reach, "positions"),
        activation="RELU_N1_TO_1",
        hint="distance",
    )
    d = one(e, "ABS", distance)
    if how.mode != "cubic":
        return two(e, "SUB", e.const(1.0, "one"), d, hint="hat")
    d = scaled(e, d, reach)
    near = two(e, "MINIMUM", d, e.const(1.0, "one"))
    far = two(e, "MAXIMUM", d, e.const(1.0, "one"))
    a = CUBIC
    inner = shifted(e, scaled(e, near, a + 2), -(a + 3))
    inner = shifted(e, two(e, "MUL", two(e, "MUL", inner, near), near), 1.0)
    outer = shifted(e, scaled(e, far, a), -5 * a)
    outer = shifted(e, two(e, "MUL", outer, far), 8 * a)
    outer = shifted(e, two(e, "MUL", outer, far), -4 * a)
    return two(e, "ADD", inner, outer, hint="cubic")


def _extended(e: Emitter, x: str, axis: int, how: Sampling) -> tuple[str, int]:
    """The image with the pixels that cubic taps read beyond it, and how many before the first."""
    if how.mode != "cubic" or how.padding == "zeros":
        return x, 0
    size = e.shape(x)[axis]
    span = np.arange(-2, size + 2)
    if how.padding == "border":
        source = np.clip(span, 0, size - 1)
    elif how.align_corners:
        period = max(2 * size - 2, 1)
        folded = np.abs(span) % period
        source = np.minimum(folded, period - folded) if size > 1 else 0 * span
    else:
        folded = (span + 2 * size) % (2 * size)
        source = np.minimum(folded, 2 * size - 1 - folded)
    return pieces(e, x, axis, source.tolist()), 2


def emit_dense(e: Emitter, unit: Unit) -> None:
    """Any number of spatial axes; the grid's first column is the last axis."""
    x, grid = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    how = sampling(unit)
    axes = e.shape(grid)[-1]
    if axes == 3:
        x = e.transpose(x, (0, 2, 3, 4, 1))
    n, channels = e.shape(x)[0], e.shape(x)[-1]
    sizes = e.shape(x)[1:-1]
    points = prod(e.shape(grid)[1:-1])
    flat = e.reshape(grid, (n * points, axes))
    total = ""
    for axis in range(axes):
        x, before = _extended(e, x, 1 + axis, how)
        positions = np.arange(e.shape(x)[1 + axis]) - before
        u = coordinate(e, flat, axes - 1 - axis, sizes[axis], how)
        w = _weights(e, u, positions, how)
        count = len(positions)
        if not total:
            total = w
            continue
        rows = e.reshape(total, (n * points, e.shape(total)[1], 1))
        product = two(e, "MUL", rows, e.reshape(w, (n * points, 1, count)), hint="weights")
        total = e.reshape(product, (n * points, e.shape(total)[1] * count))
    pixels = prod(e.shape(x)[1:-1])
    y = e.op(
        "BATCH_MATMUL",
        [e.reshape(total, (n, points, pixels)), e.reshape(x, (n, pixels, channels))],
        (n, points, channels),
        hint="sampled",
        adj_x=False,
        adj_y=False,
        asymmetric_quantize_inputs=False,
    )
    _finish(e, unit, y, axes)


def _finish(e: Emitter, unit: Unit, y: str, axes: int) -> None:
    shape = e.graph.shape(unit.outputs[0])
    if axes == 3:
        moved = e.reshape(y, (shape[0], *shape[2:], shape[1]))
        y = e.transpose(moved, (0, 4, 1, 2, 3))
    e.bind(e.reshape(y, shape), unit)


# -- gathered ---------------------------------------------------------------------------------


def _taps(e: Emitter, u: str, size: int, how: Sampling) -> list[tuple[str, str]]:
    """(pixel number int32, weight) of the pixels that u [points, 1] reads; outside weighs 0."""
    low = one(e, "FLOOR", u)
    first = e.op("CAST", [low], e.shape(u), dtype="int32", hint="pixel")
    fraction = two(e, "SUB", u, low, hint="fraction")
    taps = [(first, two(e, "SUB", e.const(1.0, "one"), fraction))]
    if how.mode == "linear":
        taps.append((two(e, "ADD", first, e.const(1, "next", dtype="int32")), fraction))
    made = []
    for number, weight in taps:
        zero = e.const(0, "zero", dtype="int32")
        last = e.const(size - 1, "last", dtype="int32")
        inside = two(e, "MINIMUM", two(e, "MAXIMUM", number, zero), last)
        hit = e.op("EQUAL", [inside, number], e.shape(u), dtype="bool", hint="inside")
        made.append((inside, select(e, hit, weight, e.const(0.0, "none"))))
    return made


def emit_gathered(e: Emitter, unit: Unit) -> None:
    x, grid = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    how = sampling(unit)
    n, h, w, c = e.shape(x)
    points = prod(e.shape(grid)[1:3])
    flat = e.reshape(grid, (n * points, 2))
    columns = _taps(e, coordinate(e, flat, 0, w, how), w, how)
    rows = _taps(e, coordinate(e, flat, 1, h, how), h, how)
    image = e.reshape(x, (n * h * w, c))
    start = np.repeat(np.arange(n) * h * w, points).reshape(n * points, 1)
    total = ""
    for row, high in rows:
        line = two(e, "MUL", row, e.const(w, "width", dtype="int32"))
        line = two(e, "ADD", line, e.const(start, "start", dtype="int32"))
        for column, wide in columns:
            index = e.reshape(two(e, "ADD", line, column), (n * points,))
            pixel = e.op(
                "GATHER", [image, index], (n * points, c), hint="pixels", axis=0, batch_dims=0
            )
            part = two(e, "MUL", pixel, two(e, "MUL", high, wide))
            total = two(e, "ADD", total, part) if total else part
    e.bind(e.reshape(total, e.graph.shape(unit.outputs[0])), unit)


# -- which applies ----------------------------------------------------------------------------


def too_large(graph: Graph, unit: Unit) -> str | None:
    """Points times pixels, over what a matrix product should hold."""
    shape, grid = graph.shape(unit.inputs[0]), graph.shape(unit.inputs[1])
    axes = grid[-1]
    pixels = prod(shape[1:-1]) if axes == 2 else prod(shape[2:])
    size = prod(grid[:-1]) * pixels
    return f"{size} weights, over {LARGEST}" if size > LARGEST else None


def _gathers(graph: Graph, unit: Unit) -> str | None:
    if graph.shape(unit.inputs[1])[-1] != 2:
        return "it is not two-dimensional"
    return "cubic taps are not gathered" if sampling(unit).mode == "cubic" else None


LOWERINGS = (
    Lowering("matmul", emit_dense, applies=too_large),
    Lowering("gather", emit_gathered, applies=_gathers),
)
