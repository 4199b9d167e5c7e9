"""Facts about quantization parameters and quantized weights; None while a graph has none.

A rule on one of them is a demand: it cannot be broken before `quantize` has chosen.
"""

from __future__ import annotations

import numpy as np

from splitter.tflite.fact import Fact, Family, Read, Value
from splitter.tflite.view import View


def _quantized(view: View) -> list[tuple[tuple[float, ...], tuple[int, ...]]] | None:
    """(scale, zero point) of each data tensor, None when the graph is not quantized there."""
    found = [t.quantization for t in view.activations if t.dtype not in ("int32", "int64", "bool")]
    if not found or any(parameters is None for parameters in found):
        return None
    return [(p.scale, p.zero_point) for p in found if p is not None]


def _input_zero_points(view: View) -> Value | None:
    if _quantized(view) is None:
        return None
    return tuple(t.quantization.zero_point[0] for t in view.data if t.quantization is not None)


def _output_parameter(kind: str) -> Read:
    def read(view: View) -> Value | None:
        out = view.outputs[0].quantization if view.outputs else None
        if out is None:
            return None
        return out.scale[0] if kind == "scale" else out.zero_point[0]

    return read


def _per_tensor(view: View) -> Value | None:
    parameters = _quantized(view)
    return None if parameters is None else all(len(scale) == 1 for scale, _ in parameters)


def _scales_equal(view: View) -> Value | None:
    parameters = _quantized(view)
    return None if parameters is None else len(set(parameters)) == 1


QUANTIZATION: Family = {
    "per_tensor": Fact(_per_tensor, "one scale for each activation tensor"),
    "scales_equal": Fact(_scales_equal, "inputs and outputs share scale and zero point"),
    "input_zero_points": Fact(_input_zero_points, "zero points of the data inputs"),
    "output_zero_point": Fact(_output_parameter("zero_point"), "zero point of the output"),
    "output_scale": Fact(_output_parameter("scale"), "scale of the output"),
}


def _weight_sum(view: View) -> Value | None:
    """Largest sum of |w - zero point| over the weights of one output channel; None for floats."""
    weights = view.weights
    if weights is None or weights.data is None or weights.quantization is None:
        return None
    axis = 3 if view.op.code == "DEPTHWISE_CONV_2D" else 0
    others = tuple(i for i in range(len(weights.shape)) if i != axis)
    zero = weights.quantization.zero_point[0]
    return int(np.abs(weights.data.astype(np.int64) - zero).sum(axis=others).max(initial=0))


WEIGHT_SUM: Family = {
    "weight_sum": Fact(_weight_sum, "largest sum of absolute weights of an output channel")
}

LATER = frozenset((*QUANTIZATION, *WEIGHT_SUM))
"""Facts that only a quantized graph has."""
