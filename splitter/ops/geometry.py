"""Operators that mostly move or make coordinates: AffineGrid, Col2Im, CenterCropPad, EyeLike.

What does not depend on data is a constant here; the rest is a matrix product or a slice.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.linear import over_rows
from splitter.ops.registry import Emitter, Lowering, Op, lite_dtype
from splitter.ops.shape import cut_negative


def _size_constant(graph: Graph, unit: Unit) -> str | None:
    return None if unit.inputs[1] in graph.constants else "its size is not constant"


def base_grid(sizes: tuple[int, ...], *, align_corners: bool) -> Array:
    """Homogeneous coordinates [points, axes + 1] of the elements, last axis first, in -1..1."""
    lines = []
    for size in sizes:
        step = np.arange(size, dtype=np.float64)
        if align_corners:
            lines.append(2 * step / (size - 1) - 1 if size > 1 else np.zeros(1))
        else:
            lines.append((2 * step + 1) / size - 1)
    mesh = np.meshgrid(*lines, indexing="ij")
    columns = [m.reshape(-1) for m in reversed(mesh)]
    return np.stack([*columns, np.ones(prod(sizes))], axis=1)


def emit_affine_grid(e: Emitter, unit: Unit) -> None:
    """theta [N, A, A + 1] times the constant grid: FULLY_CONNECTED of theta's rows."""
    theta = e.value(unit.inputs[0])
    size = tuple(int(n) for n in e.graph.constants[unit.inputs[1]])
    n, axes, width = e.shape(theta)
    grid = base_grid(size[2:], align_corners=bool(unit.attrs.get("align_corners", 0)))
    rows = e.reshape(theta, (n * axes, width))
    y = e.reshape(over_rows(e, rows, e.const(grid, "grid"), ""), (n, axes, len(grid)))
    e.bind(e.reshape(e.transpose(y, (0, 2, 1)), e.graph.shape(unit.outputs[0])), unit)


def emit_center_crop_pad(e: Emitter, unit: Unit) -> None:
    """SLICE and PAD about the middle."""
    x = e.value(unit.inputs[0])
    shape, wanted = e.shape(x), e.graph.shape(unit.outputs[0])
    pads = []
    for size, target in zip(shape, wanted, strict=True):
        before = (target - size) // 2 if target >= size else -((size - target) // 2)
        pads.append((before, target - size - before))
    x, pads = cut_negative(e, x, pads)
    if any(p for pair in pads for p in pair):
        table = e.const(pads, "paddings", dtype="int32")
        e.finish("PAD", unit, [x, table])
    else:
        e.bind(x, unit)


def emit_col2im(e: Emitter, unit: Unit) -> None:
    """Overlapping blocks summed: each element of the result adds a constant choice of the data."""
    x = e.value(unit.inputs[0])
    image, block = (tuple(int(n) for n in e.graph.constants[unit.inputs[i]]) for i in (1, 2))
    n, width, blocks = e.shape(x)
    taps = prod(block)
    matrix = _placement(unit, image, block, blocks)
    rows = e.reshape(x, (n * (width // taps), taps * blocks))
    y = over_rows(e, rows, e.const(matrix, "placement"), "")
    e.bind(e.reshape(y, e.graph.shape(unit.outputs[0])), unit)


def _placement(unit: Unit, image: tuple[int, ...], block: tuple[int, ...], blocks: int) -> Array:
    """0/1 matrix [image elements, taps * blocks]."""
    axes = len(image)
    strides = unit.attrs.get("strides") or (1,) * axes
    dilations = unit.attrs.get("dilations") or (1,) * axes
    pads = unit.attrs.get("pads") or (0,) * (2 * axes)
    counts = [
        (image[a] + pads[a] + pads[axes + a] - (block[a] - 1) * dilations[a] - 1) // strides[a] + 1
        for a in range(axes)
    ]
    matrix = np.zeros((prod(image), prod(block) * blocks))
    for t, tap in enumerate(np.ndindex(*block)):
        for b, corner in enumerate(np.ndindex(*counts)):
            place = [corner[a] * strides[a] + tap[a] * dilations[a] - pads[a] for a in range(axes)]
            if all(0 <= p < size for p, size in zip(place, image, strict=True)):
                matrix[np.ravel_multi_index(place, image), t * blocks + b] = 1
    return matrix


def _small(graph: Graph, unit: Unit) -> str | None:
    if any(name not in graph.constants for name in unit.inputs[1:3]):
        return "its sizes are not constant"
    shape = graph.shape(unit.outputs[0])
    taps = prod(graph.constants[unit.inputs[2]].tolist())
    size = prod(shape[2:]) * taps * graph.shape(unit.inputs[0])[2]
    return None if size <= 1 << 22 else f"a matrix of {size} elements"


def emit_eye_like(e: Emitter, unit: Unit) -> None:
    """A constant; the data gives its shape alone."""
    rows, columns = e.graph.shape(unit.outputs[0])
    dtype = lite_dtype(e.graph.values[unit.outputs[0]].dtype)
    eye = e.const(np.eye(rows, columns, int(unit.attrs.get("k", 0))), "eye", dtype=dtype)
    e.reshape(eye, (rows, columns), out=unit.outputs[0])


def emit_dropout(e: Emitter, unit: Unit) -> None:
    """At inference the data as it is, and a mask that keeps all of it."""
    x = e.value(unit.inputs[0])
    e.reshape(x, e.shape(x), out=unit.outputs[0])
    if len(unit.outputs) > 1 and unit.outputs[1]:
        mask = e.const(np.ones(e.shape(x), bool), "mask", dtype="bool")
        e.reshape(mask, e.shape(x), out=unit.outputs[1])


OPS = (
    Op("Dropout", (Lowering("identity", emit_dropout),)),
    Op("AffineGrid", (Lowering("fully_connected", emit_affine_grid, applies=_size_constant),)),
    Op("CenterCropPad", (Lowering("slice_and_pad", emit_center_crop_pad),)),
    Op("Col2Im", (Lowering("fully_connected", emit_col2im, applies=_small),)),
    Op("EyeLike", (Lowering("constant", emit_eye_like),)),
)
