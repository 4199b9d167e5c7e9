"""Functions without an integer kernel as a table look-up: CAST, ADD, GATHER on 32-bit indices.

Exact up to the rounding of the table's entries: the whole function is evaluated in float64 for
every value that the input can have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from splitter.quantize.affine import quantize_values
from splitter.quantize.evaluate import evaluate, evaluates
from splitter.quantize.kernels import FUNCTION
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Seen:
    """values: of each input of a function, at the same places (1-D float64). extremes: what is
    asked of its results afterwards (REDUCE_MIN, REDUCE_MAX), for which a mean will not do."""

    values: tuple[Array, ...]
    extremes: frozenset[str] = frozenset()


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
    seen: Seen | None = None,
) -> Array:
    """The integer output for every pair of 8-bit inputs, from the smallest of both up, the second
    input the faster one. target: None for conditions and whole numbers. seen: pairs that the inputs
    take, as in `table`."""
    first, second = (inputs(q, 8, None) for q in sources)
    body = op.options["body"]
    made = finite(evaluate(body, *np.meshgrid(first, second, indexing="ij"))).reshape(-1)
    if target is None:
        return np.asarray(made, dtype)
    if seen is not None:
        rows = [quantize_values(v, q, 8) + 128 for v, q in zip(seen.values, sources, strict=True)]
        results = finite(evaluate(body, *seen.values))
        made = with_means(made, 256 * rows[0] + rows[1], results, target, seen.extremes)
    return np.asarray(quantize_values(made, target, int(dtype[3:])), dtype)


def table(
    function: Function,
    source: Quantization,
    bits: int,
    target: Quantization,
    target_bits: int,
    seen: Seen | None = None,
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
    if seen is not None:
        (real,) = seen.values
        places = quantize_values(real, source, bits) + half
        values = with_means(values, places, _finite(function, real), target, seen.extremes)
    top = 2 ** (target_bits - 1) - 1
    quantized = np.clip(np.rint(values / target.scale[0]) + target.zero_point[0], -top - 1, top)
    return np.asarray(quantized, f"int{target_bits}")


def with_means(
    entries: Array,
    places: Array,
    results: Array,
    target: Quantization,
    extremes: Collection[str] = (),
) -> Array:
    """The entries; where what the function makes of the values that fall there is several steps
    away from the entry on average, that average.

    places, results: of the values. extremes: see `Seen`; where one is asked for, that entry stays.
    """
    where = places.astype(np.int64)
    counts = np.bincount(where, minlength=len(entries))
    means = np.bincount(where, results, len(entries)) / np.maximum(counts, 1)
    changed = (counts > 0) & _apart(means, entries, target)
    for code, extreme in (("REDUCE_MIN", entries.min()), ("REDUCE_MAX", entries.max())):
        if code in extremes:
            changed &= entries != extreme
    return np.asarray(np.where(changed, means, entries))


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
    return finite(function(values))


def finite(made: Array) -> Array:
    """Results of a function with numbers for what is none, and for infinity."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(made, posinf=1e30, neginf=-1e30).clip(-1e30, 1e30))


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
