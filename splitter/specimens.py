"""The smallest TFLite graphs whose one operator has wanted facts: to try a rule at its limit.

Decides shapes and options from facts by name ("stride_h": 4); what a limit is, and whether it is
right, is left to others. Constants are zeros that take no memory, however large their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor

Shape = tuple[int, ...]
Want = Mapping[str, Any]


class Bench:
    """Collects the tensors of one operator. Activations have the wanted type."""

    def __init__(self, code: str, want: Want) -> None:
        self.code = code
        self.want = want
        self.dtype = str(want.get("dtypes", "int8"))
        self.tensors: dict[str, Tensor] = {}

    def get(self, fact: str, default: Any) -> Any:
        return self.want.get(fact, default)

    def data(self, name: str, shape: Shape, *, constant: bool = False) -> str:
        """A data input, constant where asked for."""
        return self._add(name, shape, self.dtype, constant)

    def weights(self, name: str, shape: Shape, kind: str, dtype: str) -> str:
        """Weights or bias ("kind"), as wanted by weights_* and bias_*; "" for no bias."""
        dtype = str(self.get(f"{kind}_dtype", dtype))
        if dtype == "none":
            return ""
        return self._add(name, shape, dtype, bool(self.get(f"{kind}_constant", True)))

    def parameter(self, name: str, values: Any, *, constant: bool = True) -> str:
        """An int32 parameter: axes, sizes, paddings."""
        array = np.asarray(values, dtype=np.int32)
        data = array if constant else None
        self.tensors[name] = Tensor(name, array.shape, "int32", data)
        return name

    def finish(self, inputs: tuple[str, ...], shape: Shape, **options: Any) -> LiteGraph:
        """The graph; inputs "x" and "z" and the output are the activations."""
        self._add("y", shape, self.dtype, False)
        op = Operator(self.code, inputs, ("y",), options)
        variable = tuple(i for i in inputs if i and self.tensors[i].data is None)
        graph = LiteGraph(variable, ("y",), self.tensors, (op,))
        return self._quantized(self._static(graph))

    def _add(self, name: str, shape: Shape, dtype: str, constant: bool) -> str:
        data = np.broadcast_to(np.zeros((), dtype), shape) if constant else None
        self.tensors[name] = Tensor(name, shape, dtype, data)
        return name

    def _static(self, graph: LiteGraph) -> LiteGraph:
        if self.get("static", True):
            return graph
        x = graph.tensors["x"]
        return replace(graph, tensors={**graph.tensors, "x": replace(x, shape=(-1, *x.shape[1:]))})

    def _quantized(self, graph: LiteGraph) -> LiteGraph:
        if not {"per_tensor", "scales_equal", "input_zero_points"} & set(self.want):
            return graph
        zero = int(self.get("input_zero_points", 0))
        inner = Quantization((0.5,), (zero,))
        outer = inner if self.get("scales_equal", True) else Quantization((0.25,), (zero,))
        if not self.get("per_tensor", True):
            inner = Quantization((0.5, 0.25), (zero, zero))
        parameters = {"x": inner, "z": inner, "y": outer}
        tensors = {
            name: replace(tensor, quantization=parameters.get(name))
            for name, tensor in graph.tensors.items()
        }
        return replace(graph, tensors=tensors)


def _window(bench: Bench) -> tuple[int, int, int, int, str]:
    """(input height, width, kernel height, width, padding): one output, or a padded one."""
    padded = bool(bench.get("padded", False))
    sides = []
    for side in ("h", "w"):
        stride = int(bench.get(f"stride_{side}", 1)) if bench.code == "TRANSPOSE_CONV" else 1
        stride = stride if bench.get("stride_within_kernel", True) else 1
        kernel = int(bench.get(f"kernel_{side}", 3 if padded else stride))
        if bench.code == "DEPTHWISE_CONV_2D" and side == "h" and "kernel_volume_16" in bench.want:
            kernel = int(bench.want["kernel_volume_16"]) // 16
        reach = (kernel - 1) * int(bench.get(f"dilation_{side}", 1)) + 1
        sides.append((1 if padded else reach, kernel))
    (height, kernel_h), (width, kernel_w) = sides
    return height, width, kernel_h, kernel_w, "SAME" if padded else "VALID"


def _strides(bench: Bench) -> dict[str, Any]:
    wide = 1 if bench.get("stride_within_kernel", True) else 2
    return {side: int(bench.get(side, wide)) for side in ("stride_h", "stride_w")}


def _convolution(bench: Bench) -> LiteGraph:
    height, width, kernel_h, kernel_w, padding = _window(bench)
    groups = int(bench.get("groups", 1))
    depth = int(bench.get("kernel_volume_16", bench.get("channels", 16)))
    out = int(bench.get("output_channels", 16))
    if bench.code == "DEPTHWISE_CONV_2D":
        depth, out, kernel = _depthwise(bench, kernel_h, kernel_w)
    else:
        kernel = (out, kernel_h, kernel_w, depth)
    x = bench.data("x", (int(bench.get("batch", 1)), height, width, depth * groups))
    weights = bench.weights("weights", kernel, "weights", "int8")
    bias = bench.weights("bias", (out,), "bias", "int32")
    return bench.finish(
        (x, weights, bias),
        (int(bench.get("batch", 1)), 1, 1, out),
        padding=padding,
        dilation_h_factor=int(bench.get("dilation_h", 1)),
        dilation_w_factor=int(bench.get("dilation_w", 1)),
        fused_activation_function="NONE",
        **_strides(bench),
    )


def _depthwise(bench: Bench, kernel_h: int, kernel_w: int) -> tuple[int, int, Shape]:
    """(channels in, channels out, kernel): a wanted volume goes into the kernel's height."""
    channels = int(bench.get("channels", 16))
    return channels, channels, (1, kernel_h, kernel_w, channels)


def _transpose_convolution(bench: Bench) -> LiteGraph:
    _, _, kernel_h, kernel_w, padding = _window(bench)
    depth = int(bench.get("kernel_volume_16", 16)) // (kernel_h * kernel_w)
    out = int(bench.get("output_channels", 16))
    size = bench.parameter("size", (1, kernel_h, kernel_w, out))
    weights = bench.weights("weights", (out, kernel_h, kernel_w, depth), "weights", "int8")
    x = bench.data("x", (1, 1, 1, depth))
    bias = bench.weights("bias", (out,), "bias", "int32")
    return bench.finish(
        (size, weights, x, bias), (1, kernel_h, kernel_w, out), padding=padding, **_strides(bench)
    )


def _fully_connected(bench: Bench) -> LiteGraph:
    depth, out = int(bench.get("channels", 16)), int(bench.get("output_channels", 16))
    x = bench.data("x", (1, depth))
    extra = (1,) * (int(bench.get("weights_rank", 2)) - 2)
    weights = bench.weights("weights", (out, *extra, depth), "weights", "int8")
    shape = (out,) if bench.get("bias_vector", True) else (2, out)
    bias = bench.weights("bias", shape, "bias", "int32")
    return bench.finish((x, weights, bias), (1, out), fused_activation_function="NONE")


def _batch_matmul(bench: Bench) -> LiteGraph:
    stack = (1,) * (int(bench.get("rank", 3)) - 2)
    depth, columns = int(bench.get("channels", 16)), int(bench.get("columns", 16))
    x = bench.data("x", (*stack, 16, depth))
    z = bench.data("z", (*stack, depth, columns))
    return bench.finish((x, z), (*stack, 16, columns), adj_x=False, adj_y=False)


def _binary(bench: Bench) -> LiteGraph:
    kind = bench.get("broadcast", "none")
    channels = int(bench.get("channels", 16))
    rank = int(bench.get("input_rank", bench.get("rank", 4)))
    lead = (1,) * (rank - 3)
    full = (*lead, 2, 2, channels)[-rank:]
    one, flat = (*full[:-2], 1, channels), (*full[:-1], 1)
    left, right = {"none": (full, full), "one": (full, one), "both": (flat, one)}[kind]
    x = bench.data("x", left)
    z = bench.data(
        "z", right, constant=bool(bench.get("right_constant", bench.code in ("PRELU", "DIV")))
    )
    return bench.finish((x, z), full, fused_activation_function="NONE")


def _unary(bench: Bench) -> LiteGraph:
    rank = int(bench.get("rank", bench.get("input_rank", 4)))
    shape = (1,) * (rank - 1) + (int(bench.get("channels", 16)),)
    return bench.finish((bench.data("x", shape),), shape)


def _softmax(bench: Bench) -> LiteGraph:
    elements = int(bench.get("elements", 16))
    channels = int(bench.get("channels", _divisor(elements, 2040)))
    rows = int(bench.get("rows", max(elements // channels, 1) if "elements" in bench.want else 1))
    shape = (rows, channels)
    return bench.finish((bench.data("x", shape),), shape, beta=float(bench.get("beta", 1.0)))


def _divisor(number: int, most: int) -> int:
    return next(d for d in range(min(most, number), 0, -1) if number % d == 0)


def _pool(bench: Bench) -> LiteGraph:
    height, width, kernel_h, kernel_w, padding = _window(bench)
    batch, channels = int(bench.get("batch", 1)), int(bench.get("channels", 16))
    x = bench.data("x", (batch, height, width, channels))
    return bench.finish(
        (x,),
        (batch, 1, 1, channels),
        padding=padding,
        filter_height=kernel_h,
        filter_width=kernel_w,
        fused_activation_function="NONE",
        **_strides(bench),
    )


def _reduce(bench: Bench) -> LiteGraph:
    axes = [int(part) for part in str(bench.get("axes", "[1, 2]")).strip("[]").split(",")]
    rank = int(bench.get("input_rank", 4))
    shape = ((1,) * rank + (2, 2, 16))[-rank:]
    axes = [axis % len(shape) for axis in axes]
    keep = bool(bench.get("keep_dims", True))
    out = tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes
    )
    where = bench.parameter("axes", axes, constant=bool(bench.get("axes_constant", True)))
    return bench.finish((bench.data("x", shape), where), out, keep_dims=keep)


def _resize(bench: Bench) -> LiteGraph:
    up, across = bench.get("factor_h", 2), bench.get("factor_w", 2)
    channels, rank = int(bench.get("channels", 16)), int(bench.get("input_rank", 4))
    x = bench.data("x", (1,) * (rank - 3) + (4, 4, channels))
    out = (1,) * (rank - 3) + (round(4 * up), round(4 * across), channels)
    return bench.finish((x, bench.parameter("size", out[-3:-1])), out)


def _transpose(bench: Bench) -> LiteGraph:
    order = [int(part) for part in str(bench.get("permutation", "[0, 2, 3, 1]"))[1:-1].split(",")]
    shape = (int(bench.get("batch", 1)), 2, 3, 16)[: len(order)]
    x = bench.data("x", shape)
    return bench.finish((x, bench.parameter("order", order)), tuple(shape[i] for i in order))


def _pad(bench: Bench) -> LiteGraph:
    channels = 1 if bench.get("pads_channels", False) else 0
    table = [[0, 0], [1, 1], [1, 1], [0, channels]]
    constant = bool(bench.get("parameters_constant", True))
    pads = bench.parameter("pads", table, constant=constant)
    return bench.finish((bench.data("x", (1, 4, 4, 16)), pads), (1, 6, 6, 16 + channels))


def _slice(bench: Bench) -> LiteGraph:
    constant = bool(bench.get("parameters_constant", True))
    begin = bench.parameter("begin", (0, 0, 0, 0), constant=constant)
    size = bench.parameter("size", (1, 2, 4, 16), constant=constant)
    return bench.finish((bench.data("x", (1, 4, 4, 16)), begin, size), (1, 2, 4, 16))


def _strided_slice(bench: Bench) -> LiteGraph:
    constant = bool(bench.get("parameters_constant", True))
    step = 1 if bench.get("unit_step", True) else 2
    names = [
        bench.parameter(name, values, constant=constant)
        for name, values in (
            ("begin", (0, 0, 0, 0)),
            ("end", (1, 4, 4, 16)),
            ("step", (1, step, 1, 1)),
        )
    ]
    return bench.finish((bench.data("x", (1, 4, 4, 16)), *names), (1, 4 // step, 4, 16))


def _concatenation(bench: Bench) -> LiteGraph:
    names = ("x", "z", *(f"x{i}" for i in range(100)))[: int(bench.get("inputs", 2))]
    inputs = tuple(bench.data(name, (1, 4, 4, 16)) for name in names)
    return bench.finish(inputs, (1, 4, 4, 16 * len(inputs)), axis=3)


def _reshape(bench: Bench) -> LiteGraph:
    shape = (1,) * (int(bench.get("rank", 4)) - 1) + (16,)
    constant = bool(bench.get("parameters_constant", True))
    new = bench.parameter("new", shape, constant=constant)
    return bench.finish((bench.data("x", (16,)), new), shape)


def _split(bench: Bench) -> LiteGraph:
    axis = bench.parameter("axis", 0)
    return bench.finish((axis, bench.data("x", (2, 4, 4, 16))), (2, 4, 4, 16), num_splits=1)


BUILDERS: Mapping[str, Callable[[Bench], LiteGraph]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _convolution),
    "TRANSPOSE_CONV": _transpose_convolution,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    **dict.fromkeys(
        (
            *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE"),
            *("POW", "FLOOR_DIV"),
        ),
        _binary,
    ),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), _reduce),
    "SOFTMAX": _softmax,
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "TRANSPOSE": _transpose,
    **dict.fromkeys(("PAD", "MIRROR_PAD"), _pad),
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "CONCATENATION": _concatenation,
    "RESHAPE": _reshape,
    "SPLIT": _split,
}
"""Builders by operator code; one-input element-wise operators need none of their own."""


def specimen(code: str, want: Want) -> LiteGraph:
    """A graph of one operator `code` with the wanted facts, everything else small and plain."""
    return BUILDERS.get(code, _unary)(Bench(code, want))
