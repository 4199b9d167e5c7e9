"""A factor and a bias for each channel that no weights take become a depthwise convolution."""

from __future__ import annotations

import pytest

from splitter.normalize import normalize
from splitter.normalize.channel_affine import write_channel_affine
from tests.normalize.support import as_model, ops, run_passes, same, weighted

AFFINE = """g (float[2,3,6,5] x) => (float[2,3,6,5] y) {
  r = Relu(x)
  m = Mul(r, s)
  y = Add(b, m) }"""
NORMALIZED = """g (float[2,3,6,5] x) => (float[2,4,6,5] y)
<float[3] mean = {0.1, -0.2, 0.3}, float[3] variance = {0.5, 2, 1}> {
  r = Relu(x)
  n = BatchNormalization(r, s, b, mean, variance)
  y = Conv(n, w) }"""


def test_a_factor_and_a_bias_for_each_channel_are_one_convolution() -> None:
    before = weighted(AFFINE, {"s": (3, 1, 1), "b": (1, 3, 1, 1)})
    after = run_passes(before, write_channel_affine)
    assert ops(after) == {"Relu": 1, "Conv": 1}
    assert same(before, after, tolerance=1e-5)


def test_a_batch_normalization_that_no_weights_take_is_one_convolution() -> None:
    before = weighted(NORMALIZED, {"s": (3,), "b": (3,), "w": (4, 3, 1, 1)})
    after = normalize(as_model(before)).proto
    assert ops(after) == {"Relu": 1, "Conv": 2}
    assert same(before, after, tolerance=1e-5)


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        (AFFINE, (5,)),
        (AFFINE, (1, 1, 1)),
        (AFFINE.replace("Add(b, m)", "Sub(b, m)"), (3, 1, 1)),
        (AFFINE.replace("y = Add(b, m)", "z = Tanh(m) a = Add(b, m) y = Mul(a, z)"), (3, 1, 1)),
    ],
    ids=["along another axis", "of all channels", "no sum", "read elsewhere too"],
)  # fmt: skip
def test_other_factors_stay_as_they_are(body: str, factor: tuple[int, ...]) -> None:
    before = weighted(body, {"s": factor, "b": (3, 1, 1)})
    after = run_passes(before, write_channel_affine)
    assert "Conv" not in ops(after)
    assert same(before, after)
