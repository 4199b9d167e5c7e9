"""A function of the sum of two squares, in 16 bits: the sum in 32 bits, exact, then a look-up.

The power of a spectrum spans twice the decades of its amplitude, and what reads it (a root, a
logarithm) takes apart what lies near 0: 16 bits of power are 45 dB, 16 bits of amplitude 90. The
squares of two 16-bit integers of one scale and their sum fit in 31 bits, so nothing is rounded
before the look-up. Its index keeps at least eight bits of the sum below the leading one: all of a
small sum, the upper bits of a larger one. Decides nothing; `functions` says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from splitter.quantize.affine import quantize_values
from splitter.quantize.evaluate import evaluate
from splitter.quantize.lookup import Seen, finite, with_means
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization, Tensor

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer

BLOCK = 1 << 16
"""Entries of a block of the table."""

SHIFTS = (0, 8, 15)
"""By how many bits the sum is shifted before it is looked up in each block, the first that it fits
into: the largest sum, 2 * 32767 ** 2, has 31 bits."""


def sum_of_squares(body: LiteGraph) -> str:
    """The value of the body that is the sum of the squares of its two inputs and through which
    alone they reach its output; "" when there is none."""
    made = {op.outputs[0]: op for op in body.operators}
    for name, op in made.items():
        squares = [made.get(one) for one in op.inputs] if op.code == "ADD" else []
        roots = {root for one in squares if one is not None for root in _squared(one)}
        if roots != set(body.inputs) or not _plain(op):
            continue
        inside = {name, *op.inputs}
        others = [one for output, one in made.items() if output not in inside]
        if not any(inside.difference([name]).union(roots).intersection(o.inputs) for o in others):
            return name
    return ""


def _squared(op: Operator) -> set[str]:
    """The value that the operator squares, alone in a set."""
    same = len(set(op.inputs)) == 1 and op.code in ("MUL", "SQUARE") and _plain(op)
    return set(op.inputs) if same else set()


def _plain(op: Operator) -> bool:
    return op.options.get("fused_activation_function", "NONE") in ("NONE", "RELU")


def is_of_squares(op: Operator) -> bool:
    """Whether the operator is a function of the sum of the squares of two tensors of 16 bits."""
    return bool(op.options.get("squares"))


def table_of_squares(
    op: Operator,
    source: Quantization,
    target: Quantization | None,
    dtype: str,
    seen: Seen | None = None,
) -> Array:
    """The integer output for every place of the index, block by block, each entry at the middle of
    the sums that it stands for. target: None for conditions and whole numbers. seen: pairs that
    the inputs take, as in `lookup.table`."""
    steps = np.arange(BLOCK, dtype=np.float64)
    sums = np.concatenate([(steps + (0.5 if s else 0.0)) * 2.0**s for s in SHIFTS])
    body, name = op.options["body"], op.options["squares"]
    behind = body.operators[[o.outputs[0] for o in body.operators].index(name) + 1 :]
    tail = LiteGraph((name,), body.outputs, body.tensors, tuple(behind))
    made = finite(evaluate(tail, sums * source.scale[0] ** 2))
    if target is None:
        return np.asarray(made, dtype)
    if seen is not None:
        results = finite(evaluate(body, *seen.values))
        made = with_means(made, _places(seen, source), results, target, seen.extremes)
    return np.asarray(quantize_values(made, target, int(dtype[3:])), dtype)


def _places(seen: Seen, source: Quantization) -> Array:
    """Where in the table the pairs are looked up."""
    total = sum(np.square(quantize_values(one, source, 16).clip(-32767)) for one in seen.values)
    place = np.asarray(total)
    for block, shift in enumerate(SHIFTS[1:], start=1):
        small = total < BLOCK << SHIFTS[block - 1]
        place = np.where(small, place, total // 2**shift + block * BLOCK)
    return place


def write_function_of_squares(writer: Writer, index: int, op: Operator) -> None:
    """Both inputs as 32-bit integers, squared and added; the place in the table; the look-up."""
    names = [writer.input(index, position, op, name) for position, name in enumerate(op.inputs)]
    first, second = (writer.tensors[name] for name in names)
    assert first.quantization is not None and first.quantization == second.quantization
    y = writer.tensors[writer.variable(op.outputs[0])]
    seen = writer.seen(op)
    entries = table_of_squares(op, first.quantization, y.quantization, y.dtype, seen)
    steps = _Steps(writer, y, op.unit)
    total = steps.add("ADD", [steps.square(first, bound=True), steps.square(second)], y.shape)
    place = total
    for block, shift in enumerate(SHIFTS[1:], start=1):
        shifted = steps.add("FLOOR_DIV", [total, steps.constant(2**shift)], y.shape)
        moved = steps.add("ADD", [shifted, steps.constant(block * BLOCK)], y.shape)
        least = steps.constant(BLOCK << SHIFTS[block - 1])
        small = steps.add("LESS", [total, least], y.shape, dtype="bool")
        place = steps.add("SELECT_V2", [small, place, moved], y.shape)
    writer.gather(entries, place, y, op.unit)


class _Steps:
    """Writes operators on 32-bit integers, their results named after a tensor."""

    def __init__(self, writer: Writer, result: Tensor, unit: str) -> None:
        self._writer, self._result, self._unit = writer, result, unit
        self._count = 0

    def constant(self, value: int) -> str:
        data = np.array(value, np.int32)
        return self._writer.add(Tensor(f"whole_{value}", (), "int32", data))

    def add(
        self, code: str, inputs: list[str], shape: tuple[int, ...], *, dtype: str = "int32"
    ) -> str:
        self._count += 1
        name = f"{self._result.name}/{code.lower()}{self._count}"
        made = self._writer.add(Tensor(name, shape, dtype))
        options = {"fused_activation_function": "NONE"} if code in ("ADD", "MUL") else {}
        self._writer.operators.append(Operator(code, tuple(inputs), (made,), options, self._unit))
        return made

    def square(self, x: Tensor, *, bound: bool = False) -> str:
        """bound: -32768 as -32767, which keeps the sum of two within 31 bits."""
        wide = self.add("CAST", [x.name], x.shape)
        if bound:
            wide = self.add("MAXIMUM", [wide, self.constant(-32767)], x.shape)
        return self.add("MUL", [wide, wide], x.shape)
