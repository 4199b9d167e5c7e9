"""Element by element: arithmetic, comparisons, logic, unary functions, casts.

Functions without an integer kernel (SIN, FLOOR, POW, ...) are written as their float operators
here; `quantize` replaces them by table look-ups.
"""

from __future__ import annotations

from collections.abc import Callable

from splitter.graph import Graph, Unit
from splitter.ops.registry import Emitter, Lowering, Op, lite_dtype

ACTIVATED = {"ADD", "SUB", "MUL", "DIV"}
"""Operators whose TFLite form carries a fused activation."""


def binary(name: str, code: str) -> Op:
    """A two-input operator with numpy broadcasting."""

    def emit(e: Emitter, unit: Unit) -> None:
        options = {}
        if code in ACTIVATED:
            options["fused_activation_function"] = unit.attrs.get("activation") or "NONE"
        e.finish(code, unit, [e.value(name) for name in unit.inputs], **options)

    return Op(name, (Lowering(code.lower(), emit),), commute="elementwise")


def unary(name: str, code: str) -> Op:
    """A one-input function that is one TFLite operator."""

    def emit(e: Emitter, unit: Unit) -> None:
        e.finish(code, unit, [e.value(unit.inputs[0])])

    return Op(name, (Lowering(code.lower(), emit),), commute="elementwise")


def chain(name: str, emit: Callable[[Emitter, Unit], None], *, lowering: str = "") -> Op:
    """An element-wise function made of several TFLite operators."""
    return Op(name, (Lowering(lowering or name.lower(), emit),), commute="elementwise")


def variadic(name: str, code: str) -> Op:
    """Min, Max, Sum of any number of inputs, as a chain of two-input operators."""

    def emit(e: Emitter, unit: Unit) -> None:
        tensors = [e.value(name) for name in unit.inputs]
        if len(tensors) == 1:
            e.reshape(tensors[0], e.graph.shape(unit.outputs[0]), out=unit.outputs[0])
            return
        total = tensors[0]
        for tensor in tensors[1:-1]:
            total = two(e, code, total, tensor)
        e.finish(code, unit, [total, tensors[-1]])

    return Op(name, (Lowering(code.lower(), emit),), commute="elementwise")


def two(e: Emitter, code: str, a: str, b: str, *, hint: str = "") -> str:
    """A two-input operator inside a lowering; the shape follows numpy broadcasting."""
    shape = broadcast(e.shape(a), e.shape(b))
    options = {"fused_activation_function": "NONE"} if code in ACTIVATED else {}
    return e.op(code, [a, b], shape, dtype=e.dtype(a), hint=hint or code.lower(), **options)


def one(e: Emitter, code: str, a: str, *, hint: str = "") -> str:
    """A one-input operator of equal shape inside a lowering."""
    return e.op(code, [a], e.shape(a), dtype=e.dtype(a), hint=hint or code.lower())


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """numpy's broadcast of two static shapes."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(max(x, y) if 0 not in (x, y) else 0 for x, y in zip(a, b, strict=True))


def emit_clip(e: Emitter, unit: Unit) -> None:
    """Clip with constant bounds: a RELU form where one exists, else MAXIMUM and MINIMUM."""
    low, high = unit.attrs.get("min"), unit.attrs.get("max")
    x = e.value(unit.inputs[0])
    code = {(0.0, None): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}.get((low, high))
    if code and e.dtype(x) == "float32":
        e.finish(code, unit, [x])
        return
    dtype = e.dtype(x)
    if low is None and high is None:
        e.reshape(x, e.shape(x), out=unit.outputs[0])
        return
    if low is not None and high is not None:
        x = two(e, "MAXIMUM", x, e.const(low, "low", dtype=dtype))
    if high is not None:
        e.finish("MINIMUM", unit, [x, e.const(high, "high", dtype=dtype)])
    else:
        e.finish("MAXIMUM", unit, [x, e.const(low, "low", dtype=dtype)])


def emit_reciprocal(e: Emitter, unit: Unit) -> None:
    e.finish("DIV", unit, [e.const(1.0, "one"), e.value(unit.inputs[0])],
             fused_activation_function="NONE")


def emit_div(e: Emitter, unit: Unit) -> None:
    """a / b as a * (1 / b) in float: 1 / b is a function of one variable, which integers do by
    table, where the integer DIV kernel aborts on a divisor that was rounded to zero."""
    a, b = (e.value(name) for name in unit.inputs)
    if e.dtype(a) != "float32":
        e.finish("DIV", unit, [a, b], fused_activation_function="NONE")
        return
    data = e.graph.constants.get(unit.inputs[1])
    if data is not None:
        inverse = e.const(1.0 / data, "inverse")
    else:
        inverse = e.op("DIV", [e.const(1.0, "one"), b], e.shape(b), hint="inverse",
                       fused_activation_function="NONE")
    e.finish("MUL", unit, [a, inverse], fused_activation_function="NONE")


def emit_pow(e: Emitter, unit: Unit) -> None:
    e.finish("POW", unit, [e.value(unit.inputs[0]), e.value(unit.inputs[1])])


def emit_cast(e: Emitter, unit: Unit) -> None:
    source = e.value(unit.inputs[0])
    target = lite_dtype(e.graph.values[unit.outputs[0]].dtype)
    if e.dtype(source) == target:
        e.reshape(source, e.shape(source), out=unit.outputs[0])
        return
    e.finish("CAST", unit, [source])


def emit_where(e: Emitter, unit: Unit) -> None:
    e.finish("SELECT_V2", unit, [e.value(name) for name in unit.inputs])


def _mod_applies(graph: Graph, unit: Unit) -> str | None:
    return "Mod with fmod=1 has no TFLite operator" if unit.attrs.get("fmod", 0) else None


OPS = (
    binary("Add", "ADD"),
    binary("Sub", "SUB"),
    binary("Mul", "MUL"),
    binary("Equal", "EQUAL"),
    binary("Greater", "GREATER"),
    binary("GreaterOrEqual", "GREATER_EQUAL"),
    binary("Less", "LESS"),
    binary("LessOrEqual", "LESS_EQUAL"),
    binary("And", "LOGICAL_AND"),
    binary("Or", "LOGICAL_OR"),
    variadic("Max", "MAXIMUM"),
    variadic("Min", "MINIMUM"),
    variadic("Sum", "ADD"),
    unary("Abs", "ABS"),
    unary("Ceil", "CEIL"),
    unary("Cos", "COS"),
    unary("Exp", "EXP"),
    unary("Floor", "FLOOR"),
    unary("Log", "LOG"),
    unary("Neg", "NEG"),
    unary("Not", "LOGICAL_NOT"),
    unary("Relu", "RELU"),
    unary("Round", "ROUND"),
    unary("Sigmoid", "LOGISTIC"),
    unary("Sin", "SIN"),
    unary("Sqrt", "SQRT"),
    unary("Tanh", "TANH"),
    chain("Clip", emit_clip),
    chain("Div", emit_div, lowering="inverse"),
    chain("Reciprocal", emit_reciprocal),
    chain("Pow", emit_pow),
    chain("Cast", emit_cast),
    chain("Where", emit_where),
)
