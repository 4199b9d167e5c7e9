"""What can be asked of an ONNX operator: the named facts that rule files in that dialect use.

Decides nothing and knows no target. Each operator family is a table of named facts; a fact that
cannot be read is "unknown", which satisfies no rule. Letters name axes of the aligned shape:
n, c, h, w (see `view`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np
from onnx.defs import get_all_schemas

from splitter.rules.dialect.moves import GATHER, PAD, RESIZE, SLICE, SPLIT, TRANSPOSE
from splitter.rules.dialect.table import Fact, Family, Value
from splitter.rules.dialect.view import UNKNOWN, NodeView, aligned
from splitter.rules.dialect.windows import CONV, CONV_TRANSPOSE, GLOBAL_POOL, POOL

__all__ = ["ALIASES", "COMMON", "Fact", "Value", "fact", "facts", "family", "operator_name"]


def _dtypes(view: NodeView) -> Value:
    return tuple(sorted({view.origin.values[name].dtype for name in view.activations}))


def _shapes(view: NodeView) -> list[tuple[int, ...]]:
    return [view.origin.shape(name) for name in view.activations]


COMMON: Family = {
    "dtypes": Fact(_dtypes, "ONNX types of the inputs that are not constant, and outputs"),
    "rank": Fact(lambda v: max((len(s) for s in _shapes(v)), default=0), "largest rank"),
    "input_rank": Fact(lambda v: len(v.shape()), "rank of the first input"),
    "output_rank": Fact(lambda v: len(v.out), "rank of the output"),
    "batch": Fact(lambda v: v.shape()[0] if v.shape() else 1, "first dimension of the first input"),
    "elements": Fact(lambda v: prod(v.out), "elements of the output"),
    "max_dimension": Fact(
        lambda v: max((d for s in _shapes(v) for d in s), default=1), "largest dimension"
    ),
    "non_singleton": Fact(
        lambda v: max((sum(d > 1 for d in s) for s in _shapes(v)), default=0),
        "most dimensions over 1 of a tensor",
    ),
    "variable_inputs": Fact(lambda v: len(v.variable), "inputs that are not constant"),
    "data_constant": Fact(lambda v: v.is_constant(0), "the first input is a constant"),
    "right_constant": Fact(lambda v: v.is_constant(1), "the second input is a constant"),
}

LETTERS = "bchw"


def _operands(view: NodeView) -> range:
    """Inputs that are broadcast: not the shape that Expand is given."""
    return range(1 if view.node.op == "Expand" else len(view.node.inputs))


def _broadcast(view: NodeView) -> Value:
    """Which axes the smaller inputs have: "none" when all are full, "scalar", or like "bc1w"."""
    out = aligned(view.out)
    kinds = set()
    for index in _operands(view):
        shape = view.shape(index)
        if prod(shape) == 1 and prod(out) > 1:
            kinds.add("scalar")
            continue
        mine = aligned(shape)
        letters = "".join(LETTERS[i] if mine[i] == out[i] else "1" for i in range(4))
        kinds.add(letters)
    kinds.discard(LETTERS)
    return "none" if not kinds else kinds.pop() if len(kinds) == 1 else "both"


def _repeated(view: NodeView) -> Value:
    """The longest axis along which an input is repeated."""
    out = aligned(view.out)
    longest = 1
    for index in _operands(view):
        pairs = zip(aligned(view.shape(index)), out, strict=True)
        longest = max(longest, *(b for a, b in pairs if a != b), 1)
    return longest


BROADCAST: Family = {
    "broadcast": Fact(
        _broadcast, 'none, scalar, both, or the axes of the smaller input, as "bc1w"'
    ),
    "repeated": Fact(_repeated, "the longest axis along which an input is repeated"),
}


def _exponent(view: NodeView) -> Value:
    data = view.constant(1)
    if data is None or data.size != 1:
        return UNKNOWN
    value = float(data.reshape(-1)[0])
    return int(value) if value == int(value) else value


def _right_elements(view: NodeView) -> Value:
    return prod(view.shape(1))


POW: Family = {
    "exponent": Fact(_exponent, "the exponent, where it is one constant"),
    "right_elements": Fact(_right_elements, "elements of the exponent"),
}


def _from_end(view: NodeView) -> Value:
    return view.axis(-1) - len(view.shape())


def _aligned_axis(view: NodeView) -> Value:
    return 4 + view.axis(-1) - len(view.shape())


AXIS: Family = {
    "axis": Fact(_aligned_axis, "the axis of the aligned shape: 0 n, 1 c, 2 h, 3 w"),
    "axis_from_end": Fact(_from_end, "the axis counted from the end: -1 w, -2 h, -3 c"),
    "axis_length": Fact(
        lambda v: v.shape()[v.axis(-1)] if v.shape() else 1, "length along the axis"
    ),
}

NORM: Family = {
    **AXIS,
    "last_axis": Fact(lambda v: _from_end(v) == -1, "the last axis alone"),
    "scale_elements": Fact(lambda v: prod(v.shape(1)) if v.name(1) else 1, "elements of the scale"),
}


def _axes_text(view: NodeView) -> Value:
    axes = view.axes()
    rank = len(view.shape())
    return UNKNOWN if axes is None else str([axis - rank for axis in axes])


REDUCE: Family = {
    "axes_from_end": Fact(_axes_text, 'axes counted from the end, like "[-2, -1]"'),
    "keepdims": Fact(lambda v: bool(v.node.attrs.get("keepdims", 1)), "reduced axes stay as 1"),
}


def _depth(view: NodeView) -> Value:
    return view.shape()[-1] if view.shape() else 1


MATMUL: Family = {
    "depth": Fact(_depth, "length of the sums"),
    "columns": Fact(lambda v: v.out[-1] if v.out else 1, "columns of the result"),
}


def _bound(index: int) -> Callable[[NodeView], Value]:
    def read(view: NodeView) -> Value:
        if not view.name(index):
            return -np.inf if index == 1 else np.inf
        data = view.constant(index)
        return UNKNOWN if data is None else float(data.reshape(-1)[0])

    return read


RECURRENT: Family = {
    "batch_size": Fact(lambda v: v.shape()[1] if len(v.shape()) > 1 else 1, "sequences at once")
}

CLIP: Family = {
    "minimum": Fact(_bound(1), "lower bound"),
    "maximum": Fact(_bound(2), "upper bound"),
}


def _attribute(name: str, default: Any, says: str) -> Fact:
    return Fact(lambda view: view.node.attrs.get(name, default), says)


GRID_SAMPLE: Family = {
    "mode": _attribute("mode", "linear", "interpolation"),
    "padding_mode": _attribute("padding_mode", "zeros", "what lies outside"),
}
TOP_K: Family = {
    **AXIS,
    "k_constant": Fact(lambda v: v.is_constant(1), "K is a constant"),
    "sorted": Fact(lambda v: bool(v.node.attrs.get("sorted", 1)), "results are sorted"),
}
ARG: Family = {
    **AXIS,
    "keepdims": REDUCE["keepdims"],
    "select_last_index": Fact(
        lambda v: bool(v.node.attrs.get("select_last_index", 0)), "the last of equals"
    ),
}
ATTENTION: Family = {
    "q_channels": Fact(lambda v: _projected(v, 0), "channels of a query, all heads together"),
    "v_channels": Fact(lambda v: _projected(v, -1), "channels of a value, all heads together"),
}


def _projected(view: NodeView, which: int) -> Value:
    """Channels of the first product's left side, or of the last one's right side, times heads."""
    products = [node for node in view.group if node.op == "MatMul"]
    if len(products) < 2:
        return UNKNOWN
    node = products[which]
    shape = view.origin.shape(node.inputs[0] if which == 0 else node.inputs[1])
    return shape[-1] * (shape[-3] if len(shape) > 3 else 1)


_BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Expand", "Where", "PRelu", "Mod")
_NORMS = ("LayerNormalization", "RMSNormalization", "InstanceNormalization")
_REDUCTIONS = (
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)

_FAMILIES: Mapping[str, Family] = {
    "Conv": CONV,
    "ConvTranspose": CONV_TRANSPOSE,
    **dict.fromkeys(("MaxPool", "AveragePool"), POOL),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), GLOBAL_POOL),
    **dict.fromkeys(("MatMul", "Gemm"), MATMUL),
    **dict.fromkeys((*_BINARY, "Equal", "Greater", "Less", "And", "Or"), BROADCAST),
    "Pow": {**BROADCAST, **POW},
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "Concat", "CumSum"), AXIS),
    **dict.fromkeys(_NORMS, NORM),
    **dict.fromkeys(_REDUCTIONS, REDUCE),
    **dict.fromkeys(("ArgMax", "ArgMin"), ARG),
    "Clip": CLIP,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), RECURRENT),
    "GridSample": GRID_SAMPLE,
    "TopK": TOP_K,
    "Transpose": TRANSPOSE,
    "Slice": SLICE,
    "Split": {**AXIS, **SPLIT},
    "Pad": PAD,
    "Gather": GATHER,
    "Resize": RESIZE,
    "Attention": ATTENTION,
}

ALIASES: Mapping[tuple[str, str], str] = {
    ("ReduceMean", "[-2, -1]"): "GlobalAveragePool",
    ("ReduceMax", "[-2, -1]"): "GlobalMaxPool",
}
"""Canonical forms of `normalize` that vendors know by another name: rank 4, dimensions kept."""


@cache
def family(op: str) -> Family:
    """All facts of an operator; every operator has at least the common ones."""
    return {**COMMON, **_FAMILIES.get(op, {})}


@cache
def known_operators() -> frozenset[str]:
    """Names of the operators of ONNX."""
    return frozenset(schema.name for schema in get_all_schemas() if not schema.domain)


def operator_name(view: NodeView) -> str:
    """The operator as a rule file names it."""
    op = view.node.op
    if op in ("ReduceMean", "ReduceMax") and len(view.shape()) == 4:
        kept = bool(view.node.attrs.get("keepdims", 1))
        return ALIASES.get((op, str(_axes_text(view))), op) if kept else op
    return op


def fact(view: NodeView, op: str, name: str) -> Value:
    """One fact of a node judged as `op`."""
    return family(op)[name].read(view)


def facts(view: NodeView, op: str) -> dict[str, Value]:
    """All facts of a node judged as `op`."""
    return {name: entry.read(view) for name, entry in family(op).items()}
