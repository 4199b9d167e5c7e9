"""Remainders and bits. TFLite has no bitwise and, or, shift left: int32 arithmetic does."""

from __future__ import annotations

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.functions import compare
from splitter.ops.registry import NARROW, Emitter, Lowering, Op


def emit_mod(e: Emitter, unit: Unit) -> None:
    """FLOOR_MOD has the sign of the divisor, as numpy's mod."""
    e.finish("FLOOR_MOD", unit, [e.value(name) for name in unit.inputs])


def emit_fmod(e: Emitter, unit: Unit) -> None:
    """The sign of the dividend: |a| mod |b|, negated where a < 0."""
    a, b = (e.value(name) for name in unit.inputs)
    known = e.graph.constants.get(unit.inputs[1])
    b = one(e, "ABS", b) if known is None else e.const(np.abs(known), "b", dtype=e.dtype(b))
    rest = two(e, "FLOOR_MOD", one(e, "ABS", a), b)
    negative = compare(e, "LESS", a, 0.0)
    shape = e.graph.shape(unit.outputs[0])
    y = e.op(
        "SELECT_V2", [negative, one(e, "NEG", rest), rest], shape, dtype=e.dtype(a), hint="signed"
    )
    e.bind(y, unit)


def _sign_of_dividend(graph: Graph, unit: Unit) -> str | None:
    return None if unit.attrs.get("fmod") else "the remainder has the sign of the divisor"


def _sign_of_divisor(graph: Graph, unit: Unit) -> str | None:
    return "the remainder has the sign of the dividend" if unit.attrs.get("fmod") else None


def emit_xor(e: Emitter, unit: Unit) -> None:
    e.finish("NOT_EQUAL", unit, [e.value(name) for name in unit.inputs])


def bitwise_xor(e: Emitter, unit: Unit) -> str:
    a, b = (e.value(name) for name in unit.inputs)
    return two(e, "BITWISE_XOR", a, b)


def emit_bitwise_xor(e: Emitter, unit: Unit) -> None:
    e.bind(bitwise_xor(e, unit), unit)


def emit_bitwise_and(e: Emitter, unit: Unit) -> None:
    """(a + b - (a xor b)) / 2, even by construction."""
    a, b = (e.value(name) for name in unit.inputs)
    twice = two(e, "SUB", two(e, "ADD", a, b), bitwise_xor(e, unit))
    e.bind(two(e, "FLOOR_DIV", twice, e.const(2, "two", dtype="int32")), unit)


def emit_bitwise_or(e: Emitter, unit: Unit) -> None:
    """(a + b + (a xor b)) / 2."""
    a, b = (e.value(name) for name in unit.inputs)
    twice = two(e, "ADD", two(e, "ADD", a, b), bitwise_xor(e, unit))
    e.bind(two(e, "FLOOR_DIV", twice, e.const(2, "two", dtype="int32")), unit)


def emit_bitwise_not(e: Emitter, unit: Unit) -> None:
    """-1 - x where negative numbers exist, the largest number minus x elsewhere."""
    dtype = e.graph.values[unit.inputs[0]].dtype
    ones = -1 if dtype.startswith("int") else int(np.iinfo(dtype).max)
    e.bind(two(e, "SUB", e.const(ones, "ones", dtype="int32"), e.value(unit.inputs[0])), unit)


def emit_shift(e: Emitter, unit: Unit) -> None:
    """By constant amounts: a product with, or a division by, powers of two."""
    x = e.value(unit.inputs[0])
    amounts = e.graph.constants[unit.inputs[1]].astype(np.int64)
    powers = e.const(2**amounts, "powers", dtype="int32")
    left = _direction(unit) == "LEFT"
    e.finish(
        "MUL" if left else "FLOOR_DIV",
        unit,
        [x, powers],
        **({"fused_activation_function": "NONE"} if left else {}),
    )


def _direction(unit: Unit) -> str:
    direction = unit.attrs.get("direction", "LEFT")
    return direction.decode() if isinstance(direction, bytes) else str(direction)


def _narrow(graph: Graph, unit: Unit) -> str | None:
    dtype = graph.values[unit.inputs[0]].dtype
    return None if dtype in NARROW else f"sums of two {dtype} may not fit int32"


def _int32(graph: Graph, unit: Unit) -> str | None:
    dtype = graph.values[unit.inputs[0]].dtype
    return None if dtype in (*NARROW, "int32", "int64") else f"{dtype} does not fit int32"


def _constant_amounts(graph: Graph, unit: Unit) -> str | None:
    amounts = graph.constants.get(unit.inputs[1])
    if amounts is None:
        return "the amounts are not constant"
    dtype = graph.values[unit.inputs[0]].dtype
    if amounts.size and int(amounts.max()) > 30:
        return "it shifts by over 30 bits"
    if dtype in ("uint32", "uint64") or (_direction(unit) == "LEFT" and dtype not in NARROW):
        return f"{dtype} does not fit int32"
    return None


OPS = (
    Op(
        "Mod",
        (
            Lowering("floor_mod", emit_mod, applies=_sign_of_divisor),
            Lowering("absolute_floor_mod", emit_fmod, applies=_sign_of_dividend),
        ),
        commute="elementwise",
    ),
    Op("Xor", (Lowering("not_equal", emit_xor),), commute="elementwise"),
    Op(
        "BitwiseXor",
        (Lowering("bitwise_xor", emit_bitwise_xor, applies=_int32),),
        commute="elementwise",
    ),
    Op(
        "BitwiseAnd",
        (Lowering("arithmetic", emit_bitwise_and, applies=_narrow),),
        commute="elementwise",
    ),
    Op(
        "BitwiseOr",
        (Lowering("arithmetic", emit_bitwise_or, applies=_narrow),),
        commute="elementwise",
    ),
    Op(
        "BitwiseNot",
        (Lowering("arithmetic", emit_bitwise_not, applies=_int32),),
        commute="elementwise",
    ),
    Op(
        "BitShift",
        (Lowering("powers_of_two", emit_shift, applies=_constant_amounts),),
        commute="elementwise",
    ),
)
