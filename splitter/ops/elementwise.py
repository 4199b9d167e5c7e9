"""Element by element: arithmetic, comparisons, logic, unary functions, casts.

Functions without an integer kernel (SIN, FLOOR, POW, ...) are written as their float operators
here; `quantize` replaces them by table look-ups.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.expand import both_sides, choose_side, expanded
from splitter.ops.registry import NARROW, Emitter, Lowering, Op, lite_dtype

ACTIVATED = {"ADD", "SUB", "MUL", "DIV"}
"""Operators whose TFLite form carries a fused activation."""


def binary(name: str, code: str) -> Op:
    """A two-input operator with numpy broadcasting; also with one input written out in full."""

    def finish(e: Emitter, unit: Unit, tensors: list[str]) -> None:
        options = {}
        if code in ACTIVATED:
            options["fused_activation_function"] = unit.attrs.get("activation") or "NONE"
        e.finish(code, unit, tensors, **options)

    def emit(e: Emitter, unit: Unit) -> None:
        finish(e, unit, [e.value(name) for name in unit.inputs])

    def emit_expanded(e: Emitter, unit: Unit) -> None:
        tensors = [e.value(name) for name in unit.inputs]
        side = choose_side(e.graph, unit)
        tensors[side] = expanded(e, tensors[side], e.graph.shape(unit.outputs[0]))
        finish(e, unit, tensors)

    ways = (Lowering(code.lower(), emit), Lowering("expanded", emit_expanded, applies=both_sides))
    return Op(name, ways, commute="elementwise")


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
    known: dict[tuple[float | None, float | None], str] = {
        (0.0, None): "RELU",
        (0.0, 6.0): "RELU6",
        (-1.0, 1.0): "RELU_N1_TO_1",
    }
    code = known.get((low, high))
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
    e.finish(
        "DIV",
        unit,
        [e.const(1.0, "one"), e.value(unit.inputs[0])],
        fused_activation_function="NONE",
    )


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
        inverse = e.op(
            "DIV",
            [e.const(1.0, "one"), b],
            e.shape(b),
            hint="inverse",
            fused_activation_function="NONE",
        )
    e.finish("MUL", unit, [a, inverse], fused_activation_function="NONE")


def emit_pow(e: Emitter, unit: Unit) -> None:
    """POW of one type on both sides; the result has the type of the base."""
    base, exponent = (e.value(name) for name in unit.inputs)
    types = {e.dtype(base), e.dtype(exponent)}
    if len(types) == 1:
        e.finish("POW", unit, [base, exponent])
        return
    result = e.dtype(base)
    base, exponent = (_as_float(e, tensor) for tensor in (base, exponent))
    if result == "float32":
        e.finish("POW", unit, [base, exponent])
    else:
        e.finish("CAST", unit, [two(e, "POW", base, exponent)])


def emit_square(e: Emitter, unit: Unit) -> None:
    """x^2 and x^3 as products, which have integer kernels."""
    x = e.value(unit.inputs[0])
    factor = two(e, "MUL", x, x) if _exponent(e.graph, unit) == 3 else x
    e.finish("MUL", unit, [factor, x], fused_activation_function="NONE")


def _exponent(graph: Graph, unit: Unit) -> float | None:
    """The one constant exponent, None when there is none."""
    data = graph.constants.get(unit.inputs[1])
    same = data is not None and data.size == 1
    return float(data.reshape(-1)[0]) if same and data is not None else None


def emit_root(e: Emitter, unit: Unit) -> None:
    """x^0.5 and x^-0.5."""
    code = "SQRT" if _exponent(e.graph, unit) == 0.5 else "RSQRT"
    e.finish(code, unit, [e.value(unit.inputs[0])])


def _as_float(e: Emitter, x: str) -> str:
    if e.dtype(x) == "float32":
        return x
    return e.op("CAST", [x], e.shape(x), hint="float")


def emit_cast(e: Emitter, unit: Unit) -> None:
    """Between integers only a narrower type changes anything: its numbers wrap around."""
    source = e.value(unit.inputs[0])
    wanted = e.graph.values[unit.outputs[0]].dtype
    given = e.graph.values[unit.inputs[0]].dtype
    target = lite_dtype(wanted)
    if e.dtype(source) != target:
        e.finish("CAST", unit, [source])
    elif wanted in NARROW and given != wanted:
        e.wrapped(source, wanted, out=unit.outputs[0])
    else:
        e.reshape(source, e.shape(source), out=unit.outputs[0])


def emit_where(e: Emitter, unit: Unit) -> None:
    e.finish("SELECT_V2", unit, [e.value(name) for name in unit.inputs])


def _power_of(*exponents: float) -> Callable[[Graph, Unit], str | None]:
    def applies(graph: Graph, unit: Unit) -> str | None:
        if lite_dtype(graph.values[unit.inputs[0]].dtype) != "float32":
            return "it is not of floats"
        if graph.shape(unit.inputs[0]) != graph.shape(unit.outputs[0]):
            return "the exponent is broadcast"
        return None if _exponent(graph, unit) in exponents else "another exponent"

    return applies


def emit_prelu(e: Emitter, unit: Unit) -> None:
    """PRELU broadcasts its slope like numpy, up to rank 4."""
    e.finish("PRELU", unit, [e.value(name) for name in unit.inputs])


def emit_prelu_parts(e: Emitter, unit: Unit) -> None:
    """max(x, 0) + slope * min(x, 0)."""
    x, slope = (e.value(name) for name in unit.inputs)
    zero = e.const(0, "zero", dtype=e.dtype(x))
    low = two(e, "MUL", two(e, "MINIMUM", x, zero), slope)
    high = two(e, "MAXIMUM", x, zero)
    e.finish("ADD", unit, [high, low], fused_activation_function="NONE")


def _prelu_kernel(graph: Graph, unit: Unit) -> str | None:
    value = graph.values[unit.inputs[0]]
    if lite_dtype(value.dtype) != "float32":
        return "it is not of floats"
    if len(graph.shape(unit.inputs[1])) > len(value.shape):
        return "the slope has the higher rank"
    return None if len(value.shape) <= 4 else f"rank {len(value.shape)}"


def emit_equal_infinity(e: Emitter, unit: Unit) -> None:
    """x == inf as x >= the largest float: float arithmetic saturates there."""
    left = unit.inputs[0] in e.graph.constants
    bound = e.graph.constants[unit.inputs[0 if left else 1]]
    top = float(np.finfo(np.float32).max)
    high = bool(bound.reshape(-1)[0] > 0)
    limit = e.const(np.full(bound.shape, top if high else -top), "largest")
    x = e.value(unit.inputs[1 if left else 0])
    e.finish("GREATER_EQUAL" if high else "LESS_EQUAL", unit, [x, limit])


def _infinity(graph: Graph, unit: Unit) -> str | None:
    for name in unit.inputs:
        data = graph.constants.get(name)
        if data is None or data.dtype.kind != "f" or not data.size:
            continue
        if np.all(np.isposinf(data)) or np.all(np.isneginf(data)):
            return None
    return "neither side is infinity"


OPS = (
    binary("Add", "ADD"),
    binary("Sub", "SUB"),
    binary("Mul", "MUL"),
    Op(
        "Equal",
        (
            Lowering("at_least_largest", emit_equal_infinity, applies=_infinity),
            *binary("Equal", "EQUAL").lowerings,
        ),
        commute="elementwise",
    ),
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
    Op(
        "Pow",
        (
            Lowering("products", emit_square, applies=_power_of(2.0, 3.0)),
            Lowering("root", emit_root, applies=_power_of(0.5, -0.5)),
            Lowering("pow", emit_pow),
        ),
        commute="elementwise",
    ),
    Op(
        "PRelu",
        (
            Lowering("prelu", emit_prelu, applies=_prelu_kernel),
            Lowering("parts", emit_prelu_parts),
        ),
        commute="elementwise",
    ),
    chain("Cast", emit_cast),
    chain("CastLike", emit_cast),
    chain("Where", emit_where),
)
