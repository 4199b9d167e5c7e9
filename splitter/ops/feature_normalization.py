"""Normalizations over an image, over groups of channels, over any axes, and without a mean.

All come down to rows [R, N] normalized over N, as LayerNormalization in `normalization` is written:
reductions are FULLY_CONNECTED with constant weights, scale and bias a 1x1 depthwise convolution, so
that int8 keeps their accuracy.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.functions import compare, select
from splitter.ops.linear import fully_connected
from splitter.ops.normalization import normalize_rows, scale_channels, scaled_image
from splitter.ops.reduce import reduce
from splitter.ops.registry import Emitter, Lowering, Op


def _constants(graph: Graph, unit: Unit) -> str | None:
    missing = [name for name in unit.inputs[1:] if name and name not in graph.constants]
    return "its scale or bias is not constant" if missing else None


def _parameters(graph: Graph, unit: Unit, channels: int) -> tuple[Array, Array]:
    """(scale, bias), each of `channels` elements."""
    names = (*unit.inputs[1:3], "", "")[:2]
    scale = graph.constants[names[0]] if names[0] else np.ones(channels)
    bias = graph.constants[names[1]] if names[1] else np.zeros(channels)
    return scale.reshape(-1), bias.reshape(-1)


def emit_groups(e: Emitter, unit: Unit) -> None:
    """Group and instance normalization; an image is [N, H, W, C], other data [N, C, ...]."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    last = len(shape) == 4
    n, c = shape[0], shape[3 if last else 1]
    area = prod(shape) // (n * c)
    groups = int(unit.attrs.get("num_groups", c))
    if last:
        x = e.transpose(e.reshape(x, (n, area, c)), (0, 2, 1))
    rows = e.reshape(x, (n * groups, c // groups * area))
    y = normalize_rows(e, rows, epsilon=float(unit.attrs.get("epsilon", 1e-5)), centered=False)
    y = e.transpose(e.reshape(y, (n, c, area)), (0, 2, 1))
    scale, bias = _parameters(e.graph, unit, c)
    flat = e.reshape(y, (n * area, c))
    if last:
        scale_channels(e, flat, scale, bias, out=unit.outputs[0], shape=shape)
        return
    y = scale_rows(e, flat, scale, bias)
    e.bind(e.transpose(e.reshape(y, (n, area, c)), (0, 2, 1)), unit)


def scale_rows(e: Emitter, x: str, scale: Array, bias: Array) -> str:
    """x [rows, C] * scale [C] + bias [C] -> [rows, C], one depthwise 1x1 convolution."""
    return e.reshape(scaled_image(e, x, scale, bias), e.shape(x))


def emit_rms(e: Emitter, unit: Unit) -> None:
    """x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axis = int(unit.attrs.get("axis", -1)) % len(shape)
    size = prod(shape[axis:])
    rows = e.reshape(x, (prod(shape[:axis]), size))
    epsilon = float(unit.attrs.get("epsilon", 1e-5))
    y = two(e, "MUL", rows, inverse_root(e, rows, epsilon=epsilon), hint="normalized")
    scale = e.graph.constants[unit.inputs[1]]
    scale = np.broadcast_to(scale, shape[axis:]).reshape(-1)
    scale_channels(e, y, scale, None, out=unit.outputs[0], shape=shape)


def inverse_root(e: Emitter, rows: str, *, epsilon: float) -> str:
    """1 / sqrt(mean(x^2) + epsilon) over the last axis of x [rows, N] -> [rows, 1]."""
    size = e.shape(rows)[-1]
    square = two(e, "MUL", rows, rows, hint="square")
    weight = e.const(np.full((1, size), 1.0 / size), "ones")
    mean = fully_connected(e, square, weight, e.const([epsilon], "epsilon"), hint="mean_square")
    return one(e, "RSQRT", mean)


def emit_mean_variance(e: Emitter, unit: Unit) -> None:
    """(x - mean) / (sqrt(variance) + 1e-9) over `axes` (0, 2, 3 when none are named)."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axes = [int(a) % len(shape) for a in unit.attrs.get("axes") or (0, 2, 3)]
    kept = [a for a in range(len(shape)) if a not in axes]
    perm = (*kept, *sorted(axes))
    moved = e.transpose(x, perm)
    rows = e.reshape(moved, (prod(shape[a] for a in kept), prod(shape[a] for a in axes)))
    y = e.reshape(normalize_rows(e, rows, epsilon=1e-18, centered=False), e.shape(moved))
    e.bind(e.transpose(y, tuple(perm.index(a) for a in range(len(perm)))), unit)


def emit_lp(e: Emitter, unit: Unit) -> None:
    """x / norm along one axis; 0 where the norm is 0. p is 1 or 2."""
    x = e.value(unit.inputs[0])
    axis = int(unit.attrs.get("axis", -1)) % len(e.shape(x))
    if int(unit.attrs.get("p", 2)) == 2:
        norm = one(e, "SQRT", reduce(e, "SUM", two(e, "MUL", x, x), (axis,), True))
    else:
        norm = reduce(e, "SUM", one(e, "ABS", x), (axis,), True)
    # Where the norm is 0 so is x; a divisor of 1 keeps the range of the inverse one of numbers.
    safe = select(e, compare(e, "EQUAL", norm, 0.0), e.const(1.0, "one"), norm)
    inverse = two(e, "DIV", e.const(1.0, "one"), safe)
    e.finish("MUL", unit, [x, inverse], fused_activation_function="NONE")


def emit_lrn(e: Emitter, unit: Unit) -> None:
    """x / (bias + alpha / size * sum of squares over `size` neighboring channels)^beta: the sum is
    FULLY_CONNECTED with a banded matrix over the channels (last in an image, else second)."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    if len(shape) != 4:
        x = e.transpose(x, (0, *range(2, len(shape)), 1))
    size, channels = int(unit.attrs["size"]), e.shape(x)[-1]
    alpha, beta = float(unit.attrs.get("alpha", 1e-4)), float(unit.attrs.get("beta", 0.75))
    offset = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    band = (offset >= -((size - 1) // 2)) & (offset <= size // 2)
    rows = e.reshape(x, (prod(e.shape(x)[:-1]), channels))
    square = two(e, "MUL", rows, rows, hint="square")
    bias = e.const(np.full(channels, float(unit.attrs.get("bias", 1.0))), "bias")
    energy = fully_connected(e, square, e.const(band * (alpha / size), "band"), bias)
    divisor = two(e, "POW", energy, e.const(-beta, "exponent"), hint="inverse")
    y = e.reshape(two(e, "MUL", rows, divisor), e.shape(x))
    if len(shape) != 4:
        y = e.transpose(y, (0, len(shape) - 1, *range(1, len(shape) - 1)))
    e.bind(y, unit)


def _order(graph: Graph, unit: Unit) -> str | None:
    order = int(unit.attrs.get("p", 2))
    return None if order in (1, 2) else f"p is {order}"


_GROUPS = (Lowering("fully_connected", emit_groups, applies=_constants),)

OPS = (
    Op("InstanceNormalization", _GROUPS, commute="channels_last"),
    Op("GroupNormalization", _GROUPS, commute="channels_last"),
    Op(
        "RMSNormalization",
        (Lowering("fully_connected", emit_rms, applies=_constants),),
        commute="axis",
    ),
    Op("MeanVarianceNormalization", (Lowering("fully_connected", emit_mean_variance),)),
    Op("LpNormalization", (Lowering("sum", emit_lp, applies=_order),)),
    Op("LRN", (Lowering("banded_matrix", emit_lrn),), commute="channels_last"),
)
