"""Facts of ONNX operators that move a window: convolutions and pools."""

from __future__ import annotations

from math import prod

from splitter.rules.dialect.table import Fact, Family, Value
from splitter.rules.dialect.view import UNKNOWN, NodeView


def _pair(view: NodeView, name: str, default: int) -> tuple[int, int]:
    """An attribute of one or two numbers, as (height, width)."""
    given = [int(value) for value in view.node.attrs.get(name, ())]
    if not given:
        return default, default
    if len(given) > 1:
        return given[0], given[1]
    return (1 if name == "kernel_shape" else default), given[0]


def _kernel(view: NodeView) -> tuple[int, int]:
    if view.node.op in ("Conv", "ConvTranspose") and view.name(1):
        spatial = (1, 1, *view.shape(1)[2:])[-2:]
        return spatial[0], spatial[1]
    return _pair(view, "kernel_shape", 1)


def _largest_pad(view: NodeView) -> Value:
    return max((int(p) for p in view.node.attrs.get("pads", ())), default=0)


def _any_pad(view: NodeView) -> Value:
    return any(int(p) > 0 for p in view.node.attrs.get("pads", ()))


def _kernel_stride(view: NodeView) -> Value:
    """ "3x3s2": kernel and stride, where the strides are equal."""
    (height, width), strides = _kernel(view), _pair(view, "strides", 1)
    return f"{height}x{width}s{strides[0]}" if strides[0] == strides[1] else UNKNOWN


def _auto_pad(view: NodeView) -> Value:
    return str(view.node.attrs.get("auto_pad", "NOTSET"))


WINDOW: Family = {
    "kernel_h": Fact(lambda v: _kernel(v)[0], "kernel height"),
    "kernel_w": Fact(lambda v: _kernel(v)[1], "kernel width"),
    "stride_h": Fact(lambda v: _pair(v, "strides", 1)[0], "stride along height"),
    "stride_w": Fact(lambda v: _pair(v, "strides", 1)[1], "stride along width"),
    "strides_equal": Fact(lambda v: len(set(_pair(v, "strides", 1))) == 1, "one stride for both"),
    "kernel_stride": Fact(_kernel_stride, 'kernel and stride, like "3x3s2"'),
    "dilation_h": Fact(lambda v: _pair(v, "dilations", 1)[0], "dilation along height"),
    "dilation_w": Fact(lambda v: _pair(v, "dilations", 1)[1], "dilation along width"),
    "pad": Fact(_largest_pad, "largest padding"),
    "padded": Fact(_any_pad, "there is padding"),
    "auto_pad": Fact(_auto_pad, "NOTSET, or how padding is computed"),
    "input_h": Fact(lambda v: v.shape()[-2] if len(v.shape()) > 3 else 1, "input height"),
    "input_w": Fact(lambda v: v.shape()[-1] if v.shape() else 1, "input width"),
    "channels": Fact(lambda v: v.shape()[1] if len(v.shape()) > 1 else 1, "input channels"),
}


def _groups(view: NodeView) -> int:
    return int(view.node.attrs.get("group", 1))


def _depthwise(view: NodeView) -> Value:
    return _groups(view) > 1 and _groups(view) == view.shape()[1]


CONV: Family = {
    **WINDOW,
    "groups": Fact(_groups, "groups"),
    "depthwise": Fact(_depthwise, "as many groups as input channels"),
    "weights_constant": Fact(lambda v: v.is_constant(1), "weights are a constant"),
}


def _deconvolution_fits(view: NodeView) -> Value:
    """Whether k*d-d-pad >= 0 and s*(in-1)-pad+1 >= out hold along both axes."""
    if len(view.shape()) != 4:
        return UNKNOWN
    pads = [int(p) for p in view.node.attrs.get("pads", ())] or [0] * 4
    for axis in (0, 1):
        kernel, stride = _kernel(view)[axis], _pair(view, "strides", 1)[axis]
        dilation = _pair(view, "dilations", 1)[axis]
        if kernel * dilation - dilation - pads[axis] < 0:
            return False
        if stride * (view.shape()[2 + axis] - 1) - pads[axis] + 1 > view.out[2 + axis]:
            return False
    return True


CONV_TRANSPOSE: Family = {
    **CONV,
    "window_fits": Fact(_deconvolution_fits, "kernel and padding fit the output"),
}


def _ceil(view: NodeView) -> Value:
    return bool(view.node.attrs.get("ceil_mode", 0))


POOL: Family = {
    **WINDOW,
    "ceil_mode": Fact(_ceil, "the output size is rounded up"),
    "count_include_pad": Fact(
        lambda v: bool(v.node.attrs.get("count_include_pad", 0)), "padding counts in the average"
    ),
}
GLOBAL_POOL: Family = {
    "input_h": WINDOW["input_h"],
    "input_w": WINDOW["input_w"],
    "channels": WINDOW["channels"],
    "plane": Fact(lambda v: prod(v.shape()[2:]), "height * width"),
}
