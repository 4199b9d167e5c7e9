"""Weights in two 8-bit pieces beside 16-bit values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.lowered import Lowered, every_lowering, parsed
from tests.quantize.wide import outputs, wide

DENSE = "(float[6,40] x) => (float[6,24] y) <float[40,24] w> { y = MatMul (x, w) }"
CONV = """(float[1,8,9,9] x) => (float[1,12,9,9] y) <float[12,8,3,3] w, float[12] b> {
  z = Conv<pads = [1,1,1,1]> (x, w, b)
  y = Relu (z)
}"""
DEPTHWISE = """(float[1,8,9,9] x) => (float[1,8,7,7] y) <float[8,1,3,3] w, float[8] b> {
  y = Conv<group = 8> (x, w, b)
}"""
TRANSPOSED = """(float[1,8,5,5] x) => (float[1,4,10,10] y) <float[8,4,2,2] w, float[4] b> {
  y = ConvTranspose<strides = [2,2]> (x, w, b)
}"""


def lowered(body: str) -> Lowered:
    model, random = parsed(body, opset=17), np.random.default_rng(0)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    sample = {"x": random.normal(0, 1, shape).astype(np.float32)}
    return next(made for _, made in every_lowering(model, [sample]))


def error(made: Lowered, *, fine: bool) -> float:
    """Relative RMS of y with every value in 16 bits."""
    units = {op.unit for op in made.graph.operators} if fine else set()
    (wanted,) = [w["y"] for w in made.wanted]
    off = outputs(wide(made, fine=units), made.samples[0]) - wanted
    return float(np.sqrt(np.square(off).mean() / np.square(wanted).mean()))


@pytest.mark.parametrize(
    "body",
    [DENSE, CONV, DEPTHWISE, TRANSPOSED],
    ids=["dense", "convolution", "depthwise", "transposed"],
)
def test_what_rounding_left_of_the_weights_is_added(body: str) -> None:
    made = lowered(body)
    assert error(made, fine=False) >= 1e-3
    assert error(made, fine=True) <= 2e-4


def test_weights_that_eight_bits_hold_are_written_once() -> None:
    made = lowered(DENSE.replace("y = MatMul (x, w)", "s = Sign (w) y = MatMul (x, s)"))
    units = {op.unit for op in made.graph.operators}
    assert wide(made, fine=units).operators == wide(made).operators


def test_a_channel_without_weights_keeps_its_bias() -> None:
    body = (
        CONV.replace("Conv<", "Conv<")
        .replace("(x, w, b)", "(x, v, c)")
        .replace(
            "  z =",
            """  tiny = Constant<value = float {1e-12}>()
  eight = Constant<value = float {8.0}>()
  v = Mul (w, tiny)
  c = Add (b, eight)
  z =""",
        )
    )
    assert error(lowered(body), fine=False) <= 1e-3
