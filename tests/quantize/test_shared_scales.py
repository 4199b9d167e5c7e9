"""Which tensors share a scale: what is joined to something wider keeps its own where it is read."""

from __future__ import annotations

import numpy as np

from tests.ops.lowered import Lowered, every_lowering, parsed

STATE = """(float[1,40] h, float[1,40] c) => (float[2,1,40] state, float[1,40] y) {
  small = Add (h, h)
  axis = Constant<value = int64[1] {0}>()
  a = Unsqueeze (small, axis)
  b = Unsqueeze (c, axis)
  state = Concat<axis = 0> (a, b)
  y = Mul (small, small)
}"""
POOLED = """(float[1,2,8,8] x) => (float[1,2,4,4] y) {
  mean = AveragePool<kernel_shape = [2, 2], strides = [2, 2]> (x)
  y = Sigmoid (mean)
}"""


def only(body: str, sample: dict[str, np.ndarray]) -> Lowered:
    arrays = {name: array.astype(np.float32) for name, array in sample.items()}
    return next(made for _, made in every_lowering(parsed(body, opset=17), [arrays]))


def scale(made: Lowered, name: str) -> float:
    known = made.integer.tensors[name].quantization
    assert known is not None
    return known.scale[0]


def test_a_hidden_state_beside_a_wide_cell_state_keeps_its_scale_for_others() -> None:
    random = np.random.default_rng(0)
    made = only(STATE, {"h": random.normal(0, 1, (1, 40)), "c": random.normal(0, 20, (1, 40))})
    assert scale(made, "state") > 0.2
    assert scale(made, "small") < 0.05


def test_values_that_a_mean_evens_out_are_not_cut_for_what_follows_it() -> None:
    """Means of +-60 pairs lie where a sigmoid changes, the pairs themselves far outside."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, (1, 2, 8, 8))
    x[..., ::2, :] += 90
    x[..., 1::2, :] -= 70
    assert only(POOLED, {"x": x}).integer_error() <= 0.05
