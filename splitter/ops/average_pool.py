"""AveragePool and LpPool of any padding, stride, dilation and rounding.

Pads are zeros; a constant factor for each window corrects the divisor where it is not the area of
the kernel.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Array, Unit
from splitter.ops.conv import pad_spatial
from splitter.ops.elementwise import one, two
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.window import (
    Window,
    activate,
    along,
    axis_windows,
    by_axis,
    dilated,
    image_windows,
    not_an_image,
    padding_of,
    pads_of,
    pool,
)


def factors(over: tuple[Window, ...], *, include: bool) -> Array:
    """kernel area / divisor for each window, [out, ...]; 1 where the divisor is the area."""
    factor: Array = np.ones(())
    for w in over:
        counts = np.maximum(w.counts(include=include), 1)
        factor = np.multiply.outer(factor, w.kernel / counts)
    return factor


def emit_average(e: Emitter, unit: Unit) -> None:
    over = image_windows(e.graph, unit)
    include = bool(unit.attrs.get("count_include_pad"))
    factor = factors(over, include=include)
    activation = unit.attrs.get("activation", "")
    x = e.value(unit.inputs[0])
    padding = padding_of(over)
    if padding == "VALID" or (padding == "SAME" and not include):
        pool(
            e,
            "AVERAGE_POOL_2D",
            x,
            over,
            padding=padding,
            out=unit.outputs[0],
            activation=activation,
        )
        return
    x = pad_spatial(e, x, pads_of(over))
    if np.all(factor == 1):
        pool(e, "AVERAGE_POOL_2D", x, over, out=unit.outputs[0], activation=activation)
        return
    y = pool(e, "AVERAGE_POOL_2D", x, over)
    scale = e.const(factor.reshape(1, *factor.shape, 1), "divisor")
    e.finish("MUL", unit, [y, scale], fused_activation_function=activation or "NONE")


def window_sum(
    e: Emitter, x: str, over: tuple[Window, ...], weight: float, *, out: str = ""
) -> str:
    """Sum over each window times `weight`, as DEPTHWISE_CONV_2D; pads count as 0."""
    if any(pads_of(over)):
        x = pad_spatial(e, x, pads_of(over))
    n, _, _, c = e.shape(x)
    kernel = np.full((1, over[0].kernel, over[1].kernel, c), weight)
    return e.op(
        "DEPTHWISE_CONV_2D",
        [x, e.const(kernel, "window"), e.const(np.zeros(c), "bias")],
        (n, over[0].out, over[1].out, c),
        out=out,
        hint="sum",
        padding="VALID",
        stride_h=over[0].stride,
        stride_w=over[1].stride,
        dilation_h_factor=over[0].dilation,
        dilation_w_factor=over[1].dilation,
        depth_multiplier=1,
        fused_activation_function="NONE",
    )


def emit_average_dilated(e: Emitter, unit: Unit) -> None:
    over = image_windows(e.graph, unit)
    factor = factors(over, include=bool(unit.attrs.get("count_include_pad")))
    y = window_sum(e, e.value(unit.inputs[0]), over, 1.0 / prod(w.kernel for w in over))
    if not np.all(factor == 1):
        y = two(e, "MUL", y, e.const(factor.reshape(1, *factor.shape, 1), "divisor"))
    activate(e, y, unit)


def _mean_axis(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    return window_sum(e, x, over, 1.0 / over[0].kernel)


def emit_average_by_axis(e: Emitter, unit: Unit) -> None:
    x, over, _ = axis_windows(e, unit)
    factor = factors(over, include=bool(unit.attrs.get("count_include_pad")))
    for axis, window in enumerate(over, start=2):
        x = along(e, x, axis, window, _mean_axis)
    if not np.all(factor == 1):
        x = two(e, "MUL", x, e.const(factor, "divisor"))
    activate(e, x, unit)


def emit_lp_pool(e: Emitter, unit: Unit) -> None:
    """(sum |x|^p)^(1/p), channels second."""
    x, over, _ = axis_windows(e, unit)
    order = int(unit.attrs.get("p", 2))
    if order == 2:
        x = two(e, "MUL", x, x, hint="square")
    else:
        x = one(e, "ABS", x)
        x = x if order == 1 else two(e, "POW", x, e.const(float(order), "order"))
    for axis, window in enumerate(over, start=2):
        x = along(e, x, axis, window, _sum_axis)
    if order == 2:
        x = one(e, "SQRT", x)
    elif order != 1:
        x = two(e, "POW", x, e.const(1.0 / order, "root"))
    e.bind(x, unit)


def _sum_axis(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    return window_sum(e, x, over, 1.0)


OPS = (
    Op(
        "AveragePool",
        (
            Lowering("average_pool_2d", emit_average, applies=dilated),
            Lowering("depthwise_conv_2d", emit_average_dilated, applies=not_an_image),
            Lowering("by_axis", emit_average_by_axis, applies=by_axis),
        ),
        commute="channels_last",
    ),
    Op("LpPool", (Lowering("by_axis", emit_lp_pool),)),
)
