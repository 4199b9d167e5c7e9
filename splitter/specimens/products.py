"""Specimens of operators with weights or a window, and of matrix products."""

from __future__ import annotations

from math import ceil
from typing import Any

from splitter.specimens.bench import Bench, Shape, divisor
from splitter.tflite.types import LiteGraph


def _sides(bench: Bench) -> tuple[int, int]:
    """Kernel height and width: as wanted, by one of the two, by area, or by the sum of weights."""
    for fact, most in (("kernel_area", 256), ("dilated_area", 64)):
        if fact in bench.want:
            area = bench.number(fact, 1)
            height = divisor(area, most)
            return height, area // height
    if bench.code == "DEPTHWISE_CONV_2D" and "weight_sum" in bench.want:
        area = ceil(bench.number("weight_sum", 1) / 127)
        height = divisor(area, 4096)
        return height, area // height
    small = 3 if bench.flag("padded", False) else 1
    default = [small, small]
    if bench.code == "TRANSPOSE_CONV" and bench.flag("stride_within_kernel", True):
        default = [max(size, stride) for size, stride in zip(default, _strides(bench), strict=True)]
        if str(bench.get("strides", "")).endswith("_flat"):
            default[_strides(bench).index(1)] = 1
    height = bench.number("kernel_h", bench.number("dilated_h", default[0]))
    if bench.code == "DEPTHWISE_CONV_2D" and "kernel_volume_16" in bench.want:
        height = bench.number("kernel_volume_16", 16) // 16
    return height, bench.number("kernel_w", default[1])


def _strides(bench: Bench) -> tuple[int, int]:
    if "strides" in bench.want:
        first, second = str(bench.want["strides"]).split("_")[0].split("x")
        return int(first), int(second)
    wide = 1 if bench.flag("stride_within_kernel", True) else 2
    return bench.number("stride_h", wide), bench.number("stride_w", wide)


def _dilations(bench: Bench) -> tuple[int, int]:
    height = bench.number("dilation_h", 1)
    return height, bench.number("dilation_w", 1 if bench.flag("dilations_equal", True) else 2)


def _window(bench: Bench) -> tuple[Shape, Shape, str]:
    """(input height and width, output height and width, padding) of convolutions and pools.

    Where a stride is wanted there are two steps: of one step compilers drop the stride.
    """
    kernel, strides, dilations = _sides(bench), _strides(bench), _dilations(bench)
    steps = 2 if {"stride_h", "stride_w"} & set(bench.want) else 1
    outs = bench.number("output_h", steps), bench.number("output_w", steps)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if bench.flag("padded", False) or bench.get("padding", "VALID") == "SAME":
        inner = [(out - 1) * s + 1 for out, s in zip(outs, strides, strict=True)]
        return tuple(inner), outs, "SAME"
    inner = [(out - 1) * s + r for out, s, r in zip(outs, strides, reach, strict=True)]
    return tuple(inner), outs, "VALID"


def _options(bench: Bench, padding: str) -> dict[str, Any]:
    strides = _strides(bench)
    return {
        "stride_h": strides[0],
        "stride_w": strides[1],
        "padding": padding,
        "fused_activation_function": str(bench.get("fused_activation", "NONE")),
    }


def _depth(bench: Bench) -> int:
    """Channels of one kernel."""
    if "weight_sum" in bench.want:
        return ceil(bench.number("weight_sum", 1) / 127)
    return bench.number("kernel_volume_16", bench.number("channels", 16))


def _bias(bench: Bench, out: int) -> str:
    shape = (out,) if bench.flag("bias_vector", True) else (2, out)
    wide = "int64" if bench.dtype == "int16" else "int32"
    return bench.weights("bias", shape, "bias", wide)


def convolution(bench: Bench) -> LiteGraph:
    inner, outs, padding = _window(bench)
    kernel, dilations = _sides(bench), _dilations(bench)
    batch, groups = bench.lead, bench.number("groups", 1)
    depth = _depth(bench)
    out = bench.number("output_channels", 1 if "weight_sum" in bench.want else 16)
    shape: Shape = (out, *kernel, depth)
    options = _options(bench, padding)
    if bench.code == "DEPTHWISE_CONV_2D":
        depth = 1 if "weight_sum" in bench.want else bench.number("channels", 16)
        multiplier = bench.number("depth_multiplier", 1)
        out, groups = depth * multiplier, 1
        shape = (1, *kernel, out)
        options["depth_multiplier"] = multiplier
    x = bench.data("x", (batch, *inner, depth * groups))
    weights = bench.weights("weights", shape, "weights", "int8")
    return bench.finish(
        (x, weights, _bias(bench, out)),
        (batch, *outs, out),
        dilation_h_factor=dilations[0],
        dilation_w_factor=dilations[1],
        **options,
    )


def transpose_convolution(bench: Bench) -> LiteGraph:
    kernel, strides = _sides(bench), _strides(bench)
    depth, batch = _depth(bench), bench.lead
    out = bench.number("output_channels", 1 if "weight_sum" in bench.want else 16)
    flat = str(bench.get("strides", "")).endswith("_flat")
    inner = [2 if "strides" in bench.want and not (flat and s == 1) else 1 for s in strides]
    more = [max(k - s, 0) for k, s in zip(kernel, strides, strict=True)]
    outs = [i * s + m for i, s, m in zip(inner, strides, more, strict=True)]
    if not bench.flag("whole_output", True):
        outs = [outs[0] + 1, outs[1]]
    shape = (batch, *outs, out)
    size = bench.parameter("size", shape)
    weights = bench.weights("weights", (out, *kernel, depth), "weights", "int8")
    x = bench.data("x", (batch, *inner, depth))
    bias = _bias(bench, out)
    inputs = (size, weights, x, bias) if bias else (size, weights, x)
    return bench.finish(inputs, shape, **_options(bench, "VALID"))


def fully_connected(bench: Bench) -> LiteGraph:
    depth = _depth(bench)
    out = bench.number("output_channels", 1 if "weight_sum" in bench.want else 16)
    rows = bench.number("rows", 1)
    extra = (1,) * (bench.number("weights_rank", 2) - 2)
    inner = (bench.number("weights_inner", 1),) if "weights_inner" in bench.want else extra
    x = bench.data("x", (rows, depth))
    weights = bench.weights("weights", (out, *inner, depth), "weights", "int8")
    return bench.finish(
        (x, weights, _bias(bench, out)),
        (rows, out),
        fused_activation_function=str(bench.get("fused_activation", "NONE")),
        keep_num_dims=False,
    )


def batch_matmul(bench: Bench) -> LiteGraph:
    stack = (1,) * (bench.number("rank", 3) - 2)
    depth = bench.number("depth", bench.number("channels", 16))
    columns = bench.number("columns", 16)
    left, right = bench.flag("adj_x", False), bench.flag("adj_y", False)
    rows = bench.number("channels", 16) if left else 16
    x = bench.data("x", (*stack, depth, rows) if left else (*stack, rows, depth))
    z = bench.data(
        "z",
        (*stack, columns, depth) if right else (*stack, depth, columns),
        constant=bench.flag("right_constant", False),
    )
    return bench.finish((x, z), (*stack, rows, columns), adj_x=left, adj_y=right)


def pool(bench: Bench) -> LiteGraph:
    inner, outs, padding = _window(bench)
    kernel = _sides(bench)
    batch, channels = bench.lead, bench.number("channels", 16)
    x = bench.data("x", (batch, *inner, channels))
    return bench.finish(
        (x,),
        (batch, *outs, channels),
        filter_height=kernel[0],
        filter_width=kernel[1],
        **_options(bench, padding),
    )
