"""SOFTMAX of long rows in 16 bits, in 32-bit integers.

TFLite's 16-bit kernel takes exp(-10) for whatever lies lower (tensorflow/lite/kernels/internal/
reference/softmax.h): 6,625 symbols of a text recognizer that are all next to nothing add 0.3 to the
sum, and every probability is a quarter too small. Here exponentials of 15 bits are summed and
divided exactly. Decides which rows are long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from splitter.quantize import lookup
from splitter.tflite.types import Operator, Quantization, Tensor

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer

SHORT = 256
"""Rows up to this length stay with the kernel, which is off by 1 % at most then."""
LONGEST = 1 << 15
"""The sum of so many exponentials has 30 bits."""
RANKS = 4
"""The kernel of FLOOR_DIV broadcasts so many axes."""
ONE = 32767
"""The exponential of 0."""

_PLAIN, _KEPT = {"fused_activation_function": "NONE"}, {"keep_dims": True}
OPTIONS: Mapping[str, Mapping[str, object]] = {
    **dict.fromkeys(("ADD", "MUL", "SUB"), _PLAIN),
    **dict.fromkeys(("REDUCE_MAX", "SUM"), _KEPT),
}


def is_long(writer: Writer, op: Operator) -> bool:
    shape = writer.graph.tensors[op.inputs[0]].shape
    known = op.inputs[0] in writer.parameters.tensors and op.options.get("beta", 1.0) == 1.0
    return known and SHORT < shape[-1] <= LONGEST and len(shape) <= RANKS


def write_long_softmax(writer: Writer, index: int, op: Operator) -> None:
    """exp(x - largest) by a table; their sum; the quotient, rounded to the nearest."""
    x = writer.tensors[writer.input(index, 0, op, op.inputs[0])]
    y = writer.tensors[writer.variable(op.outputs[0])]
    q = x.quantization
    assert q is not None and y.quantization == Quantization((1 / 32768,), (0,))
    row = (*x.shape[:-1], 1)

    def add(code: str, inputs: list[str], tensor: Tensor) -> str:
        name = writer.add(tensor)
        options = OPTIONS.get(code, {})
        writer.operators.append(Operator(code, tuple(inputs), (name,), options, op.unit))
        return name

    def whole(hint: str, shape: tuple[int, ...] = x.shape) -> Tensor:
        return Tensor(f"{y.name}/{hint}", shape, "int32")

    def constant(value: int) -> str:
        return writer.add(Tensor(f"whole_{value}", (), "int32", np.array(value, np.int32)))

    axis = writer.add(Tensor("last_axis", (1,), "int32", np.array([len(row) - 1], np.int32)))
    top = add("REDUCE_MAX", [x.name, axis], Tensor(f"{y.name}/top", row, "int16", None, q))
    below = add("SUB", [x.name, top], Tensor(f"{y.name}/below", x.shape, "int16", None, q))
    power = Quantization((1 / ONE,), (0,))
    grown = writer.add(Tensor(f"{y.name}/exp", x.shape, "int16", None, power))
    entries = lookup.table(lambda v: np.exp(np.minimum(v, 0)), q, 16, power, 16)
    place = writer.table_index(writer.tensors[below], op.unit)
    writer.gather(entries, place, writer.tensors[grown], op.unit)
    exact = add("CAST", [grown], whole("exp/int32"))
    total = add("SUM", [exact, axis], whole("sum", row))
    half = add("FLOOR_DIV", [total, constant(2)], whole("half", row))
    raised = add("MUL", [exact, constant(1 << 15)], whole("raised"))
    rounded = add("ADD", [raised, half], whole("rounded"))
    share = add("FLOOR_DIV", [rounded, total], whole("share"))
    bound = add("MINIMUM", [share, constant(ONE)], whole("bound"))
    writer.operators.append(Operator("CAST", (bound,), (y.name,), {}, op.unit))
