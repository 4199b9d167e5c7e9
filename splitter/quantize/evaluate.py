"""Element-wise TFLite operators evaluated in numpy float64, for the entries of look-up tables.

Decides nothing; `functions` says which operators are worth a table, `lookup` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, sqrt
from typing import Any

import numpy as np

from splitter.tflite.types import Array, LiteGraph, Operator

Rule = Callable[..., Array]

_TINY = float(np.finfo(np.float64).tiny)


def _nonzero(x: Array) -> Array:
    return np.asarray(np.where(x == 0, _TINY, x))


def _select(condition: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(condition, a, b))


def _gelu(x: Array, *, approximate: bool = False) -> Array:
    if approximate:
        return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    error = np.array([erf(v / sqrt(2)) for v in np.ravel(x)]).reshape(np.shape(x))
    return np.asarray(0.5 * x * (1 + error))


RULES: Mapping[str, Rule] = {
    "ABS": np.abs,
    "ADD": np.add,
    "ATAN2": np.arctan2,
    "CEIL": np.ceil,
    "COS": np.cos,
    "DIV": lambda a, b: a / _nonzero(b),
    "ELU": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "EQUAL": np.equal,
    "EXP": np.exp,
    "FLOOR": np.floor,
    "FLOOR_DIV": lambda a, b: np.floor_divide(a, _nonzero(b)),
    "FLOOR_MOD": lambda a, b: np.mod(a, _nonzero(b)),
    "GELU": _gelu,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "LEAKY_RELU": lambda x, *, alpha: np.maximum(x, 0) + alpha * np.minimum(x, 0),
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "LOG": lambda x: np.log(np.maximum(x, _TINY)),
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_NOT": np.logical_not,
    "LOGICAL_OR": np.logical_or,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": np.multiply,
    "NEG": np.negative,
    "NOT_EQUAL": np.not_equal,
    "POW": np.power,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "ROUND": np.rint,
    "RSQRT": lambda x: 1 / np.sqrt(np.maximum(x, _TINY)),
    "SELECT_V2": _select,
    "SIGN": np.sign,
    "SIN": np.sin,
    "SQRT": lambda x: np.sqrt(np.maximum(x, 0)),
    "SQUARE": np.square,
    "SQUARED_DIFFERENCE": lambda a, b: np.square(a - b),
    "SUB": np.subtract,
    "TANH": np.tanh,
}
"""By operator code. What lies outside a function's domain takes the nearest value inside it."""

_OPTIONS = {"GELU": ("approximate",), "LEAKY_RELU": ("alpha",)}

_FUSED = {"RELU": "RELU", "RELU6": "RELU6", "RELU_N1_TO_1": "RELU_N1_TO_1"}


def evaluates(code: str) -> bool:
    """Whether the operator is element-wise and known here."""
    return code in RULES or code == "CAST"


def apply(op: Operator, inputs: list[Array], dtype: str) -> Array:
    """The operator on arrays; dtype is that of its output ("float32" is computed in float64)."""
    wide = "float64" if dtype == "float32" else dtype
    with np.errstate(all="ignore"):
        if op.code == "CAST":
            return inputs[0].astype(wide)
        options: dict[str, Any] = {
            k: op.options[k] for k in _OPTIONS.get(op.code, ()) if k in op.options
        }
        result = RULES[op.code](*inputs, **options)
        fused = op.options.get("fused_activation_function", "NONE")
        if fused in _FUSED:
            result = RULES[_FUSED[fused]](result)
    return np.asarray(result, dtype=wide)


def evaluate(body: LiteGraph, *inputs: Array) -> Array:
    """The output of a graph of element-wise operators, on values that broadcast."""
    values: dict[str, Array] = {
        name: x.astype(np.float64) for name, x in zip(body.inputs, inputs, strict=True)
    }
    for op in body.operators:
        arrays = [values[name] if name in values else _constant(body, name) for name in op.inputs]
        values[op.outputs[0]] = apply(op, arrays, body.tensors[op.outputs[0]].dtype)
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    return np.broadcast_to(values[body.outputs[0]], shape)


def _constant(body: LiteGraph, name: str) -> Array:
    """A constant of one value, as a scalar."""
    tensor = body.tensors[name]
    assert tensor.data is not None
    value = tensor.data.reshape(-1)[:1].reshape(())
    return value.astype(np.float64) if tensor.dtype == "float32" else value
