"""Operators that are written as others, since their own kernels cannot be trusted with them.

Measured on ai-edge-litert 2.3.0: comparisons of int8 end the process at a scale of 1 or more, PRELU
takes 16 bits without complaint and computes something else, ARG_MAX knows 8 and 32 bits only, NEG
changes the sign of the integers whatever the zero point, and leaves -128 as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from splitter.quantize import lookup
from splitter.quantize.affine import affine
from splitter.quantize.weights import quantize_constant
from splitter.tflite.types import Operator, Quantization, Tensor

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer

COMPARISONS = frozenset(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"))


def write_comparison(writer: Writer, index: int, op: Operator) -> None:
    """Against one constant value a look-up, which is exact. Two tensors: raw integers of the
    same parameters, as 32 bits; the int8 kernel ends the process at a scale of 1 or more.
    """
    if lookup.function_of(writer.graph, op) is not None:
        writer.table(index, op)
        return
    bits = writer.bits_of(op)
    known = writer.parameters.tensors
    operands = [
        writer.input(index, position, op, name) if name in known else name
        for position, name in enumerate(op.inputs)
    ]
    held = [writer.tensors.get(n) or writer.graph.tensors[n] for n in operands]
    told = [t for t, n in zip(held, op.inputs, strict=True) if not _is_blank(writer, n)]
    target = joint(told or held, bits)
    inputs = []
    for position, name in enumerate(operands):
        if op.inputs[position] not in known:
            name = writer.constant(op, position, target)
        elif writer.tensors[name].quantization != target:
            name = writer.rescaled_once(name, bits, target, op.unit)
        wide = writer.add(Tensor(f"{name}/int32", writer.tensors[name].shape, "int32"))
        if not any(wide in other.outputs for other in writer.operators):
            writer.operators.append(Operator("CAST", (name,), (wide,), {}, op.unit))
        inputs.append(wide)
    outputs = tuple(writer.variable(name) for name in op.outputs)
    writer.operators.append(replace(op, inputs=tuple(inputs), outputs=outputs))


def _is_blank(writer: Writer, name: str) -> bool:
    """Whether a tensor was 0 wherever it was seen: its scale says nothing then."""
    entry = writer.ranges.get(name)
    return entry is not None and entry.low == entry.high == 0.0


def joint(operands: Sequence[Tensor], bits: int) -> Quantization:
    """Parameters that cover what all of the tensors can hold; their own when they agree."""
    known = {t.quantization for t in operands}
    first = operands[0].quantization
    if first is not None and known == {first}:
        return first
    low = high = 0.0
    for tensor in operands:
        if tensor.quantization is not None:
            ends = np.array([np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max])
            held = (ends - tensor.quantization.zero_point[0]) * tensor.quantization.scale[0]
        else:
            held = np.asarray(tensor.data)
        low, high = min(low, float(held.min())), max(high, float(held.max()))
    return affine(low, high, bits=bits, symmetric=False)


def write_wide_rank(writer: Writer, index: int, op: Operator) -> None:
    """The kernel knows 8 and 32 bits; the order of integers is that of what they stand for."""
    x = writer.tensors[writer.input(index, 0, op, op.inputs[0])]
    wide = writer.add(Tensor(f"{x.name}/int32", x.shape, "int32"))
    if not any(wide in other.outputs for other in writer.operators):
        writer.operators.append(Operator("CAST", (x.name,), (wide,), {}, op.unit))
    others = [writer.variable(name) for name in (*op.inputs[1:], *op.outputs)]
    inputs = (wide, *others[: len(op.inputs) - 1])
    writer.operators.append(replace(op, inputs=inputs))


def write_function_of_two(writer: Writer, index: int, op: Operator) -> None:
    """The place of a pair in its table is 256 times the first integer and the second one."""
    names = [writer.input(index, position, op, name) for position, name in enumerate(op.inputs)]
    first, second = (writer.tensors[name] for name in names)
    assert first.quantization is not None and second.quantization is not None
    y = writer.tensors[writer.variable(op.outputs[0])]
    pair = (first.quantization, second.quantization)
    entries = lookup.table_of_two(op, pair, y.quantization, y.dtype, writer.seen(op))
    plain = {"fused_activation_function": "NONE"}
    high, low = (writer.table_index(tensor, op.unit) for tensor in (first, second))
    rows = writer.add(Tensor("row_of_256", (), "int32", np.array(256, np.int32)))
    row = writer.add(Tensor(f"{y.name}/row", first.shape, "int32"))
    place = writer.add(Tensor(f"{y.name}/place", y.shape, "int32"))
    writer.operators += [
        Operator("MUL", (high, rows), (row,), plain, op.unit),
        Operator("ADD", (row, low), (place,), plain, op.unit),
    ]
    writer.gather(entries, place, y, op.unit)


def write_negative(writer: Writer, index: int, op: Operator) -> None:
    """A product with -1, which rounds and saturates as it should."""
    x = writer.input(index, 0, op, op.inputs[0])
    minus = quantize_constant(f"{x}/minus", -np.ones(()), writer.bits_of(op), None)
    outputs = tuple(writer.variable(name) for name in op.outputs)
    plain = {"fused_activation_function": "NONE"}
    writer.operators.append(Operator("MUL", (x, writer.add(minus)), outputs, plain, op.unit))


def write_wide_prelu(writer: Writer, index: int, op: Operator) -> None:
    """max(x, 0) + slope * min(x, 0): PRELU takes 16 bits without complaint and computes
    something else (ai-edge-litert 2.3.0). The product is y itself where x is under 0.
    """
    x = writer.tensors[writer.input(index, 0, op, op.inputs[0])]
    slope = op.inputs[1]
    known = slope in writer.parameters.tensors
    slope = writer.input(index, 1, op, slope) if known else writer.constant(op, 1, None)
    y = writer.tensors[writer.variable(op.outputs[0])]
    zero = writer.add(quantize_constant(f"{x.name}/zero", np.zeros(()), 16, x.quantization))
    above, below = (writer.add(replace(x, name=f"{y.name}/{n}")) for n in ("above", "below"))
    product = writer.add(replace(y, name=f"{y.name}/product"))
    plain = {"fused_activation_function": "NONE"}
    writer.operators += [
        Operator("MAXIMUM", (x.name, zero), (above,), {}, op.unit),
        Operator("MINIMUM", (x.name, zero), (below,), {}, op.unit),
        Operator("MUL", (below, slope), (product,), plain, op.unit),
        Operator("ADD", (above, product), op.outputs, plain, op.unit),
    ]
