"""Operators of already quantized ONNX models, by their real values.

QuantizeLinear and DequantizeLinear become arithmetic on float32 (exact: every product of a scale
and an 8-bit number is one float32 operation, as in ONNX Runtime); products of integers are float
products, exact while the sums stay under 2^24. What integers become of it is for `quantize`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import broadcast, one, two
from splitter.ops.reduce import reduce
from splitter.ops.registry import NARROW, Emitter, Lowering, Op
from splitter.tflite.types import Quantization

EXACT = 1 << 24
"""Integers up to which float32 holds each one."""


def _input(unit: Unit, index: int) -> str:
    return unit.inputs[index] if len(unit.inputs) > index else ""


def _along(data: Array, axis: int, shape: tuple[int, ...], block: int) -> Array:
    """A scale or zero point so that it broadcasts: a scalar, one an index of the axis, or one a
    block of the axis."""
    if data.size == 1:
        return data.reshape(())
    if block:
        return np.repeat(data, block, axis=axis)[tuple(slice(n) for n in shape)]
    return data.reshape([-1 if a == axis else 1 for a in range(len(shape))])


def _parameters(e: Emitter, unit: Unit) -> tuple[Array, Array]:
    """(scale, zero point) as float32 constants that broadcast with the data."""
    shape = e.graph.shape(unit.inputs[0])
    axis = int(unit.attrs.get("axis", 1)) % max(len(shape), 1)
    block = int(unit.attrs.get("block_size", 0))
    scale = e.graph.constants[unit.inputs[1]].astype(np.float32)
    zero = _input(unit, 2)
    point = e.graph.constants[zero].astype(np.float32) if zero else np.zeros_like(scale)
    return _along(scale, axis, shape, block), _along(point, axis, shape, block)


def as_float(e: Emitter, x: str) -> str:
    if e.dtype(x) == "float32":
        return x
    return e.op("CAST", [x], e.shape(x), hint="real")


def emit_dequantize(e: Emitter, unit: Unit) -> None:
    """(x - zero point) * scale."""
    scale, zero = _parameters(e, unit)
    x = as_float(e, e.value(unit.inputs[0]))
    if np.any(zero):
        x = two(e, "SUB", x, e.const(zero, "zero_point"))
    e.finish("MUL", unit, [x, e.const(scale, "scale")], fused_activation_function="NONE")


CENTERED = "centered"
"""What integers are called whose 16 bits had a zero point in the author's file."""


def emit_fake_quantize(e: Emitter, unit: Unit) -> None:
    """To the integers that the model's author chose, and back. uint8 is int8 with another zero."""
    dtype = str(unit.attrs["dtype"])
    signed = dtype.removeprefix("u")
    zero = int(unit.attrs["zero_point"]) + (int(np.iinfo(signed).min) if signed != dtype else 0)
    scale, hint = float(np.float32(unit.attrs["scale"])), "integers"
    if signed == "int16" and zero:
        scale, zero, hint = _centered(scale, zero), 0, CENTERED
    x = e.value(unit.inputs[0])
    integers = e.op("QUANTIZE", [x], e.shape(x), dtype=signed, hint=hint)
    e.tensors[integers] = replace(e.tensors[integers], quantization=Quantization((scale,), (zero,)))
    e.finish("DEQUANTIZE", unit, [integers])


def _centered(scale: float, zero: int) -> float:
    """The scale with which 16 bits around 0, as TFLite has them, reach as far."""
    limits = np.iinfo(np.int16)
    reach = max((limits.min - zero) / limits.min, (limits.max - zero) / limits.max)
    return float(np.float32(scale * reach))


def emit_quantize(e: Emitter, unit: Unit) -> None:
    """Rounded to even, shifted, saturated."""
    scale, zero = _parameters(e, unit)
    x = two(e, "DIV", as_float(e, e.value(unit.inputs[0])), e.const(scale, "scale"))
    _store(e, unit, x, e.const(zero, "zero_point") if np.any(zero) else "")


def emit_quantize_variable(e: Emitter, unit: Unit) -> None:
    """One scale and zero point for the tensor, computed at run time."""
    x = as_float(e, e.value(unit.inputs[0]))
    x = two(e, "DIV", x, e.reshape(e.value(unit.inputs[1]), ()))
    zero = _input(unit, 2)
    _store(e, unit, x, as_float(e, e.reshape(e.value(zero), ())) if zero else "")


def _store(e: Emitter, unit: Unit, x: str, zero: str) -> None:
    """round(x) + zero point (a tensor or ""), saturated to the output's type."""
    limits = np.iinfo(e.graph.values[unit.outputs[0]].dtype)
    x = one(e, "ROUND", x)
    if zero:
        x = two(e, "ADD", x, zero)
    x = two(e, "MAXIMUM", x, e.const(float(limits.min), "low"))
    x = two(e, "MINIMUM", x, e.const(float(limits.max), "high"))
    e.finish("CAST", unit, [x])


def emit_dynamic_quantize(e: Emitter, unit: Unit) -> None:
    """DynamicQuantizeLinear: uint8 with the range of the data, 0 included."""
    x = e.value(unit.inputs[0])
    axes = tuple(range(len(e.shape(x))))
    zero = e.const(0.0, "zero")
    low = two(e, "MINIMUM", reduce(e, "REDUCE_MIN", x, axes, False), zero)
    high = two(e, "MAXIMUM", reduce(e, "REDUCE_MAX", x, axes, False), zero)
    span = two(e, "SUB", high, low)
    scale = two(e, "DIV", span, e.const(255.0, "levels"))
    point = one(e, "ROUND", two(e, "DIV", two(e, "SUB", zero, low), scale))
    point = _clamped(e, point)
    y = two(e, "ADD", one(e, "ROUND", two(e, "DIV", x, scale)), point)
    e.finish("CAST", unit, [_clamped(e, y)])
    for index, tensor in ((1, scale), (2, point)):
        if len(unit.outputs) > index and unit.outputs[index]:
            name = unit.outputs[index]
            if index == 1:
                e.reshape(tensor, (), out=name)
            else:
                e.op("CAST", [tensor], (), dtype="int32", out=name)


def _clamped(e: Emitter, x: str) -> str:
    low = two(e, "MAXIMUM", x, e.const(0.0, "low"))
    return two(e, "MINIMUM", low, e.const(255.0, "high"))


def _real(e: Emitter, unit: Unit, index: int, zero_index: int, *, rows: bool) -> str:
    """An integer operand minus its zero point (a scalar, one a row of A, or one a column of B)."""
    x = as_float(e, e.value(unit.inputs[index]))
    name = _input(unit, zero_index)
    if not name:
        return x
    zero = e.graph.constants[name].astype(np.float32)
    if zero.size == 1:
        zero = zero.reshape(())
    elif zero.ndim == 1:
        zero = zero.reshape(-1, 1) if rows else zero
    return two(e, "SUB", x, e.const(zero, "zero_point")) if np.any(zero) else x


def _matmul(e: Emitter, a: str, b: str) -> str:
    """BATCH_MATMUL with numpy's rules for vectors."""
    shape_a, shape_b = e.shape(a), e.shape(b)
    left = e.reshape(a, (1, *shape_a)) if len(shape_a) == 1 else a
    right = e.reshape(b, (*shape_b, 1)) if len(shape_b) == 1 else b
    batch = broadcast(e.shape(left)[:-2], e.shape(right)[:-2])
    return e.op(
        "BATCH_MATMUL",
        [left, right],
        (*batch, e.shape(left)[-2], e.shape(right)[-1]),
        hint="product",
        adj_x=False,
        adj_y=False,
        asymmetric_quantize_inputs=False,
    )


def emit_matmul_integer(e: Emitter, unit: Unit) -> None:
    y = _matmul(e, _real(e, unit, 0, 2, rows=True), _real(e, unit, 1, 3, rows=False))
    rounded = e.op("CAST", [y], e.shape(y), dtype="int32", hint="product")
    e.bind(rounded, unit)


def _constants(*indices: int) -> Callable[[Graph, Unit], str | None]:
    def applies(graph: Graph, unit: Unit) -> str | None:
        names = [_input(unit, i) for i in indices]
        missing = any(name and name not in graph.constants for name in names)
        return "its scale or zero point is not constant" if missing else None

    return applies


def _wide(graph: Graph, unit: Unit) -> str | None:
    dtype = graph.values[unit.outputs[0]].dtype
    return None if dtype in NARROW else f"quantized values of type {dtype}"


def _narrow(graph: Graph, unit: Unit) -> str | None:
    return _wide(graph, unit) or _constants(1, 2)(graph, unit)


def _one_scale(graph: Graph, unit: Unit) -> str | None:
    single = graph.values[unit.inputs[1]].elements == 1
    return _wide(graph, unit) or (None if single else "several scales that are not constant")


def _exact(*indices: int) -> Callable[[Graph, Unit], str | None]:
    def applies(graph: Graph, unit: Unit) -> str | None:
        depth = graph.shape(unit.inputs[0])[-1]
        if depth * 255 * 255 > EXACT:
            return f"sums of {depth} products may pass 2^24, where float32 is no longer exact"
        return _constants(*indices)(graph, unit)

    return applies


OPS = (
    Op("FakeQuantize", (Lowering("integers", emit_fake_quantize),), "elementwise"),
    Op("DequantizeLinear", (Lowering("arithmetic", emit_dequantize, applies=_constants(1, 2)),)),
    Op(
        "QuantizeLinear",
        (
            Lowering("arithmetic", emit_quantize, applies=_narrow),
            Lowering("at_run_time", emit_quantize_variable, applies=_one_scale),
        ),
    ),
    Op("DynamicQuantizeLinear", (Lowering("arithmetic", emit_dynamic_quantize),)),
    Op("MatMulInteger", (Lowering("batch_matmul", emit_matmul_integer, applies=_exact(2, 3)),)),
)
