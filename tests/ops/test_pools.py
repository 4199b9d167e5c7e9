"""Pools of every padding, stride, dilation and rounding."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case, image

CASES = [
    Case(
        "a pool without pads", image("MaxPool <kernel_shape=[3,2], strides=[2,1]> (x)", "1,6,4,10")
    ),
    Case(
        "pads as TFLite's SAME",
        image("MaxPool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", "1,6,9,11"),
    ),
    Case(
        "pads before an even stride",
        image(
            "MaxPool <kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]> (x)",
            "1,6,4,6",
            size="1,6,8,11",
        ),
    ),
    Case("pads on one side", image("MaxPool <kernel_shape=[2,3], pads=[0,2,1,0]> (x)", "1,6,9,11")),
    Case(
        "all data negative",
        image("MaxPool <kernel_shape=[5,5], pads=[2,2,2,2]> (x)", "1,6,9,11"),
        low=-6.0,
        high=-4.0,
    ),
    Case(
        "ceil mode",
        image(
            "MaxPool <kernel_shape=[3,3], strides=[2,2], ceil_mode=1> (x)",
            "1,6,4,5",
            size="1,6,8,10",
        ),
    ),
    Case(
        "a dilated pool",
        image("MaxPool <kernel_shape=[3,2], dilations=[2,3], pads=[1,1,2,1]> (x)", "1,6,8,10"),
    ),
    Case(
        "a pool of three axes",
        image(
            "MaxPool <kernel_shape=[2,3,2], pads=[1,1,0,0,1,1], strides=[1,2,1]> (x)",
            "1,3,4,4,6",
            size="1,3,4,7,6",
        ),
    ),
    Case(
        "an average without pads",
        image("AveragePool <kernel_shape=[3,3], strides=[3,2]> (x)", "1,6,3,5"),
    ),
    Case(
        "an average that leaves pads out",
        image("AveragePool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", "1,6,9,11"),
    ),
    Case(
        "an average that leaves uneven pads out",
        image("AveragePool <kernel_shape=[3,4], pads=[2,0,1,3]> (x)", "1,6,10,11"),
        bound=0.03,
    ),
    Case(
        "an average over pads",
        image(
            "AveragePool <kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1> (x)", "1,6,9,11"
        ),
    ),
    Case(
        "an average over pads in ceil mode",
        image(
            "AveragePool <kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2], count_include_pad=1,"
            " ceil_mode=1> (x)",
            "1,6,5,6",
            size="1,6,8,10",
        ),
    ),
    Case(
        "a dilated average",
        image("AveragePool <kernel_shape=[2,3], dilations=[2,2], pads=[1,0,0,2]> (x)", "1,6,8,9"),
    ),
    Case(
        "an average of three axes",
        image(
            "AveragePool <kernel_shape=[2,2,3], pads=[0,1,1,1,0,1]> (x)",
            "1,3,4,7,6",
            size="1,3,4,7,6",
        ),
    ),
    Case(
        "global pools",
        "(float[2,5,6,7] x) => (float[2,5,1,1] y, float[2,5,1,1] z)"
        " { y = GlobalAveragePool (x) z = GlobalMaxPool (x) }",
        bound=0.03,
    ),
    Case("a pool of squares", image("LpPool <kernel_shape=[2,3], p=2> (x)", "1,6,8,9"), bound=0.03),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
