"""Builtin options by name: a `LiteGraph` operator's options <-> the tables of the TFLite schema.

Decides which options table an operator code has, what its enum fields are called, and what is
filled in when a lowering leaves it out (types and counts that follow from the tensors, and the
defaults the schema has but no kernel can use: a stride of 0, a Softmax beta of 0). Leaves the
meaning of every other option to whoever sets it. Source: schema.fbs of LiteRT, as generated into
`ai_edge_litert.schema_py_generated`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from splitter.diagnostics import nearest
from splitter.tflite.codes import CODES
from splitter.tflite.types import Operator, Tensor

CUSTOM_OPTIONS = "custom_options"
"""Option name of a CUSTOM operator's own bytes."""

INTERMEDIATES = "intermediates"
"""Option name of an integer LSTM's intermediate tensors: a tuple of tensor names."""

_IRREGULAR = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "MULTINOMIAL": "RandomOptions",
}
"""Operators whose table is not named after them."""

_ENUMS: Mapping[str, Any] = {
    "padding": schema.Padding,
    "fused_activation_function": schema.ActivationFunctionType,
    "weights_format": schema.FullyConnectedOptionsWeightsFormat,
    "kernel_type": schema.LSTMKernelType,
    "combiner": schema.CombinerType,
    "type": schema.LSHProjectionType,
    "mode": schema.MirrorPadMode,
    "reduce_function": schema.ReduceWindowFunction,
    "in_data_type": schema.TensorType,
    "out_data_type": schema.TensorType,
    "output_type": schema.TensorType,
    "out_type": schema.TensorType,
    "idx_out_type": schema.TensorType,
    "quantized_bias_type": schema.TensorType,
    "key_dtype": schema.TensorType,
    "value_dtype": schema.TensorType,
}
"""Fields that hold a value of an enum, by their schema names."""

_UNUSABLE_ZERO = {
    "stride_w": 1,
    "stride_h": 1,
    "stride_d": 1,
    "filter_width": 1,
    "filter_height": 1,
    "block_size": 1,
    "beta": 1.0,
}
"""Fields whose schema default is 0 and makes a kernel divide by zero; what is written instead."""


@dataclass(frozen=True)
class Packed:
    """Options ready for the file: the union's tag and the object, in the first or second union."""

    tag: int
    table: Any
    second: bool = False


def code_number(code: str) -> int:
    """The schema's number of an operator code. ValueError for a code it does not have."""
    if code not in CODES:
        raise ValueError(f"no TFLite operator {code}; {nearest(code, CODES)}")
    return int(getattr(schema.BuiltinOperator, code))


@cache
def code_name(number: int) -> str | None:
    """The operator code with this number, None when the schema does not have it."""
    return _enum_names(schema.BuiltinOperator).get(number)


def option_names(code: str) -> tuple[str, ...]:
    """Names of the options that an operator code takes."""
    table = _table(code)
    return () if table is None else tuple(_fields(table.name))


def pack(op: Operator, tensors: Mapping[str, Tensor]) -> Packed | None:
    """The options of a builtin operator, filled in. None for an operator without a table.

    ValueError (a bug of the caller) for an option or enum value that the schema does not know.
    """
    given = {name: value for name, value in op.options.items() if name != INTERMEDIATES}
    table = _table(op.code)
    fields = {} if table is None else _fields(table.name)
    for name in given:
        if name not in fields:
            valid = f"; {nearest(name, fields)}" if fields else "; it takes none"
            raise ValueError(f"{op.code} has no option {name}{valid}")
    if table is None:
        return None
    made = getattr(schema, table.name + "T")()
    for name, value in {**_derived(op, fields, tensors), **given}.items():
        setattr(made, fields[name], _encode(op.code, name, value))
    for name, usable in _UNUSABLE_ZERO.items():
        if name in fields and not getattr(made, fields[name]):
            setattr(made, fields[name], usable)
    return Packed(table.tag, made, table.second)


def unpack(tag: int, table: Any, *, second: bool = False) -> dict[str, Any]:
    """The options of a file's operator by name; absent vectors are left out."""
    creator = schema.BuiltinOptions2Creator if second else schema.BuiltinOptionsCreator
    made = creator(tag, table)
    if made is None:
        return {}
    decoded = {snake(name): _decode(snake(name), value) for name, value in vars(made).items()}
    return {name: value for name, value in decoded.items() if value is not None}


@cache
def snake(name: str) -> str:
    """The schema's own name of a field of the generated classes: strideW -> stride_w."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])", r"_\1\2", name).lower()


@dataclass(frozen=True)
class _Table:
    name: str
    tag: int
    second: bool


@cache
def _table(code: str) -> _Table | None:
    wanted = _IRREGULAR.get(code, code.replace("_", "") + "Options").lower()
    for union, second in ((schema.BuiltinOptions, False), (schema.BuiltinOptions2, True)):
        for tag, name in _enum_names(union).items():
            if name.lower() == wanted:
                return _Table(name, tag, second)
    return None


@cache
def _fields(table: str) -> dict[str, str]:
    return {snake(name): name for name in vars(getattr(schema, table + "T")())}


@cache
def _enum_names(enum: Any) -> dict[int, str]:
    return {number: name for name, number in vars(enum).items() if not name.startswith("_")}


def _encode(code: str, name: str, value: Any) -> Any:
    if name in _ENUMS and isinstance(value, str):
        names = _enum_names(_ENUMS[name]).values()
        if value not in names:
            raise ValueError(f"{code}.{name} has no value {value}; {nearest(value, names)}")
        return getattr(_ENUMS[name], value)
    if isinstance(value, np.ndarray | tuple | list):
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _decode(name: str, value: Any) -> Any:
    if name in _ENUMS and isinstance(value, int):
        return _enum_names(_ENUMS[name]).get(value, value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def _derived(
    op: Operator, fields: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    """Options that follow from the tensors, for those that the operator does not give."""
    first = tensors.get(op.inputs[0]) if op.inputs else None
    result = tensors.get(op.outputs[0]) if op.outputs else None
    if first is None or result is None:
        return {}
    known: dict[str, Any] = {
        "in_data_type": first.dtype.upper(),
        "out_data_type": result.dtype.upper(),
        "output_type": result.dtype.upper(),
        "out_type": result.dtype.upper(),
        "idx_out_type": tensors[op.outputs[-1]].dtype.upper(),
        "new_shape": result.shape,
        "num_splits": len(op.outputs),
        "num": len(op.outputs),
        "values_count": len(op.inputs),
        # Schema default true; a kernel then takes int16 scales for powers of two where they are.
        "pot_scale_int16": first.dtype != "int16",
    }
    if op.code == "DEPTHWISE_CONV_2D":
        known["depth_multiplier"] = tensors[op.inputs[1]].shape[-1] // first.shape[-1]
    return {name: value for name, value in known.items() if name in fields}
