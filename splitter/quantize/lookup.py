"""Functions without an integer kernel as a table look-up: CAST, ADD, GATHER on 32-bit indices.

Exact up to the rounding of the table's entries: the whole function is evaluated in float64 for
every value that the input can have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from splitter.tflite.types import Array, LiteGraph, Operator, Quantization

Function = Callable[[Array], Array]


def _reciprocal(x: Array) -> Array:
    return 1.0 / np.where(x == 0, np.finfo(np.float64).tiny, x)


FUNCTIONS: Mapping[str, Function] = {
    "SIN": np.sin,
    "COS": np.cos,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": np.rint,
    "SQUARE": np.square,
    "EXP": np.exp,
    "LOG": lambda x: np.log(np.maximum(x, np.finfo(np.float64).tiny)),
    "SQRT": lambda x: np.sqrt(np.maximum(x, 0)),
    "RSQRT": lambda x: 1 / np.sqrt(np.maximum(x, np.finfo(np.float64).tiny)),
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "ABS": np.abs,
}


def function_of(graph: LiteGraph, op: Operator) -> Function | None:
    """The one-variable function that an operator computes, None when it is none.

    POW and DIV count when one side is a single constant.
    """
    if op.code in FUNCTIONS:
        return FUNCTIONS[op.code]
    if op.code not in ("POW", "DIV"):
        return None
    left, right = (graph.tensors[name].data for name in op.inputs)
    if left is not None and left.size == 1:
        base = float(left.reshape(-1)[0])
        if op.code == "DIV":
            return lambda x: base * _reciprocal(x)
        return lambda x: np.power(base, x)
    if right is not None and right.size == 1:
        exponent = float(right.reshape(-1)[0])
        if op.code == "DIV":
            return lambda x: x / exponent
        return lambda x: np.nan_to_num(np.power(x, exponent))
    return None


def table(
    function: Function, source: Quantization, bits: int, target: Quantization, target_bits: int
) -> Array:
    """The function's integer output for every integer input from the smallest up."""
    half = 2 ** (bits - 1)
    real = (np.arange(-half, half, dtype=np.float64) - source.zero_point[0]) * source.scale[0]
    with np.errstate(all="ignore"):
        values = np.nan_to_num(function(real), posinf=1e30, neginf=-1e30)
    top = 2 ** (target_bits - 1) - 1
    quantized = np.clip(np.rint(values / target.scale[0]) + target.zero_point[0], -top - 1, top)
    return quantized.astype(f"int{target_bits}")
