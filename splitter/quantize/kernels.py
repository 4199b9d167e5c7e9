"""What the TFLite integer kernels ask of their tensors, one entry an operator.

Sources: the TFLite 8-bit quantization specification (fixed output parameters, same-scale
operators, bias scale) and which kernels exist in which type, measured on ai-edge-litert 2.3.0
(docs/kernels.md). Decides nothing about a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.ops.boxes import PICKS

Fixed = tuple[float, int]
"""(scale, zero point) that a kernel writes whatever the range."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Integer behavior of one operator.

    data:   indices of the inputs that carry quantized values; the others are parameters (axes,
            shapes, indices) and stay as they are. (-1,) means all.
    same:   inputs and output must have equal scale and zero point.
    fixed8, fixed16: output parameters that the kernel demands in int8 and int16.
    int8, int16: whether a kernel exists.
    weighted: it has a constant weight (per-channel int8) and perhaps a bias.
    places: where a weighted operator has its data, its weight and its bias.
    """

    data: tuple[int, ...] = (-1,)
    same: bool = False
    fixed8: Fixed | None = None
    fixed16: Fixed | None = None
    int8: bool = True
    int16: bool = True
    weighted: bool = False
    places: tuple[int, int, int] = (0, 1, 2)


FUNCTION = "FUNCTION"
"""Not of TFLite: a function of one tensor in several float operators, kept in its option `body`."""

_MOVE = Kernel(data=(0,), same=True)
_ALL_SAME = Kernel(same=True)
_UNARY = Kernel(data=(0,))
# LOG, SQRT, RSQRT and GELU exist in 16 bits, between 513 points: near 0, where they are steep, a
# table of all values is what 16 bits are asked for; and tflite_runtime 2.14 has none of them.
_NO16 = Kernel(data=(0,), int16=False)
_TABLE = Kernel(data=(0,), int8=False, int16=False)

KERNELS: Mapping[str, Kernel] = {
    **dict.fromkeys(("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE"), Kernel()),
    "SQUARED_DIFFERENCE": Kernel(int16=False),
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "CONCATENATION", "PACK"), _ALL_SAME),
    "SELECT_V2": Kernel(data=(1, 2), same=True),
    **dict.fromkeys(
        (
            "RESHAPE",
            "TRANSPOSE",
            "SLICE",
            "STRIDED_SLICE",
            "GATHER",
            "GATHER_ND",
            "SPLIT_V",
            "TILE",
            "BROADCAST_TO",
            "SQUEEZE",
            "EXPAND_DIMS",
            "UNPACK",
            "REVERSE_V2",
            "PAD",
            "REVERSE_SEQUENCE",
            "MIRROR_PAD",
            "TOPK_V2",
            "REDUCE_MAX",
            "REDUCE_MIN",
            "MAX_POOL_2D",
            "AVERAGE_POOL_2D",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
        ),
        _MOVE,
    ),
    **dict.fromkeys(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"), Kernel((0,), same=True, int16=False)),
    "SPLIT": Kernel(data=(1,), same=True),
    "PADV2": Kernel(data=(0, 2), same=True),
    "SCATTER_ND": Kernel(data=(1,), same=True, int16=False),
    **dict.fromkeys(
        ("RELU", "RELU6", "LEAKY_RELU", "EXP", "ABS", "MEAN", "SUM", "REDUCE_PROD"),
        _UNARY,
    ),
    **dict.fromkeys(("LOG", "SQRT", "RSQRT", "GELU"), _NO16),
    "RELU_N1_TO_1": _NO16,
    "NEG": Kernel(),
    "PRELU": Kernel(data=(0, 1)),
    "HARD_SWISH": _NO16,
    "ELU": _NO16,
    "L2_NORMALIZATION": Kernel((0,), fixed8=(1 / 128, 0), int16=False),
    "LOGISTIC": Kernel((0,), fixed8=(1 / 256, -128), fixed16=(1 / 32768, 0)),
    "TANH": Kernel((0,), fixed8=(1 / 128, 0), fixed16=(1 / 32768, 0)),
    "SOFTMAX": Kernel((0,), fixed8=(1 / 256, -128), fixed16=(1 / 32768, 0)),
    "LOG_SOFTMAX": Kernel((0,), fixed8=(16 / 256, 127), int16=False),
    **dict.fromkeys(
        ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"), Kernel(data=(0,), weighted=True)
    ),
    "TRANSPOSE_CONV": Kernel(data=(2,), weighted=True, places=(2, 1, 3)),
    "BATCH_MATMUL": Kernel(data=(0, 1)),
    **dict.fromkeys(("SIN", "COS", "FLOOR", "CEIL", "ROUND", "SQUARE"), _TABLE),
    **dict.fromkeys(("POW", "DIV", "ATAN2", "FLOOR_MOD", "FLOOR_DIV", FUNCTION), _TABLE),
    **dict.fromkeys(
        ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), Kernel()
    ),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _NO16),
    PICKS: Kernel(),
}


YOUNG16 = frozenset(("NEG", "PRELU", "TILE"))
"""Operators of 16 bits, of those written here, that ai-edge-litert 2.3.0 has and tflite_runtime
2.14.0, the last one on PyPI, has not. One-operator models were run in both."""


def data_inputs(code: str, count: int) -> tuple[int, ...]:
    """Indices of the inputs that carry quantized values."""
    data = KERNELS[code].data
    return tuple(range(count)) if data == (-1,) else tuple(i for i in data if i < count)


def needs_table(code: str, bits: int) -> bool:
    """Whether an operator that writes values of `bits` has no kernel for it: a look-up does it."""
    kernel = KERNELS[code]
    return not (kernel.int8 if bits == 8 else kernel.int16)
