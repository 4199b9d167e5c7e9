"""Convolutions and transposed convolutions, one to three axes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.lowered import Case, every_lowering, parsed


def convolution(call: str, x: str, w: str, y: str, *, bias: str = "") -> str:
    known = f"float[{w}] w" + (f", float[{bias}] b" if bias else "")
    call = call.replace("(", "(x, w, b)" if bias else "(x, w)")
    return f"(float[{x}] x) => (float[{y}] y) <{known}> {{ y = {call} }}"


CASES = [
    Case("a plain convolution", convolution("Conv (", "1,4,7,8", "5,4,3,3", "1,5,5,6", bias="5")),
    Case(
        "uneven pads and strides",
        convolution(
            "Conv <pads=[0,2,1,3], strides=[2,1]> (", "1,4,7,8", "5,4,3,3", "1,5,3,11", bias="5"
        ),
    ),
    Case(
        "auto pads",
        convolution(
            'Conv <auto_pad="SAME_LOWER", strides=[2,2]> (', "1,4,8,8", "5,4,3,3", "1,5,4,4"
        ),
    ),
    Case(
        "a dilated convolution",
        convolution("Conv <dilations=[2,3], pads=[2,3,2,3]> (", "1,4,9,9", "5,4,3,3", "1,5,9,9"),
    ),
    Case(
        "a depthwise convolution",
        convolution(
            "Conv <group=6, pads=[1,1,1,1]> (", "1,6,7,8", "12,1,3,3", "1,12,7,8", bias="12"
        ),
    ),
    Case(
        "a grouped convolution",
        convolution("Conv <group=2> (", "1,6,7,8", "4,3,2,2", "1,4,6,7", bias="4"),
    ),
    Case(
        "a convolution of one axis",
        convolution("Conv <pads=[1,2], strides=[2]> (", "2,4,11", "3,4,4", "2,3,6", bias="3"),
    ),
    Case(
        "a convolution of three axes",
        convolution(
            "Conv <pads=[1,0,1,0,1,1], strides=[2,1,1]> (",
            "1,3,5,6,7",
            "4,3,2,3,2",
            "1,4,3,5,8",
            bias="4",
        ),
    ),
    Case(
        "a transposed convolution",
        convolution("ConvTranspose (", "1,4,5,6", "4,3,3,3", "1,3,7,8", bias="3"),
    ),
    Case(
        "a transposed convolution with stride 3",
        convolution(
            "ConvTranspose <strides=[3,3], pads=[1,1,1,1]> (", "1,4,3,3", "4,3,3,3", "1,3,7,7"
        ),
    ),
    Case(
        "output padding and stride 2",
        convolution(
            "ConvTranspose <strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]> (",
            "1,4,5,6",
            "4,3,3,3",
            "1,3,10,12",
            bias="3",
        ),
    ),
    Case(
        "a kernel as wide as the stride",
        convolution("ConvTranspose <strides=[2,2]> (", "1,4,5,6", "4,3,2,2", "1,3,10,12", bias="3"),
    ),
    Case(
        "kernel 4, stride 2, pad 1",
        convolution(
            "ConvTranspose <strides=[2,2], pads=[1,1,1,1]> (", "1,4,5,6", "4,3,4,4", "1,3,10,12"
        ),
    ),
    Case(
        "a dilated transposed convolution",
        convolution(
            "ConvTranspose <dilations=[2,2], strides=[2,1], pads=[0,1,2,0]> (",
            "1,4,4,5",
            "4,3,2,3",
            "1,3,7,8",
        ),
    ),
    Case(
        "a grouped transposed convolution",
        convolution(
            "ConvTranspose <group=2, strides=[2,2]> (", "1,4,4,5", "4,3,3,3", "1,6,9,11", bias="6"
        ),
    ),
    Case(
        "a depthwise transposed convolution",
        convolution(
            "ConvTranspose <group=4, strides=[2,2], pads=[1,1,1,1]> (",
            "1,4,4,5",
            "4,1,4,4",
            "1,4,8,10",
            bias="4",
        ),
    ),
    Case(
        "a transposed convolution of one axis",
        convolution(
            "ConvTranspose <strides=[2], pads=[1,0]> (", "1,4,7", "4,3,3", "1,3,14", bias="3"
        ),
    ),
    Case(
        "a transposed convolution of three axes",
        convolution(
            "ConvTranspose <strides=[2,1,2], pads=[1,0,0,0,1,0]> (",
            "1,2,3,4,3",
            "2,3,3,2,2",
            "1,3,6,4,6",
            bias="3",
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names


def test_more_channels_than_the_depthwise_kernel_ends_on_are_convolved_in_slices() -> None:
    """As in wide EfficientViT and EfficientNet: LiteRT's float kernel hangs over 4832."""
    body = convolution("Conv <group=2500> (", "1,2500,2,2", "5000,1,2,2", "1,5000,1,1", bias="5000")
    x = np.random.default_rng(0).standard_normal((1, 2500, 2, 2)).astype(np.float32)
    _, made = next(iter(every_lowering(parsed(body, opset=17), [{"x": x}])))
    codes = [op.code for op in made.graph.operators]
    assert codes.count("DEPTHWISE_CONV_2D") == 2 and "CONCATENATION" in codes
    assert made.float_error() <= 1e-6 and made.integer_error() <= 0.03
