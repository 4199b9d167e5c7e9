"""The version an operator must declare, from its code, types, ranks and options.

A runtime refuses an operator whose version it does not have, and an old board refuses one that is
higher than needed, so each operator declares the lowest version that covers what it uses. The
rules are those of TensorFlow Lite (tensorflow/compiler/mlir/lite/tools/versioning/op_version.cc),
for the types this project writes; the first rule that fits wins, else the version is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from splitter.tflite.types import Operator, Tensor


@dataclass(frozen=True)
class _Seen:
    """What a rule may look at: the operator with all options filled in, and its tensors."""

    op: Operator
    tensors: Mapping[str, Tensor]
    options: Mapping[str, Any]

    @cached_property
    def inputs(self) -> tuple[Tensor | None, ...]:
        return tuple(self.tensors[name] if name else None for name in self.op.inputs)

    def dtype(self, index: int) -> str:
        tensor = self.inputs[index] if index < len(self.inputs) else None
        return "" if tensor is None else tensor.dtype

    def rank(self, index: int) -> int:
        tensor = self.inputs[index] if index < len(self.inputs) else None
        return 0 if tensor is None else len(tensor.shape)

    @property
    def out(self) -> Tensor:
        return self.tensors[self.op.outputs[0]]


_Rule = tuple[int, Callable[[_Seen], bool]]


def operator_version(
    op: Operator, tensors: Mapping[str, Tensor], options: Mapping[str, Any]
) -> int:
    """The version to declare; `options` are the filled-in ones by schema name, enums as numbers."""
    seen = _Seen(op, tensors, options)
    if op.code == "BROADCAST_TO":  # version 1 was withdrawn by TensorFlow Lite
        return 3 if seen.dtype(0) in ("int8", "int16") else 2
    return next((version for version, fits in _RULES.get(op.code, ()) if fits(seen)), 1)


def _takes(*dtypes: str, at: int = 0) -> Callable[[_Seen], bool]:
    return lambda seen: seen.dtype(at) in dtypes


def _over_rank(rank: int) -> Callable[[_Seen], bool]:
    return lambda seen: seen.rank(0) > rank


def _set(*names: str) -> Callable[[_Seen], bool]:
    return lambda seen: any(bool(seen.options.get(name)) for name in names)


def _types(data: str, weights: str) -> Callable[[_Seen], bool]:
    """Data and output of one type, weights of another (or the same)."""
    return lambda seen: (
        seen.dtype(0) == data and seen.dtype(1) == weights and seen.out.dtype == data
    )


def _hybrid(seen: _Seen) -> bool:
    return _types("float32", "int8")(seen)


def _hybrid_per_channel(seen: _Seen) -> bool:
    weights = seen.inputs[1]
    quantization = None if weights is None else weights.quantization
    return _hybrid(seen) and quantization is not None and quantization.per_channel


def _bias_type(seen: _Seen) -> bool:
    """int16 by int8 with a stated type of the bias (FLOAT32, number 0, stands for "not stated")."""
    return bool(seen.options.get("quantized_bias_type")) and _types("int16", "int8")(seen)


def _transposed_bias_type(seen: _Seen) -> bool:
    """TRANSPOSE_CONV reads its data third: the shape comes first, the weights second."""
    return bool(seen.options.get("quantized_bias_type")) and seen.dtype(2) == "int16"


def _per_channel(seen: _Seen) -> bool:
    sides = (seen.inputs[0], seen.out)
    return any(t is not None and t.quantization and t.quantization.per_channel for t in sides)


def _grouped(seen: _Seen) -> bool:
    data, weights = seen.inputs[0], seen.inputs[1]
    return data is not None and weights is not None and data.shape[-1] != weights.shape[-1]


def _dilated(seen: _Seen) -> bool:
    return any(seen.options.get(f"dilation_{axis}_factor", 1) != 1 for axis in "hw")


def _broadcasts_over_rank_4(seen: _Seen) -> bool:
    shapes = [t.shape for t in seen.inputs if t is not None]
    return shapes[0] != shapes[1] and max(len(shape) for shape in shapes) > 4


def _plain_int16(seen: _Seen) -> bool:
    """int16 numbers that stand for themselves: no quantization parameters."""
    data = seen.inputs[0]
    return data is not None and data.dtype == "int16" and data.quantization is None


def _general_int16(seen: _Seen) -> bool:
    return seen.dtype(0) == "int16" and not seen.options.get("pot_scale_int16", True)


def _gain_of_one_or_more(seen: _Seen) -> bool:
    tensors = (seen.inputs[0], seen.inputs[1], seen.out)
    scales = [t.quantization.scale[0] for t in tensors if t is not None and t.quantization]
    return len(scales) == 3 and scales[0] * scales[1] / scales[2] >= 1.0


def _fused(seen: _Seen) -> bool:
    return bool(seen.options.get("fused_activation_function"))


def _full_lstm_int16(seen: _Seen) -> bool:
    return seen.dtype(0) == "int16" and seen.dtype(2) == "int8" and seen.out.dtype == "int16"


def _hybrid_lstm(seen: _Seen) -> bool:
    return seen.dtype(0) == "float32" and seen.dtype(2) == "int8"


def _both(*needs: Callable[[_Seen], bool]) -> Callable[[_Seen], bool]:
    return lambda seen: all(need(seen) for need in needs)


_INT8 = (2, _takes("int8"))
_INT8_INT16 = (2, _takes("int8", "int16"))
_INT16_THEN_INT8: tuple[_Rule, ...] = ((3, _takes("int16")), _INT8)
_POOL = _INT16_THEN_INT8
_RELU: tuple[_Rule, ...] = ((3, _takes("int16")), (2, _takes("int8", "uint8")))
_PAD: tuple[_Rule, ...] = (
    (5, _takes("bool")),
    (4, _over_rank(4)),
    (3, _takes("int16")),
    _INT8,
)
_BATCH_SPACE: tuple[_Rule, ...] = (
    (4, _takes("int16")),
    (3, lambda seen: seen.rank(0) != 4),
    _INT8,
)
_EXTREME: tuple[_Rule, ...] = (
    (4, _takes("int16")),
    (3, _broadcasts_over_rank_4),
    _INT8,
)
_ARG: tuple[_Rule, ...] = ((3, _takes("bool")), _INT8)

_RULES: Mapping[str, tuple[_Rule, ...]] = {
    "CONV_2D": (
        (8, _bias_type),
        (6, _grouped),
        (4, _types("int16", "int16")),
        (3, _types("int8", "int8")),
        (5, _hybrid_per_channel),
        (2, _hybrid),
    ),
    "DEPTHWISE_CONV_2D": (
        (5, _types("int16", "int16")),
        (6, _hybrid_per_channel),
        (4, _hybrid),
        (3, _types("int8", "int8")),
        (2, _dilated),
    ),
    "TRANSPOSE_CONV": (
        (5, _transposed_bias_type),
        (4, _fused),
        (3, lambda seen: bool(seen.dtype(3))),
        (2, _takes("int8", at=1)),
    ),
    "FULLY_CONNECTED": (
        (12, _hybrid_per_channel),
        (11, _bias_type),
        (7, _types("int16", "int16")),
        (6, lambda seen: len(seen.op.inputs) == 2),
        (5, _set("keep_num_dims")),
        (4, _types("int8", "int8")),
        (9, _both(_hybrid, _set("asymmetric_quantize_inputs"))),
        (3, _hybrid),
        (2, _set("weights_format")),
    ),
    "BATCH_MATMUL": (
        (3, _takes("int16")),
        _INT8,
        (4, _both(_hybrid, _set("asymmetric_quantize_inputs"))),
    ),
    "ADD": (
        (6, _takes("float16")),
        (5, _plain_int16),
        (4, _takes("int64")),
        (3, _general_int16),
        _INT8,
    ),
    "SUB": (
        (5, _general_int16),
        (4, _takes("int64")),
        (3, _broadcasts_over_rank_4),
        _INT8,
    ),
    "MUL": (
        (8, _takes("float16")),
        (7, lambda seen: _plain_int16(seen) or seen.dtype(0) == "uint32"),
        (6, _takes("complex64")),
        (5, _takes("int64")),
        (4, _takes("int16")),
        (3, _gain_of_one_or_more),
        _INT8,
    ),
    "DIV": ((2, _broadcasts_over_rank_4),),
    "MAXIMUM": _EXTREME,
    "MINIMUM": _EXTREME,
    "FLOOR_DIV": ((3, _takes("int8", "int16")), (2, _takes("float32"))),
    "FLOOR_MOD": (_INT8_INT16,),
    "ABS": (
        (5, _takes("int32")),
        (4, _plain_int16),
        (3, _takes("int16")),
        (2, _takes("int8", "uint8")),
    ),
    "RELU": _RELU,
    "RELU6": _INT16_THEN_INT8,
    "LEAKY_RELU": ((2, _takes("int16")),),
    "GELU": ((2, _takes("int8", "uint8")),),
    "TANH": _INT16_THEN_INT8,
    "LOGISTIC": _INT16_THEN_INT8,
    "SOFTMAX": _INT16_THEN_INT8,
    "LOG_SOFTMAX": (_INT8,),
    "EXP": (_INT8_INT16,),
    "LOG": (_INT8_INT16,),
    "SQRT": (_INT8_INT16,),
    "RSQRT": _INT16_THEN_INT8,
    "SIGN": ((2, _takes("int32")),),
    "SQUARED_DIFFERENCE": (_INT8,),
    "L2_NORMALIZATION": (_INT8,),
    "MEAN": _INT16_THEN_INT8,
    "SUM": (_INT8,),
    "REDUCE_PROD": (_INT8_INT16,),
    "REDUCE_MAX": _INT16_THEN_INT8,
    "REDUCE_MIN": _INT16_THEN_INT8,
    "MAX_POOL_2D": _POOL,
    "AVERAGE_POOL_2D": _POOL,
    "RESIZE_BILINEAR": ((4, _takes("int16")), (3, _set("half_pixel_centers")), _INT8),
    "RESIZE_NEAREST_NEIGHBOR": (
        (4, _takes("int16")),
        (3, _set("half_pixel_centers", "align_corners")),
        _INT8,
    ),
    "TRANSPOSE": (
        (8, _over_rank(6)),
        (6, _over_rank(5)),
        (5, _takes("int16")),
        (4, _over_rank(4)),
        (3, _takes("bool")),
        _INT8,
    ),
    "SPLIT": ((4, _takes("int16", at=1)), (3, _takes("int32", at=1)), (2, _takes("int8", at=1))),
    "SPLIT_V": (_INT8,),
    "CONCATENATION": ((4, _takes("uint32")), (3, _takes("int16")), _INT8),
    "PACK": (_INT8, (3, _takes("int16")), (4, _takes("uint32"))),
    "UNPACK": (
        (2, _takes("int8", "uint8")),
        (3, _takes("bool")),
        (4, _takes("int16")),
        (5, _takes("float16")),
    ),
    "SLICE": ((6, _takes("uint32")), (5, _over_rank(4)), (4, _takes("int16")), _INT8),
    "STRIDED_SLICE": (
        (8, _set("offset")),
        (7, _takes("uint32")),
        (6, _set("ellipsis_mask", "new_axis_mask")),
        (4, _over_rank(4)),
        (3, _takes("bool")),
        _INT8,
    ),
    "GATHER": (
        (6, _takes("int16", at=1)),
        (5, _set("batch_dims")),
        (4, _takes("int16")),
        (3, _takes("bool")),
        _INT8,
    ),
    "GATHER_ND": ((5, _takes("bool")), (4, _takes("int16", at=1)), (3, _takes("int16"))),
    "PAD": _PAD,
    "PADV2": _PAD,
    "MIRROR_PAD": _INT16_THEN_INT8,
    "TILE": ((3, _takes("int8")),),
    "REVERSE_V2": ((3, _takes("int8")), (2, _takes("bool"))),
    "SPACE_TO_BATCH_ND": _BATCH_SPACE,
    "BATCH_TO_SPACE_ND": _BATCH_SPACE,
    "SPACE_TO_DEPTH": (_INT8,),
    "DEPTH_TO_SPACE": (_INT8,),
    "TOPK_V2": (
        (3, lambda seen: "int16" in (seen.dtype(0), seen.tensors[seen.op.outputs[1]].dtype)),
        _INT8,
    ),
    "ARG_MAX": _ARG,
    "ARG_MIN": _ARG,
    "SELECT": (
        (4, _takes("uint32")),
        (3, lambda seen: 5 in (seen.rank(0), seen.rank(1), seen.rank(2))),
        _INT8,
    ),
    "SELECT_V2": ((2, _takes("uint32")),),
    "LESS": _INT16_THEN_INT8,
    "GREATER_EQUAL": _INT16_THEN_INT8,
    "GREATER": (_INT8,),
    "LESS_EQUAL": (_INT8,),
    "EQUAL": ((5, _takes("int16")), _INT8),
    "NOT_EQUAL": ((4, _takes("int16")), _INT8),
    "CAST": (
        (5, lambda seen: {"float16", "float64"} & {seen.dtype(0), seen.out.dtype} != set()),
        (4, lambda seen: "uint16" in (seen.dtype(0), seen.out.dtype)),
        (3, lambda seen: "int8" in (seen.dtype(0), seen.out.dtype)),
        (2, lambda seen: "uint32" in (seen.dtype(0), seen.out.dtype)),
    ),
    "QUANTIZE": ((3, _per_channel), (2, lambda seen: seen.out.dtype == "int16")),
    "DEQUANTIZE": (
        (3, _takes("int16", "float16")),
        (5, _both(_takes("int8"), _per_channel)),
        _INT8,
    ),
    "FILL": (
        (4, _takes("float16", at=1)),
        (3, _takes("int8", "int16", at=1)),
        (2, _takes("bool", at=1)),
    ),
    "RANGE": ((2, _takes("int64")),),
    "WHERE": ((2, lambda seen: seen.dtype(0) != "bool"),),
    "DYNAMIC_UPDATE_SLICE": (
        (4, _takes("int16")),
        (3, _takes("float16")),
        (2, _takes("int64", at=2)),
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        (5, _full_lstm_int16),
        (4, _set("diagonal_recurrent_tensors")),
        (3, _both(_hybrid_lstm, _set("asymmetric_quantize_inputs"))),
        (2, _hybrid_lstm),
    ),
}
