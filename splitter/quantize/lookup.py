"""Functions without an integer kernel as a table look-up: CAST, ADD, GATHER on 32-bit indices.

Exact up to the rounding of the table's entries: the whole function is evaluated in float64 for
every value that the input can have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.quantize.affine import quantize_values
from splitter.quantize.evaluate import evaluate, evaluates
from splitter.quantize.kernels import FUNCTION
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization

Function = Callable[[Array], Array]

Masks = tuple[float, float]
"""(bound, value): what is not above the bound stands for this value."""

STEEP_STEPS = 3.0
"""Output steps between two results that count as far apart."""
JUMPS = frozenset(
    (
        "CAST", "CEIL", "EQUAL", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL",
        "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "NOT_EQUAL", "ROUND",
        "SELECT_V2", "SIGN",
    )
)  # fmt: skip
STEEP_SHARE = 0.01
"""Share of the values seen from which on a kernel gives way to a table of means."""


def function_of(graph: LiteGraph, op: Operator) -> Function | None:
    """The one-variable function that an operator computes, None when it is none.

    An operator of two inputs counts when one of them is a constant of one value.
    """
    if op.code == FUNCTION:
        body = op.options["body"]
        return None if is_of_two(op) else lambda x: evaluate(body, x)
    if not evaluates(op.code):
        return None
    variable = [name for name in op.inputs if graph.tensors[name].data is None]
    constants = [data for name in op.inputs if (data := graph.tensors[name].data) is not None]
    if len(variable) != 1 or not all(_is_uniform(data) for data in constants):
        return None
    tensors = {name: graph.tensors[name] for name in (*op.inputs, *op.outputs)}
    alone = LiteGraph((variable[0],), (op.outputs[0],), tensors, (op,))
    return lambda x: evaluate(alone, x)


def _is_uniform(data: Array) -> bool:
    return bool(data.size and (data == data.flat[0]).all())


def is_of_two(op: Operator) -> bool:
    """Whether the operator is a function of two tensors."""
    return op.code == FUNCTION and len(op.inputs) == 2


def table_of_two(
    op: Operator,
    sources: tuple[Quantization, Quantization],
    target: Quantization | None,
    dtype: str,
) -> Array:
    """The integer output for every pair of 8-bit inputs, from the smallest of both up, the second
    input the faster one. target: None for conditions and whole numbers."""
    first, second = (inputs(q, 8, None) for q in sources)
    pairs = np.meshgrid(first, second, indexing="ij")
    with np.errstate(all="ignore"):
        made = np.nan_to_num(evaluate(op.options["body"], *pairs), posinf=1e30, neginf=-1e30)
    if target is None:
        return np.asarray(made.reshape(-1), dtype)
    values = quantize_values(made.clip(-1e30, 1e30), target, int(dtype[3:]))
    return np.asarray(values.reshape(-1), dtype)


def table(
    function: Function,
    source: Quantization,
    bits: int,
    target: Quantization,
    target_bits: int,
    seen: Array | None = None,
    masks: Masks | None = None,
) -> Array:
    """The function's integer output for every integer input from the smallest up.

    masks: where very negative values saturate, and what they are. seen: values that the input
    takes. Where the function is steep within one step of the input (a logarithm near 0), the entry
    is the mean of what it makes of those that fall there, which is nearer to each than what it
    makes of the step's middle.
    """
    half = 2 ** (bits - 1)
    values = _finite(function, inputs(source, bits, masks))
    if seen is not None and seen.size:
        places = (quantize_values(seen.astype(np.float64), source, bits) + half).astype(np.int64)
        counts = np.bincount(places, minlength=2 * half)
        sums = np.bincount(places, _finite(function, seen.astype(np.float64)), 2 * half)
        means = sums / np.maximum(counts, 1)
        values = np.where((counts > 0) & _apart(means, values, target), means, values)
    top = 2 ** (target_bits - 1) - 1
    quantized = np.clip(np.rint(values / target.scale[0]) + target.zero_point[0], -top - 1, top)
    return np.asarray(quantized, f"int{target_bits}")


def steep(
    function: Function, source: Quantization, bits: int, target: Quantization, seen: Array
) -> bool:
    """Whether rounding the input moves the output of some of the values seen by several steps."""
    values = seen.astype(np.float64)
    rounded = quantize_values(values, source, bits) - source.zero_point[0]
    moved = _apart(_finite(function, values), _finite(function, rounded * source.scale[0]), target)
    return bool(moved.size and moved.mean() > STEEP_SHARE)


def is_smooth(op: Operator) -> bool:
    """Whether the function has no jumps: between two sides of one the mean is no value of it, and
    others (a floor and what is left over) must jump at the same place."""
    operators = op.options["body"].operators if op.code == FUNCTION else (op,)
    return not any(one.code in JUMPS for one in operators)


def _apart(one: Array, other: Array, target: Quantization) -> Array:
    return np.asarray(np.abs(one - other) > STEEP_STEPS * target.scale[0])


def _finite(function: Function, values: Array) -> Array:
    with np.errstate(all="ignore"):
        made = np.nan_to_num(function(values), posinf=1e30, neginf=-1e30)
    return np.asarray(made.clip(-1e30, 1e30))


def exact_table(
    function: Function, source: Quantization, bits: int, dtype: str, masks: Masks | None = None
) -> Array:
    """Conditions or whole numbers for every integer input from the smallest up."""
    return np.asarray(function(inputs(source, bits, masks)), dtype)


def inputs(source: Quantization, bits: int, masks: Masks | None) -> Array:
    """What every integer from the smallest up stands for."""
    half = 2 ** (bits - 1)
    real = (np.arange(-half, half, dtype=np.float64) - source.zero_point[0]) * source.scale[0]
    if masks is None:
        return np.asarray(real)
    return np.asarray(np.where(real <= masks[0], masks[1], real))
