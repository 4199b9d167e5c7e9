"""LayerNormalization over the last axis (and axes that flatten to it), written for int8.

The reductions are FULLY_CONNECTED with weights 1/N: 32-bit accumulation keeps the mean and the
variance accurate in int8, and the result has a scale of its own (MEAN on the NPU must keep its
input's). Scale and bias are one DEPTHWISE_CONV_2D: per-channel weights hold gamma exactly, the
32-bit bias holds beta, and the result is rounded once.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter, Lowering, Op


def scale_channels(
    e: Emitter, x: str, gamma: Array, beta: Array | None, *, out: str, shape: tuple[int, ...]
) -> None:
    """x [rows, C] * gamma [C] + beta [C] as one depthwise 1x1 convolution, in the given shape."""
    e.reshape(scaled_image(e, x, gamma, beta), shape, out=out)


def scaled_image(e: Emitter, x: str, gamma: Array, beta: Array | None) -> str:
    """The same as it leaves the convolution: [1, rows, 1, C]."""
    rows, channels = e.shape(x)
    image = e.reshape(x, (1, rows, 1, channels))
    kernel = e.const(gamma.reshape(1, 1, 1, channels), "gamma")
    bias = e.const(np.zeros(channels) if beta is None else beta.reshape(channels), "beta")
    return e.op(
        "DEPTHWISE_CONV_2D",
        [image, kernel, bias],
        (1, rows, 1, channels),
        hint="scaled",
        padding="VALID",
        stride_h=1,
        stride_w=1,
        dilation_h_factor=1,
        dilation_w_factor=1,
        depth_multiplier=1,
        fused_activation_function="NONE",
    )


def _mean(e: Emitter, x: str, *, bias: float = 0.0, hint: str) -> str:
    """Mean over the last axis of x [rows, N] -> [rows, 1], plus a constant."""
    size = e.shape(x)[-1]
    weight = e.const(np.full((1, size), 1.0 / size), "ones")
    return fully_connected(e, x, weight, e.const([bias], "bias") if bias else "", hint=hint)


def _affine(e: Emitter, unit: Unit) -> tuple[Array | None, Array | None]:
    """(gamma, beta), None where they change nothing."""
    data = [e.graph.constants[name] if name else None for name in (*unit.inputs[1:3], "", "")[:2]]
    gamma, beta = data
    if gamma is not None and np.all(gamma == 1):
        gamma = None
    if beta is not None and np.all(beta == 0):
        beta = None
    return gamma, beta


def normalize_rows(e: Emitter, x: str, *, epsilon: float, centered: bool) -> str:
    """(x - mean) / sqrt(variance + epsilon) over the last axis of x [rows, N]."""
    if not centered:
        x = two(e, "SUB", x, _mean(e, x, hint="mean"), hint="centered")
    square = two(e, "MUL", x, x, hint="square")
    variance = _mean(e, square, bias=epsilon, hint="variance")
    return two(e, "MUL", x, one(e, "RSQRT", variance), hint="normalized")


def emit_layer_norm(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axis = int(unit.attrs.get("axis", -1)) % len(shape)
    size = prod(shape[axis:])
    rows = e.reshape(x, (prod(shape[:axis]), size))
    y = normalize_rows(
        e,
        rows,
        epsilon=float(unit.attrs.get("epsilon", 1e-5)),
        centered=bool(unit.attrs.get("centered", False)),
    )
    gamma, beta = _affine(e, unit)
    if gamma is None and beta is None:
        e.reshape(y, shape, out=unit.outputs[0])
        return
    gamma = np.ones(size) if gamma is None else gamma
    scale_channels(e, y, gamma, beta, out=unit.outputs[0], shape=shape)


def emit_statistics(e: Emitter, unit: Unit) -> None:
    """With the mean and the inverse deviation as outputs of their own, and any scale and bias."""
    x = e.value(unit.inputs[0])
    shape = e.shape(x)
    axis = int(unit.attrs.get("axis", -1)) % len(shape)
    size = prod(shape[axis:])
    rows = e.reshape(x, (prod(shape[:axis]), size))
    mean = _mean(e, rows, hint="mean")
    centered = two(e, "SUB", rows, mean, hint="centered")
    square = two(e, "MUL", centered, centered, hint="square")
    epsilon = float(unit.attrs.get("epsilon", 1e-5))
    inverse = one(e, "RSQRT", _mean(e, square, bias=epsilon, hint="variance"))
    for name, tensor in zip(unit.outputs[1:], (mean, inverse), strict=False):
        if name:
            e.reshape(tensor, e.graph.shape(name), out=name)
    y = two(e, "MUL", centered, inverse, hint="normalized")
    if _variable_affine(e.graph, unit):
        y = e.reshape(y, shape)
        for code, name in zip(("MUL", "ADD"), unit.inputs[1:3], strict=False):
            y = two(e, code, y, e.value(name)) if name else y
        e.bind(y, unit)
        return
    gamma, beta = _affine(e, unit)
    gamma = np.ones(size) if gamma is None else gamma
    scale_channels(e, y, gamma, beta, out=unit.outputs[0], shape=shape)


def _variable_affine(graph: Graph, unit: Unit) -> str | None:
    missing = [name for name in unit.inputs[1:3] if name and name not in graph.constants]
    return "its scale or bias is not constant" if missing else None


def _one_output(graph: Graph, unit: Unit) -> str | None:
    used = (*graph.outputs, *(name for u in graph.units for name in u.inputs))
    extra = [name for name in unit.outputs[1:] if name and name in used]
    if extra:
        return "its mean or deviation output is used"
    return _variable_affine(graph, unit)


OPS = (
    Op(
        "LayerNormalization",
        (
            Lowering("fully_connected", emit_layer_norm, applies=_one_output),
            Lowering("with_statistics", emit_statistics),
        ),
        commute="axis",
    ),
)
