"""Convolutions on channels-last data; weights come in ONNX layout and are permuted here.

Asymmetric or unequal padding that TFLite's SAME/VALID cannot say becomes a PAD before VALID.
"""

from __future__ import annotations

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.conv3d import emit_conv3d, three_axes
from splitter.ops.registry import Emitter, Lowering, Op


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """What TFLite's SAME pads on one axis (before, after), elements."""
    extent = (kernel - 1) * dilation + 1
    out = -(-size // stride)
    total = max((out - 1) * stride + extent - size, 0)
    return total // 2, total - total // 2


def pad_spatial(e: Emitter, x: str, pads: tuple[int, ...], value: float = 0.0) -> str:
    """PAD the two spatial axes of NHWC data by ONNX pads (top, left, bottom, right)."""
    top, left, bottom, right = pads
    shape = e.shape(x)
    table = e.const([[0, 0], [top, bottom], [left, right], [0, 0]], "paddings", dtype="int32")
    out = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
    if value == 0.0:
        return e.op("PAD", [x, table], out, dtype=e.dtype(x), hint="pad")
    return e.op("PADV2", [x, table, e.const(value, "pad_value")], out, hint="pad")


def padding(
    e: Emitter, x: str, unit: Unit, kernel: tuple[int, int], *, value: float = 0.0
) -> tuple[str, str]:
    """(tensor, "SAME" or "VALID") for the unit's pads, with an explicit PAD where needed."""
    pads = tuple(unit.attrs.get("pads", (0, 0, 0, 0)))
    stride, dilation = unit.attrs.get("strides", (1, 1)), unit.attrs.get("dilations", (1, 1))
    if not any(pads):
        return x, "VALID"
    size = e.shape(x)[1:3]
    same = [same_padding(size[i], kernel[i], stride[i], dilation[i]) for i in (0, 1)]
    if pads == (same[0][0], same[1][0], same[0][1], same[1][1]):
        return x, "SAME"
    return pad_spatial(e, x, pads, value), "VALID"


def _convolve(
    e: Emitter,
    x: str,
    weight: Array,
    bias: str,
    unit: Unit,
    *,
    pad: str,
    out: str = "",
    shape: tuple[int, ...],
) -> str:
    """CONV_2D with OIHW weights."""
    kernel = e.const(np.transpose(weight, (0, 2, 3, 1)), "kernel")
    stride, dilation = unit.attrs.get("strides", (1, 1)), unit.attrs.get("dilations", (1, 1))
    return e.op(
        "CONV_2D",
        [x, kernel, bias],
        shape,
        out=out,
        hint="conv",
        padding=pad,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
        fused_activation_function=unit.attrs.get("activation") or "NONE",
    )


def _bias(e: Emitter, unit: Unit) -> str:
    """The bias, zeros when there is none: the runtime's convolutions want one."""
    if len(unit.inputs) > 2 and unit.inputs[2]:
        return e.value(unit.inputs[2])
    return e.const(np.zeros(e.graph.shape(unit.outputs[0])[-1]), "bias")


def emit_conv(e: Emitter, unit: Unit) -> None:
    weight = e.graph.constants[unit.inputs[1]]
    x, pad = padding(e, e.value(unit.inputs[0]), unit, weight.shape[2:4])
    _convolve(
        e,
        x,
        weight,
        _bias(e, unit),
        unit,
        pad=pad,
        out=unit.outputs[0],
        shape=e.graph.shape(unit.outputs[0]),
    )


def emit_depthwise(e: Emitter, unit: Unit) -> None:
    weight = e.graph.constants[unit.inputs[1]]
    groups = unit.attrs["group"]
    x, pad = padding(e, e.value(unit.inputs[0]), unit, weight.shape[2:4])
    kernel = e.const(np.transpose(weight, (1, 2, 3, 0)), "kernel")
    stride, dilation = unit.attrs.get("strides", (1, 1)), unit.attrs.get("dilations", (1, 1))
    e.finish(
        "DEPTHWISE_CONV_2D",
        unit,
        [x, kernel, _bias(e, unit)],
        padding=pad,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
        depth_multiplier=weight.shape[0] // groups,
        fused_activation_function=unit.attrs.get("activation") or "NONE",
    )


def emit_grouped(e: Emitter, unit: Unit) -> None:
    """One CONV_2D a group on a slice of the channels, concatenated."""
    weight = e.graph.constants[unit.inputs[1]]
    bias = e.graph.constants.get(unit.inputs[2]) if len(unit.inputs) > 2 else None
    groups = unit.attrs["group"]
    x, pad = padding(e, e.value(unit.inputs[0]), unit, weight.shape[2:4])
    n, h, w, c = e.shape(x)
    shape = e.graph.shape(unit.outputs[0])
    step_in, step_out = c // groups, shape[3] // groups
    parts = []
    for g in range(groups):
        piece = e.slice(x, (0, 0, 0, g * step_in), (n, h, w, step_in))
        rows = slice(g * step_out, (g + 1) * step_out)
        b = e.const(bias[rows] if bias is not None else np.zeros(step_out), "bias")
        parts.append(
            _convolve(e, piece, weight[rows], b, unit, pad=pad, shape=(*shape[:3], step_out))
        )
    e.concat(parts, 3, out=unit.outputs[0])


def _constant_weights(graph: Graph, unit: Unit) -> str | None:
    if unit.inputs[1] not in graph.constants:
        return "the weights are not constant"
    if len(graph.shape(unit.inputs[0])) != 4:
        return f"{len(graph.shape(unit.inputs[0])) - 2}-D convolution"
    return None


def _plain(graph: Graph, unit: Unit) -> str | None:
    return _constant_weights(graph, unit) or (
        None if unit.attrs.get("group", 1) == 1 else "it is grouped"
    )


def _depthwise(graph: Graph, unit: Unit) -> str | None:
    channels = graph.shape(unit.inputs[0])[3] if len(graph.shape(unit.inputs[0])) == 4 else 0
    return _constant_weights(graph, unit) or (
        None if unit.attrs.get("group", 1) == channels else "it is not depthwise"
    )


OPS = (
    Op(
        "Conv",
        (
            Lowering("conv_2d", emit_conv, applies=_plain),
            Lowering("depthwise_conv_2d", emit_depthwise, applies=_depthwise),
            Lowering("conv_2d_by_group", emit_grouped, applies=_constant_weights),
            Lowering("conv_2d_over_depth", emit_conv3d, applies=three_axes),
        ),
        commute="channels_last",
    ),
)
