"""Functions without an integer kernel as a table look-up: CAST, ADD, GATHER on 32-bit indices.

Exact up to the rounding of the table's entries: the whole function is evaluated in float64 for
every value that the input can have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.quantize.evaluate import evaluate, evaluates
from splitter.quantize.kernels import FUNCTION
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization

Function = Callable[[Array], Array]


def function_of(graph: LiteGraph, op: Operator) -> Function | None:
    """The one-variable function that an operator computes, None when it is none.

    An operator of two inputs counts when one of them is a constant of one value.
    """
    if op.code == FUNCTION:
        body = op.options["body"]
        return lambda x: evaluate(body, x)
    variable = [name for name in op.inputs if graph.tensors[name].data is None]
    constants = [graph.tensors[name].data for name in op.inputs if name not in variable]
    uniform = all(data is not None and np.unique(data).size == 1 for data in constants)
    if not evaluates(op.code) or len(variable) != 1 or not uniform:
        return None
    tensors = {name: graph.tensors[name] for name in (*op.inputs, *op.outputs)}
    alone = LiteGraph((variable[0],), (op.outputs[0],), tensors, (op,))
    return lambda x: evaluate(alone, x)


def table(
    function: Function, source: Quantization, bits: int, target: Quantization, target_bits: int
) -> Array:
    """The function's integer output for every integer input from the smallest up."""
    half = 2 ** (bits - 1)
    real = (np.arange(-half, half, dtype=np.float64) - source.zero_point[0]) * source.scale[0]
    with np.errstate(all="ignore"):
        values = np.nan_to_num(function(real), posinf=1e30, neginf=-1e30).clip(-1e30, 1e30)
    top = 2 ** (target_bits - 1) - 1
    quantized = np.clip(np.rint(values / target.scale[0]) + target.zero_point[0], -top - 1, top)
    return np.asarray(quantized, f"int{target_bits}")


def exact_table(function: Function, source: Quantization, bits: int, dtype: str) -> Array:
    """Conditions or whole numbers for every integer input from the smallest up."""
    half = 2 ** (bits - 1)
    real = (np.arange(-half, half, dtype=np.float64) - source.zero_point[0]) * source.scale[0]
    return np.asarray(function(real), dtype)
