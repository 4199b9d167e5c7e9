"""ConvTranspose: TRANSPOSE_CONV where it can, a convolution over spread-out data elsewhere.

TRANSPOSE_CONV knows SAME and VALID only, no dilation, no groups: other pads are cut off a VALID
result, a dilated kernel is written out with its zeros, groups are sliced and joined. Depthwise and
three-dimensional forms put zeros between the elements (PAD) and convolve with the flipped kernel.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.conv import pad_spatial
from splitter.ops.conv3d import convolve_depth, zeros_or
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.window import activate


def dilated(weight: Array, dilations: tuple[int, ...]) -> Array:
    """A kernel [.., .., k...] with its zeros between the taps written out."""
    spatial = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    full = np.zeros((*weight.shape[:2], *spatial), weight.dtype)
    whole = (slice(None), slice(None))
    full[whole + tuple(slice(None, None, d) for d in dilations)] = weight
    return full


def _kernel(graph: Graph, unit: Unit) -> Array:
    weight = graph.constants[unit.inputs[1]]
    return dilated(weight, tuple(unit.attrs.get("dilations") or (1,) * (weight.ndim - 2)))


def _attrs(unit: Unit, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(strides, pads)."""
    strides = tuple(unit.attrs.get("strides") or (1,) * axes)
    return strides, tuple(unit.attrs.get("pads") or (0,) * (2 * axes))


def _bias(graph: Graph, unit: Unit) -> Array | None:
    has = len(unit.inputs) > 2 and unit.inputs[2]
    return graph.constants[unit.inputs[2]] if has else None


def _whole(
    e: Emitter, x: str, weight: Array, bias: Array | None, unit: Unit, *, out: str = ""
) -> str:
    """TRANSPOSE_CONV of one group, weight [I, O, kh, kw], with the unit's pads cut off."""
    n, h, w, _ = e.shape(x)
    strides, pads = _attrs(unit, 2)
    target = e.graph.shape(unit.outputs[0])[1:3]
    kernel = weight.shape[2:]
    full = [(s - 1) * t + k for s, t, k in zip((h, w), strides, kernel, strict=True)]
    same = [
        max((s - 1) * t + k - o, 0)
        for s, t, k, o in zip((h, w), strides, kernel, target, strict=True)
    ]
    is_same = all(
        s * t == o and same[a] // 2 == pads[a]
        for a, (s, t, o) in enumerate(zip((h, w), strides, target, strict=True))
    )
    size = list(target) if is_same else [max(f, pads[a] + target[a]) for a, f in enumerate(full)]
    channels = weight.shape[1]
    cut = size != list(target)
    inputs = [
        e.const([n, *size, channels], "output_shape", dtype="int32"),
        e.const(np.transpose(weight, (1, 2, 3, 0)), "kernel"),
        x,
        zeros_or(e, bias, channels),
    ]
    y = e.op(
        "TRANSPOSE_CONV",
        inputs,
        (n, *size, channels),
        out="" if cut else out,
        hint="upsampled",
        padding="SAME" if is_same else "VALID",
        stride_h=strides[0],
        stride_w=strides[1],
    )
    if not cut:
        return y
    return e.slice(y, (0, pads[0], pads[1], 0), (n, *target, channels), out=out)


def emit_transpose_conv(e: Emitter, unit: Unit) -> None:
    fused = unit.attrs.get("activation")
    y = _whole(
        e,
        e.value(unit.inputs[0]),
        _kernel(e.graph, unit),
        _bias(e.graph, unit),
        unit,
        out="" if fused else unit.outputs[0],
    )
    if fused:
        activate(e, y, unit)


def emit_by_group(e: Emitter, unit: Unit) -> None:
    x, weight, bias = e.value(unit.inputs[0]), _kernel(e.graph, unit), _bias(e.graph, unit)
    groups = unit.attrs["group"]
    n, h, w, c = e.shape(x)
    step, out_step = c // groups, weight.shape[1]
    parts = []
    for g in range(groups):
        piece = e.slice(x, (0, 0, 0, g * step), (n, h, w, step))
        rows = weight[g * step : (g + 1) * step]
        part = None if bias is None else bias[g * out_step : (g + 1) * out_step]
        parts.append(_whole(e, piece, rows, part, unit))
    activate(e, e.concat(parts, 3), unit)


def spread(e: Emitter, x: str, axis: int, stride: int) -> str:
    """`stride - 1` zeros after every element of an axis but the last."""
    shape = e.shape(x)
    if stride == 1:
        return x
    before, size, after = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    flat = e.reshape(x, (before, size, 1, after))
    table = e.const([[0, 0], [0, 0], [0, stride - 1], [0, 0]], "paddings", dtype="int32")
    padded = e.op("PAD", [flat, table], (before, size, stride, after), hint="spread")
    spaced = e.reshape(padded, (*shape[:axis], size * stride, *shape[axis + 1 :]))
    keep = (*shape[:axis], (size - 1) * stride + 1, *shape[axis + 1 :])
    return e.slice(spaced, (0,) * len(shape), keep)


def _margins(
    sizes: tuple[int, ...], kernel: tuple[int, ...], pads: tuple[int, ...], outs: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """(before, after) to pad the spread data by, so that a VALID convolution gives `outs`."""
    made = []
    for a, (size, k, out) in enumerate(zip(sizes, kernel, outs, strict=True)):
        before = k - 1 - pads[a]
        made.append((before, out + k - 1 - size - before))
    return tuple(made)


def emit_depthwise(e: Emitter, unit: Unit) -> None:
    """DEPTHWISE_CONV_2D with the flipped kernel over the spread data."""
    x, weight, bias = e.value(unit.inputs[0]), _kernel(e.graph, unit), _bias(e.graph, unit)
    strides, pads = _attrs(unit, 2)
    shape = e.graph.shape(unit.outputs[0])
    for axis in (1, 2):
        x = spread(e, x, axis, strides[axis - 1])
    margins = _margins(e.shape(x)[1:3], weight.shape[2:], pads, shape[1:3])
    x = _pad_or_cut(e, x, ((0, 0), *margins, (0, 0)))
    flipped = np.transpose(weight[:, :, ::-1, ::-1], (2, 3, 0, 1))
    kernel = flipped.reshape(1, *weight.shape[2:], shape[3])
    e.finish(
        "DEPTHWISE_CONV_2D",
        unit,
        [
            x,
            e.const(kernel, "kernel"),
            e.const(np.zeros(shape[3]) if bias is None else bias, "bias"),
        ],
        padding="VALID",
        stride_h=1,
        stride_w=1,
        dilation_h_factor=1,
        dilation_w_factor=1,
        depth_multiplier=weight.shape[1],
        fused_activation_function=unit.attrs.get("activation") or "NONE",
    )


def _pad_or_cut(e: Emitter, x: str, margins: tuple[tuple[int, int], ...]) -> str:
    """PAD by the positive margins, after a SLICE of the negative ones."""
    if any(m < 0 for pair in margins for m in pair):
        begin = [max(-before, 0) for before, _ in margins]
        size = [
            n - max(-before, 0) - max(-after, 0)
            for n, (before, after) in zip(e.shape(x), margins, strict=True)
        ]
        x = e.slice(x, begin, size)
    if len(margins) == 4:
        (_, _), (top, bottom), (left, right), (_, _) = margins
        pads = tuple(max(m, 0) for m in (top, left, bottom, right))
        return pad_spatial(e, x, pads) if any(pads) else x
    table = [[max(m, 0) for m in pair] for pair in margins]
    if not np.any(table):
        return x
    shape = [n + sum(pair) for n, pair in zip(e.shape(x), table, strict=True)]
    return e.op("PAD", [x, e.const(table, "paddings", dtype="int32")], shape, hint="padded")


def emit_depth(e: Emitter, unit: Unit) -> None:
    """Three spatial axes, channels second: spread, pad, convolve with the flipped kernel."""
    x, weight, bias = e.value(unit.inputs[0]), _kernel(e.graph, unit), _bias(e.graph, unit)
    strides, pads = _attrs(unit, 3)
    shape = e.graph.shape(unit.outputs[0])
    for axis in (2, 3, 4):
        x = spread(e, x, axis, strides[axis - 2])
    margins = _margins(e.shape(x)[2:], weight.shape[2:], pads, shape[2:])
    x = _pad_or_cut(e, x, ((0, 0), (0, 0), *margins))
    flipped = np.swapaxes(weight[:, :, ::-1, ::-1, ::-1], 0, 1)
    convolve_depth(e, x, flipped, bias, unit, strides=(1, 1, 1), dilations=(1, 1, 1))


def _constant(graph: Graph, unit: Unit) -> str | None:
    for name in unit.inputs[1:]:
        if name and name not in graph.constants:
            return "the weights are not constant"
    return None


def _image(graph: Graph, unit: Unit) -> str | None:
    rank = len(graph.shape(unit.inputs[0]))
    return _constant(graph, unit) or (None if rank == 4 else f"{rank - 2}-D convolution")


def _plain(graph: Graph, unit: Unit) -> str | None:
    grouped = unit.attrs.get("group", 1) != 1
    return _image(graph, unit) or ("it is grouped" if grouped else None)


def _depthwise(graph: Graph, unit: Unit) -> str | None:
    if reason := _image(graph, unit):
        return reason
    same = unit.attrs.get("group", 1) == graph.shape(unit.inputs[0])[3]
    return None if same else "it is not depthwise"


def _three_axes(graph: Graph, unit: Unit) -> str | None:
    if reason := _constant(graph, unit):
        return reason
    if len(graph.shape(unit.inputs[0])) != 5:
        return "it is not three-dimensional"
    return "it is grouped" if unit.attrs.get("group", 1) != 1 else None


OPS = (
    Op(
        "ConvTranspose",
        (
            Lowering("transpose_conv", emit_transpose_conv, applies=_plain),
            Lowering("spread_depthwise", emit_depthwise, applies=_depthwise),
            Lowering("transpose_conv_by_group", emit_by_group, applies=_image),
            Lowering("spread_conv_2d", emit_depth, applies=_three_axes),
        ),
        commute="channels_last",
    ),
)
