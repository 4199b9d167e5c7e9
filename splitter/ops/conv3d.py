"""Conv over three spatial axes, channels second: one CONV_2D over the depth taps as channels.

TFLite's CONV_3D has no integer kernel. The taps along depth are slices joined along the channels,
so the products of all of them meet in one 32-bit sum, as in a true 3-D convolution.
"""

from __future__ import annotations

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.registry import Emitter
from splitter.ops.shape import strided


def zeros_or(e: Emitter, bias: Array | None, channels: int) -> str:
    """The bias, zeros when there is none: the runtime's convolutions want one."""
    return e.const(np.zeros(channels) if bias is None else bias, "bias")


def convolve_depth(
    e: Emitter,
    x: str,
    weight: Array,
    bias: Array | None,
    unit: Unit,
    *,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> None:
    """x [N, C, D, H, W] already padded, weight [O, C, kd, kh, kw], bias [O]; one group."""
    n, c, _, h, w = e.shape(x)
    _, channels, depth, rows, columns = e.graph.shape(unit.outputs[0])
    taps = weight.shape[2]
    image = e.transpose(x, (0, 2, 3, 4, 1))
    slices = [strided(e, image, 1, k * dilations[0], depth, strides[0]) for k in range(taps)]
    stacked = e.concat([e.reshape(s, (n * depth, h, w, c)) for s in slices], 3)
    kernel = np.transpose(weight, (0, 3, 4, 2, 1)).reshape(channels, *weight.shape[3:], taps * c)
    y = e.op(
        "CONV_2D",
        [
            stacked,
            e.const(kernel, "kernel"),
            zeros_or(e, bias, channels),
        ],
        (n * depth, rows, columns, channels),
        hint="conv",
        padding="VALID",
        stride_h=strides[1],
        stride_w=strides[2],
        dilation_h_factor=dilations[1],
        dilation_w_factor=dilations[2],
        fused_activation_function=unit.attrs.get("activation") or "NONE",
    )
    y = e.reshape(y, (n, depth, rows, columns, channels))
    e.transpose(y, (0, 4, 1, 2, 3), out=unit.outputs[0])


def emit_conv3d(e: Emitter, unit: Unit) -> None:
    """A Conv unit with data [N, C, D, H, W]."""
    x, weight = e.value(unit.inputs[0]), e.graph.constants[unit.inputs[1]]
    has_bias = len(unit.inputs) > 2 and unit.inputs[2]
    bias = e.graph.constants[unit.inputs[2]] if has_bias else None
    pads = unit.attrs.get("pads") or (0,) * 6
    if any(pads):
        table = [[0, 0], [0, 0], *([pads[a], pads[a + 3]] for a in range(3))]
        shape = [size + sum(pair) for size, pair in zip(e.shape(x), table, strict=True)]
        x = e.op("PAD", [x, e.const(table, "paddings", dtype="int32")], shape, hint="padded")
    convolve_depth(
        e,
        x,
        weight,
        bias,
        unit,
        strides=tuple(unit.attrs.get("strides") or (1, 1, 1)),
        dilations=tuple(unit.attrs.get("dilations") or (1, 1, 1)),
    )


def three_axes(graph: Graph, unit: Unit) -> str | None:
    if len(graph.shape(unit.inputs[0])) != 5:
        return "it is not three-dimensional"
    if any(name and name not in graph.constants for name in unit.inputs[1:]):
        return "the weights are not constant"
    return "it is grouped" if unit.attrs.get("group", 1) != 1 else None
