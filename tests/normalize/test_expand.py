"""Operators that TFLite has no counterpart of, written as others: equal in ONNX Runtime."""

from __future__ import annotations

import pytest

from splitter.normalize import normalize
from tests.normalize.support import as_model, model_of, ops, same

COMPUTED = {
    "plain": "(float[1,3,7,8] x, float[4,3,3,3] k) => (float[1,4,a,b] y) {"
    " y = Conv<pads = [1,0,1,2]>(x, k) }",
    "correlation by channel": "(float[1,6,9,9] x, float[6,1,4,4] k) => (float[1,6,a,b] y) {"
    " y = Conv<group = 6, strides = [2,1]>(x, k) }",
    "groups, dilation, bias": "(float[2,4,9,9] x, float[6,2,3,3] k, float[6] b) =>"
    " (float[2,6,c,d] y) {"
    " y = Conv<group = 2, dilations = [2,2]>(x, k, b) }",
    "points": "(float[1,5,4,4] x, float[2,5,1,1] k) => (float[1,2,c,d] y) { y = Conv(x, k) }",
    "along time": "(float[1,3,12] x, float[4,3,5] k) => (float[1,4,c] y) {"
    ' y = Conv<auto_pad = "SAME_UPPER", strides = [2]>(x, k) }',
}

OTHERS = {
    "places of maxima": "(float[1,2,7,8] x) => (float[1,2,a,b] y, int64[1,2,a,b] i) {"
    " y, i = MaxPool<kernel_shape = [3,2], strides = [2,2], pads = [1,1,1,0]>(x) }",
    "places of maxima, unpooled": "(float[1,2,8,8] x) => (float[1,2,8,8] z) {"
    " y, i = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)"
    " z = MaxUnpool<kernel_shape = [2,2], strides = [2,2]>(y, i) }",
    "boxes": "(float[1,2,8,9] x) => (float[3,2,2,4] y) {"
    " b = Constant<value = float[3,4] {-9.0, 1.0, 14.0, 8.0,  0.0, 0.0, 30.0, 20.0,"
    "  5.0, 5.0, 6.0, 5.5}>() n = Constant<value = int64[3] {0, 0, 0}>()"
    " y = RoiAlign<output_height = 2, output_width = 4, sampling_ratio = 2,"
    "  spatial_scale = 0.5>(x, b, n) }",
    "adaptive instance norm": "(float[2,3,5,4] x, float[3] s, float[3] b) => (float[2,3,5,4] y) {"
    " y = InstanceNormalization<epsilon = 0.01>(x, s, b) }",
    "computed batch norm": "(float[2,3,5,4] x, float[3] s, float[3] b, float[3] m, float[3] r) =>"
    " (float[2,3,5,4] y) { v = Abs(r) y = BatchNormalization(x, s, b, m, v) }",
    "spectrum": "(float[1,40,1] x) => (float[1,a,b,2] y) {"
    " s = Constant<value = int64 {4}>() n = Constant<value = int64 {8}>()"
    " y = STFT(x, s, , n) }",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_convolution_with_computed_weights_is_a_product(name: str) -> None:
    before = model_of(f"g {COMPUTED[name]}")
    after = normalize(as_model(before)).proto
    assert same(before, after) and "Conv" not in ops(after)


@pytest.mark.parametrize("name", OTHERS)
def test_what_tflite_has_not_is_written_as_others(name: str) -> None:
    before = model_of(f"g {OTHERS[name]}")
    after = normalize(as_model(before)).proto
    assert same(before, after, tolerance=1e-5)
    assert not set(ops(after)) & {"MaxUnpool", "RoiAlign", "STFT", "BatchNormalization"}


def test_a_convolution_with_constant_weights_stays() -> None:
    model = model_of(
        "g (float[1,3,8,8] x) => (float[1,4,6,6] y) <float[4,3,3,3] w> { y = Conv(x, w) }"
    )
    assert ops(normalize(as_model(model)).proto) == {"Conv": 1}
