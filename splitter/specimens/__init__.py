"""The smallest TFLite graphs whose one operator has wanted facts: to try a rule at its limit.

Decides shapes and options from facts by name ("stride_h": 4); what a limit is, and whether it is
right, is left to others. The graphs are quantized, so that a compiler takes them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from splitter.specimens import axes, elementwise, moves, products
from splitter.specimens.bench import Bench, Want
from splitter.tflite.types import LiteGraph

Builder = Callable[[Bench], LiteGraph]

BUILDERS: Mapping[str, Builder] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), products.convolution),
    "TRANSPOSE_CONV": products.transpose_convolution,
    "FULLY_CONNECTED": products.fully_connected,
    "BATCH_MATMUL": products.batch_matmul,
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), products.pool),
    **dict.fromkeys(
        (
            *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE"),
            *("POW", "FLOOR_DIV", "LOGICAL_AND", "LOGICAL_OR", *elementwise.COMPARISONS),
        ),
        elementwise.binary,
    ),
    **dict.fromkeys(("SELECT", "SELECT_V2"), elementwise.select),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY"),
        axes.reduce,
    ),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), axes.arg),
    "SOFTMAX": axes.softmax,
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), moves.resize),
    "TRANSPOSE": moves.transpose,
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), moves.pad),
    "SLICE": moves.slice_,
    "STRIDED_SLICE": moves.strided_slice,
    "CONCATENATION": moves.concatenation,
    "PACK": moves.pack,
    "UNPACK": moves.unpack,
    "RESHAPE": moves.reshape,
    "SQUEEZE": moves.squeeze,
    "EXPAND_DIMS": moves.expand_dims,
    **dict.fromkeys(("SPLIT", "SPLIT_V"), moves.split),
    "TILE": moves.tile,
    "BROADCAST_TO": moves.broadcast_to,
    "REVERSE_V2": moves.reverse,
    "GATHER": moves.gather,
    "GATHER_ND": moves.gather_nd,
    "SCATTER_ND": moves.scatter,
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), moves.blocks),
}
"""Builders by operator code; one-input element-wise operators need none of their own."""


def specimen(code: str, want: Want) -> LiteGraph:
    """A graph of one operator `code` with the wanted facts, everything else small and plain."""
    return BUILDERS.get(code, elementwise.unary)(Bench(code, want))


UNARY = elementwise.UNARY

__all__ = ["BUILDERS", "UNARY", "specimen"]
