"""What can be asked of a TFLite operator: named facts, multiply-accumulates, bytes moved.

Decides nothing and knows no target: a rule file says which values a target takes. Each operator
family is one table of named facts, `FACTS` joins them by operator code. A fact that cannot be read
is "unknown"; a fact about quantization parameters is left out while there are none (float graphs).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod

from splitter.tflite import extents
from splitter.tflite.fact import Fact, Family, Read, Value, option
from splitter.tflite.parameters import QUANTIZATION
from splitter.tflite.types import LiteGraph, Operator
from splitter.tflite.view import UNKNOWN, View
from splitter.tflite.windows import CONV, TRANSPOSED, WEIGHTED, WINDOW
from splitter.tflite.work import macs, matmul_depth, moved_bytes, tensor_bytes

__all__ = [
    "COMMON",
    "Fact",
    "Value",
    "fact",
    "facts",
    "family",
    "macs",
    "moved_bytes",
    "tensor_bytes",
]


NARROW = ("int8", "uint8", "int16")
"""Types that `quantize` gives with parameters always."""


def _dtypes(view: View) -> Value:
    return tuple(sorted({tensor.dtype for tensor in view.activations}))


def _batch(view: View) -> Value:
    return view.shape[0] if view.shape else 1


COMMON: Family = {
    "dtypes": Fact(_dtypes, "types of the data inputs and outputs"),
    "input_dtype": Fact(lambda v: v.data[0].dtype if v.data else "none", "type of the first one"),
    "static": Fact(
        lambda v: all(d > 0 for t in v.activations for d in t.shape), "all dimensions are fixed"
    ),
    "rank": Fact(lambda v: max((len(t.shape) for t in v.activations), default=0), "largest rank"),
    "input_rank": Fact(lambda v: len(v.shape), "rank of the first data input"),
    "output_rank": Fact(lambda v: len(v.out_shape), "rank of the output"),
    "batch": Fact(_batch, "first dimension of the first data input"),
    "leading": Fact(
        lambda v: max((extents.aligned(t.shape)[0] for t in v.data), default=1),
        "product of a data input's dimensions before the last three",
    ),
    "channels": Fact(lambda v: v.dim(-1), "last dimension of the first data input"),
    "elements": Fact(lambda v: prod(v.out_shape), "elements of the output"),
    "max_dimension": Fact(
        lambda v: max((d for t in v.activations for d in t.shape), default=1), "largest dimension"
    ),
    "data_constant": Fact(
        lambda v: any(t.data is not None for t in v.data), "a data input is a constant"
    ),
    "parameters": Fact(
        lambda v: all(t.quantization is not None or t.dtype in NARROW for t in v.activations),
        "all data tensors have quantization parameters, or will have",
    ),
    "same_dtype": Fact(
        lambda v: len({t.dtype for t in v.activations}) == 1, "inputs and outputs have one type"
    ),
    "scalar": Fact(
        lambda v: any(not t.shape and t.data is None for t in v.activations),
        "a data tensor that is not constant has no dimension",
    ),
    "fused_activation": option("fused_activation_function", "NONE", "fused activation"),
    **QUANTIZATION,
}


MATMUL: Family = {
    "right_constant": Fact(lambda v: v.data[-1].data is not None, "the right side is a constant"),
    "adj_x": option("adj_x", False, "left side transposed"),
    "adj_y": option("adj_y", False, "right side transposed"),
    "columns": Fact(lambda v: v.out_shape[-1] if v.out_shape else 1, "columns of the output"),
    "depth": Fact(lambda v: matmul_depth(v), "length of the sums"),
}


def _broadcast(view: View) -> Value:
    """ "none": equal shapes; "one": one input has the output's size; "both": neither has."""
    sizes = [tensor.elements for tensor in view.data]
    if all(size == prod(view.out_shape) for size in sizes):
        return "none"
    return "one" if prod(view.out_shape) in sizes else "both"


BINARY: Family = {
    "broadcast": Fact(_broadcast, "none | one (an input has the output's size) | both"),
    "right_constant": Fact(lambda v: v.data[-1].data is not None, "the second input is a constant"),
    "right_vector": Fact(
        lambda v: v.data[-1].elements == max(v.data[-1].shape[-1:], default=1),
        "all dimensions of the second input but the last are 1",
    ),
    "input_full": Fact(
        lambda v: any(t.shape == v.out_shape for t in v.data), "an input has the output's shape"
    ),
}


def _axes(view: View) -> tuple[int, ...] | None:
    axes = view.constant(1)
    rank = len(view.shape)
    return None if axes is None else tuple(sorted(axis % rank for axis in axes))


def _reduced(view: View) -> Value:
    axes = _axes(view)
    return UNKNOWN if axes is None else prod(view.shape[axis] for axis in axes)


REDUCE: Family = {
    "axes_constant": Fact(lambda v: _axes(v) is not None, "the axes are constant"),
    "axes": Fact(lambda v: UNKNOWN if (a := _axes(v)) is None else str(list(a)), "reduced axes"),
    "keep_dims": option("keep_dims", False, "reduced axes stay as 1"),
    "reduced_elements": Fact(_reduced, "elements that go into one result"),
    **extents.REDUCED,
}

SOFTMAX: Family = {
    "rows": Fact(lambda v: prod(v.shape[:-1]), "product of all dimensions but the last"),
    "beta": option("beta", 1.0, "factor in the exponent"),
    **extents.PLANE,
}


def _factor(axis: int) -> Read:
    def read(view: View) -> Value:
        if len(view.shape) != 4:
            return UNKNOWN
        before, after = view.shape[axis], view.out_shape[axis]
        if view.op.options.get("align_corners", False) and before > 1:
            before, after = before - 1, after - 1
        return after // before if after % before == 0 else after / before

    return read


RESIZE: Family = {
    "factor_h": Fact(_factor(1), "output / input height, (o-1)/(i-1) with align_corners"),
    "factor_w": Fact(_factor(2), "output / input width, (o-1)/(i-1) with align_corners"),
    "align_corners": option("align_corners", False, "corners aligned"),
    "half_pixel": option("half_pixel_centers", False, "pixel centers at half"),
    **extents.RESIZED,
}


def _permutation(view: View) -> Value:
    perm = view.constant(1)
    return UNKNOWN if perm is None else str(list(perm))


def _pads_channels(view: View) -> Value:
    pads = view.constant(1)
    return UNKNOWN if pads is None else any(pads[-2:])


def _pads_leading(view: View) -> Value:
    pads = view.constant(1)
    return UNKNOWN if pads is None else any(pads[: max(len(pads) - 6, 0)])


def _unit_step(view: View) -> Value:
    steps = view.constant(3)
    return UNKNOWN if steps is None else all(step == 1 for step in steps)


def _parameters_constant(view: View) -> Value:
    return all(view.graph.is_constant(name) for name in view.op.inputs[1:] if name)


_CONSTANT = Fact(_parameters_constant, "all inputs but the data are constant")
_AXIS = option("axis", 0, "axis")
_INPUTS = Fact(lambda v: len(v.data), "number of data inputs")

TRANSPOSE: Family = {
    "permutation": Fact(_permutation, 'order of the axes, like "[0, 2, 1]"'),
    "parameters_constant": _CONSTANT,
    **extents.MOVED,
}
PAD: Family = {
    "parameters_constant": _CONSTANT,
    "pads_channels": Fact(_pads_channels, "the last axis is padded"),
    "pads_leading": Fact(_pads_leading, "an axis before the last three is padded"),
}
SLICE: Family = {"parameters_constant": _CONSTANT}
STRIDED_SLICE: Family = {
    "parameters_constant": _CONSTANT,
    "unit_step": Fact(_unit_step, "every step is 1"),
    **extents.STEPS,
    "ellipsis_mask": option("ellipsis_mask", 0, "ellipsis mask"),
    "new_axis_mask": option("new_axis_mask", 0, "new-axis mask"),
    "shrink_axis_mask": option("shrink_axis_mask", 0, "shrink-axis mask"),
}
CONCATENATION: Family = {"axis": _AXIS, "inputs": _INPUTS}
SPLIT: Family = {"parts": Fact(lambda v: len(v.op.outputs), "number of outputs")}
GATHER: Family = {
    "axis": _AXIS,
    "batch_dims": option("batch_dims", 0, "leading dimensions in common"),
    "indices_constant": Fact(
        lambda v: len(v.data) > 1 and v.data[1].data is not None, "the indices are constant"
    ),
    "indices_rank": Fact(lambda v: len(v.data[1].shape) if len(v.data) > 1 else 0, "their rank"),
    **extents.GATHERED,
}
PARAMETRIC: Family = {"parameters_constant": _CONSTANT}

_BINARY_CODES = (
    *("ADD", "SUB", "MUL", "DIV", "POW", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM"),
    *("SQUARED_DIFFERENCE", "PRELU", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS"),
    *("LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR"),
)
_REDUCE_CODES = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL")

_FAMILIES: Mapping[str, Family] = {
    "CONV_2D": CONV,
    "DEPTHWISE_CONV_2D": CONV,
    "TRANSPOSE_CONV": TRANSPOSED,
    "FULLY_CONNECTED": WEIGHTED,
    "BATCH_MATMUL": MATMUL,
    **dict.fromkeys(_BINARY_CODES, BINARY),
    **dict.fromkeys((*_REDUCE_CODES, "REDUCE_ANY", "ARG_MAX", "ARG_MIN"), REDUCE),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), WINDOW),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), SOFTMAX),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), RESIZE),
    "TRANSPOSE": TRANSPOSE,
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), PAD),
    "SLICE": SLICE,
    "STRIDED_SLICE": STRIDED_SLICE,
    **dict.fromkeys(("CONCATENATION", "PACK"), CONCATENATION),
    **dict.fromkeys(("SPLIT", "SPLIT_V", "UNPACK"), SPLIT),
    "GATHER": GATHER,
    "SCATTER_ND": extents.SCATTERED,
    **dict.fromkeys(
        ("RESHAPE", "TILE", "BROADCAST_TO", "EXPAND_DIMS", "SQUEEZE", "REVERSE_V2"), PARAMETRIC
    ),
}


@cache
def family(code: str) -> Family:
    """All facts of an operator code; every code has at least the common ones."""
    return {**COMMON, **_FAMILIES.get(code, {})}


def fact(view: View, name: str) -> Value | None:
    """One fact of an operator, None when it speaks of quantization that is not there."""
    return family(view.op.code)[name].read(view)


def facts(graph: LiteGraph, op: Operator) -> dict[str, Value]:
    """The facts of one operator by name, without those about absent quantization."""
    view = View(graph, op)
    read = {name: entry.read(view) for name, entry in family(op.code).items()}
    return {name: value for name, value in read.items() if value is not None}
