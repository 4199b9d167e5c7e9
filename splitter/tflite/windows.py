"""Facts of operators that move a window or have weights: convolutions, pools, products."""

from __future__ import annotations

from math import prod

from splitter.tflite import extents
from splitter.tflite.fact import Fact, Family, Read, Value, option
from splitter.tflite.parameters import WEIGHT_SUM
from splitter.tflite.view import UNKNOWN, View


def _padded(value: int, step: int) -> int:
    return -(-value // step) * step


def _effective_padding(view: View) -> Value:
    """Whether the window reaches over the border, from shapes."""
    if view.op.options.get("padding") != "SAME":
        return False
    for axis in (0, 1):
        kernel = view.kernel(axis)
        if isinstance(kernel, str) or len(view.shape) != 4:
            return UNKNOWN
        dilation = int(view.op.options.get(("dilation_h_factor", "dilation_w_factor")[axis], 1))
        stride = int(view.op.options.get(("stride_h", "stride_w")[axis], 1))
        reach = (view.out_shape[1 + axis] - 1) * stride + (kernel - 1) * dilation + 1
        if reach > view.shape[1 + axis]:
            return True
    return False


def _kernel_area(view: View) -> Value:
    height, width = view.kernel(0), view.kernel(1)
    return UNKNOWN if isinstance(height, str) or isinstance(width, str) else height * width


def _groups(view: View) -> Value:
    if view.weights is None or len(view.weights.shape) != 4 or not view.shape:
        return UNKNOWN
    return view.shape[-1] // max(view.weights.shape[-1], 1)


def _dilated(axis: int) -> Read:
    def read(view: View) -> Value:
        kernel = view.kernel(axis)
        if isinstance(kernel, str):
            return UNKNOWN
        name = ("dilation_h_factor", "dilation_w_factor")[axis]
        return (kernel - 1) * int(view.op.options.get(name, 1)) + 1

    return read


def _dilated_area(view: View) -> Value:
    sides = [_dilated(axis)(view) for axis in (0, 1)]
    return (
        prod(side for side in sides if isinstance(side, int)) if UNKNOWN not in sides else UNKNOWN
    )


def _depth_multiplier(view: View) -> Value:
    return max(view.out_shape[-1] // max(view.shape[-1], 1), 1) if view.shape else UNKNOWN


def _kernel_volume(view: View) -> Value:
    if view.weights is None or len(view.weights.shape) != 4:
        return UNKNOWN
    _, height, width, depth = view.weights.shape
    depth = 1 if view.op.code == "DEPTHWISE_CONV_2D" else depth
    return height * width * _padded(depth, 16)


def _parameter(which: str, what: str) -> Read:
    def read(view: View) -> Value:
        tensor = view.weights if which == "weights" else view.bias
        if tensor is None:
            return True if what == "constant" else "none"
        return tensor.data is not None if what == "constant" else tensor.dtype

    return read


def _bias_vector(view: View) -> Value:
    bias = view.bias
    return bias is None or bias.elements == max(bias.shape, default=1)


WEIGHTED: Family = {
    "weights_constant": Fact(_parameter("weights", "constant"), "weights are a constant"),
    "weights_dtype": Fact(_parameter("weights", "dtype"), "type of the weights"),
    "weights_inner": Fact(
        lambda v: prod(v.weights.shape[1:-1]) if v.weights else 1,
        "product of the weights' dimensions between the first and the last",
    ),
    "rows": Fact(
        lambda v: prod(v.out_shape[:-1]), "product of the output's dimensions but the last"
    ),
    "weights_rank": Fact(lambda v: len(v.weights.shape) if v.weights else 0, "rank of weights"),
    **WEIGHT_SUM,
    "bias_constant": Fact(_parameter("bias", "constant"), "bias is a constant or absent"),
    "bias_dtype": Fact(_parameter("bias", "dtype"), 'type of the bias, "none" without one'),
    "bias_vector": Fact(_bias_vector, "bias is [N] or [1,N], or absent"),
    "output_channels": Fact(lambda v: v.out_shape[-1] if v.out_shape else UNKNOWN, "last dim out"),
}

WINDOW: Family = {
    "kernel_h": Fact(lambda v: v.kernel(0), "kernel height"),
    "kernel_w": Fact(lambda v: v.kernel(1), "kernel width"),
    "stride_h": option("stride_h", 1, "stride along height"),
    "stride_w": option("stride_w", 1, "stride along width"),
    "padding": option("padding", "VALID", "padding scheme"),
    "padded": Fact(_effective_padding, "the window reaches over the border"),
    "kernel_area": Fact(_kernel_area, "kernel_h * kernel_w"),
    "input_h": Fact(lambda v: v.dim(1), "input height"),
    "input_w": Fact(lambda v: v.dim(2), "input width"),
    "output_h": Fact(lambda v: v.out_shape[1] if len(v.out_shape) == 4 else UNKNOWN, "output rows"),
    "output_w": Fact(lambda v: v.out_shape[2] if len(v.out_shape) == 4 else UNKNOWN, "its width"),
}

CONV: Family = {
    **WEIGHTED,
    **WINDOW,
    "dilation_h": option("dilation_h_factor", 1, "dilation along height"),
    "dilation_w": option("dilation_w_factor", 1, "dilation along width"),
    "dilations_equal": Fact(
        lambda v: (
            v.op.options.get("dilation_h_factor", 1) == v.op.options.get("dilation_w_factor", 1)
        ),
        "one dilation for height and width",
    ),
    "dilated_h": Fact(_dilated(0), "rows that the dilated kernel spans"),
    "dilated_area": Fact(_dilated_area, "rows times columns that the dilated kernel spans"),
    "depth_multiplier": Fact(_depth_multiplier, "output channels for one input channel"),
    "groups": Fact(_groups, "input channels / channels of one kernel"),
    "kernel_volume_16": Fact(_kernel_volume, "kernel_h * kernel_w * channels, padded to 16"),
}


def _stride_within_kernel(view: View) -> Value:
    height, width = view.kernel(0), view.kernel(1)
    if isinstance(height, str) or isinstance(width, str):
        return UNKNOWN
    options = view.op.options
    return int(options.get("stride_h", 1)) <= height and int(options.get("stride_w", 1)) <= width


TRANSPOSED: Family = {
    **WEIGHTED,
    **WINDOW,
    "kernel_volume_16": CONV["kernel_volume_16"],
    "stride_within_kernel": Fact(_stride_within_kernel, "no stride is larger than the kernel"),
    **extents.UPSCALED,
}
