"""Resize: TFLite's own operators where they read the same elements, else constant matrices.

RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR are used when both axes agree with what ONNX asks,
element by element. Otherwise nearest is a GATHER of constant indices an axis, and linear and cubic
are a FULLY_CONNECTED along each axis with its interpolation matrix, exact in every mode.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.interpolation import Axis, lite_bilinear, lite_nearest
from splitter.ops.linear import over_rows
from splitter.ops.registry import Emitter, Lowering, Op

FLAGS = ((False, True), (True, False), (False, False))
"""(align_corners, half_pixel_centers) in order of preference."""


def axes_of(graph: Graph, unit: Unit) -> dict[int, Axis]:
    """The axes that change or are sampled elsewhere, by number in the stored layout."""
    x, y = graph.shape(unit.inputs[0]), graph.shape(unit.outputs[0])
    attrs = unit.attrs
    rank = len(x)
    sizes, scales = attrs["sizes"], attrs.get("scales")
    numbers = (1, 2) if len(sizes) == 2 and rank == 4 else tuple(range(rank))
    made = {}
    for i, number in enumerate(numbers):
        scale = float(scales[i]) if scales else y[number] / x[number]
        roi = attrs.get("roi")
        axis = Axis(
            x[number],
            y[number],
            scale,
            coordinates=attrs.get("coordinate_transformation_mode", "half_pixel"),
            mode=attrs.get("mode", "nearest"),
            nearest_mode=attrs.get("nearest_mode", "round_prefer_floor"),
            cubic_coeff_a=float(attrs.get("cubic_coeff_a", -0.75)),
            exclude_outside=bool(attrs.get("exclude_outside", False)),
            antialias=bool(attrs.get("antialias", False)),
            roi=(float(roi[i]), float(roi[len(numbers) + i])) if roi else (0.0, 1.0),
            extrapolation=float(attrs.get("extrapolation_value", 0.0)),
        )
        if not np.array_equal(axis.matrix(), np.eye(axis.size)):
            made[number] = axis
    return made


def _matching_flags(graph: Graph, unit: Unit) -> tuple[bool, bool] | None:
    """The flags under which TFLite's operator reads what ONNX asks on both axes."""
    axes = axes_of(graph, unit)
    for align, half in FLAGS:
        if all(_agrees(axis, align, half) for axis in axes.values()):
            return align, half
    return None


def _agrees(axis: Axis, align: bool, half: bool) -> bool:
    if axis.mode == "nearest":
        mine = lite_nearest(axis.size, axis.out, align_corners=align, half_pixel=half)
        return bool(np.array_equal(mine, axis.nearest()))
    matrix = lite_bilinear(axis.size, axis.out, align_corners=align, half_pixel=half)
    return bool(np.abs(matrix - axis.matrix()).max() < 1e-5)


def _lite(graph: Graph, unit: Unit) -> str | None:
    if reason := _disputed(graph, unit):
        return reason
    if _outside(graph, unit) is not None:
        return "parts of it lie outside the input"
    mode = unit.attrs.get("mode", "nearest")
    if mode == "cubic":
        return "TFLite has no cubic resize"
    if len(graph.shape(unit.inputs[0])) != 4 or len(unit.attrs["sizes"]) != 2:
        return "it does not resize the height and width of an image"
    return None if _matching_flags(graph, unit) else "TFLite samples at other positions"


def emit_lite(e: Emitter, unit: Unit) -> None:
    flags = _matching_flags(e.graph, unit)
    assert flags is not None
    nearest = unit.attrs.get("mode", "nearest") == "nearest"
    size = e.const(e.graph.shape(unit.outputs[0])[1:3], "size", dtype="int32")
    e.finish(
        "RESIZE_NEAREST_NEIGHBOR" if nearest else "RESIZE_BILINEAR",
        unit,
        [e.value(unit.inputs[0]), size],
        align_corners=flags[0],
        half_pixel_centers=flags[1],
    )


def _disputed(graph: Graph, unit: Unit) -> str | None:
    """align_corners of a length that scales make fractional: the ONNX reference counts with the
    fraction, ONNX Runtime without."""
    for axis in axes_of(graph, unit).values():
        fraction = abs(axis.scale * axis.size - axis.out)
        if axis.coordinates == "align_corners" and fraction > 1e-3:
            return "align_corners of a fractional length means different things to different tools"
    return None


def _outside(graph: Graph, unit: Unit) -> Array | None:
    """Which elements of the result take the extrapolation value, None when none does."""
    shape = graph.shape(unit.outputs[0])
    mask = np.zeros((1,) * len(shape), bool)
    for number, axis in axes_of(graph, unit).items():
        column = axis.outside().reshape([-1 if a == number else 1 for a in range(len(shape))])
        mask = mask | column
    return mask if mask.any() else None


def emit_gather(e: Emitter, unit: Unit) -> None:
    """One GATHER with constant indices an axis."""

    def step(e: Emitter, x: str, number: int, axis: Axis, out: str) -> str:
        shape = list(e.shape(x))
        shape[number] = axis.out
        index = e.const(axis.nearest(), "nearest", dtype="int32")
        return e.op(
            "GATHER",
            [x, index],
            shape,
            dtype=e.dtype(x),
            out=out,
            hint="picked",
            axis=number,
            batch_dims=0,
        )

    _by_axis(e, unit, step)


def emit_matrices(e: Emitter, unit: Unit) -> None:
    """One FULLY_CONNECTED an axis; the last axis first, so that it needs no transpose."""

    def step(e: Emitter, x: str, number: int, axis: Axis, out: str) -> str:
        return along(e, x, number, axis.matrix(), out=out)

    _by_axis(e, unit, step)


def _by_axis(e: Emitter, unit: Unit, step: Callable[[Emitter, str, int, Axis, str], str]) -> None:
    axes = sorted(axes_of(e.graph, unit).items(), reverse=True)
    x = e.value(unit.inputs[0])
    outside = _outside(e.graph, unit)
    out = unit.outputs[0] if outside is None else ""
    for number, axis in axes:
        x = step(e, x, number, axis, out if number == axes[-1][0] else "")
    if outside is not None:
        fill = e.const(float(unit.attrs.get("extrapolation_value", 0.0)), "extrapolation")
        e.finish("SELECT_V2", unit, [e.const(outside, "outside", dtype="bool"), fill, x])
    elif not axes:
        e.bind(x, unit)


def along(e: Emitter, x: str, axis: int, matrix: Array, *, out: str = "") -> str:
    """matrix [out, in] applied to one axis of x, by FULLY_CONNECTED between two transposes."""
    rank = len(e.shape(x))
    perm = (*(a for a in range(rank) if a != axis), axis)
    inverse = tuple(perm.index(a) for a in range(rank))
    moved = e.transpose(x, perm)
    last = axis == rank - 1
    y = over_rows(e, moved, e.const(matrix, "matrix"), "", out=out if last else "")
    return y if last else e.transpose(y, inverse, out=out)


def _nearest(graph: Graph, unit: Unit) -> str | None:
    if unit.attrs.get("mode", "nearest") != "nearest":
        return "it interpolates"
    return _disputed(graph, unit)


def _floats(graph: Graph, unit: Unit) -> str | None:
    if graph.values[unit.inputs[0]].dtype not in ("float32", "float16", "float64"):
        return "it is not of floats"
    return _disputed(graph, unit)


OPS = (
    Op(
        "Resize",
        (
            Lowering("resize", emit_lite, applies=_lite),
            Lowering("gather", emit_gather, applies=_nearest),
            Lowering("fully_connected", emit_matrices, applies=_floats),
        ),
        commute="channels_last",
    ),
)
