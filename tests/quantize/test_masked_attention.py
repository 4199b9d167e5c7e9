"""What a mask leaves out of attention counts for nothing in int8, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from splitter.quantize.choice import to_integer
from splitter.tflite.runtime import Interpreter
from splitter.tflite.write import write
from tests.ops.lowered import Array, Lowered, every_lowering, parsed

LENGTH, WIDTH = 12, 8
FARS = ("-100.0", "-1000.0", "-10000.0", "-1e9", "-3e38", "-3.4028235e38", "-inf")
ATTENTION = """(float[1,2,12,8] q, float[1,2,12,8] k, float[1,2,12,8] v%s) => (float[1,2,12,8] y) {
  kt = Transpose<perm = [0, 1, 3, 2]> (k)
  s = MatMul (q, kt)
  %s
  p = Softmax<axis = -1> (t)
  y = MatMul (p, v)
}"""
SEEN = LENGTH - 3
"""Tokens that the padding masks let through; a causal mask hides the others from rows before."""
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))
PADDING = (np.arange(LENGTH) < SEEN).reshape(1, 1, 1, LENGTH)
NOTHING_SEEN = """largest = ReduceMax<axes = [3]> (m)
  blind = LessOrEqual (largest, least)
  some = Where (blind, zero, p)
  y = MatMul (some, v)"""
RUN_TIME = ", bool[1,1,1,12] seen"
CONSTANT_MASKS = {
    "added causal": "t = Add (s, far_causal)",
    "chosen causal": "t = Where (causal, s, far)",
    "added padding": "t = Add (s, far_padding)",
    "chosen padding": "t = Where (padding, s, far)",
}
COMPUTED_MASKS = {
    "chosen scores": "t = Where (seen, s, far)",
    "chosen mask": "m = Where (seen, zero, far)\n t = Add (s, m)",
    "sum of masks": "m = Where (seen, zero, far)\n b = Add (m, far_causal)\n t = Add (s, b)",
    "one after another": "m = Where (seen, zero, far)\n a = Add (s, m)\n t = Add (a, far_causal)",
}


def lowered(mask: str, far: str) -> Iterator[tuple[str, Lowered]]:
    """Both forms of attention, whole softmax and exponentials, calibrated on two samples."""
    model = parsed(ATTENTION % (RUN_TIME if "seen" in mask else "", mask), opset=17)
    low, zero = np.float32(far), np.float32(0)
    values = {
        "causal": CAUSAL,
        "padding": PADDING,
        "far_causal": np.where(CAUSAL, zero, low),
        "far_padding": np.where(PADDING, zero, low),
        "far": np.asarray(low),
        "zero": np.asarray(zero),
    }
    for name, array in values.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return islice(every_lowering(model, [given(model, seed) for seed in range(2)]), 2)


def given(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """What the model takes of a sample."""
    names = {value.name for value in model.graph.input}
    return {name: array for name, array in sample(seed).items() if name in names}


def sample(seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    shape = (1, 2, LENGTH, WIDTH)
    arrays = {name: random.normal(0, 1, shape).astype(np.float32) for name in "qkv"}
    return {**arrays, "seen": PADDING}


def others_behind(arrays: dict[str, Array]) -> dict[str, Array]:
    """The sample with other values where the masks hide them."""
    v = arrays["v"].copy()
    v[:, :, SEEN:] = np.random.default_rng(9).uniform(-2, 2, v[:, :, SEEN:].shape)
    return {**arrays, "v": v}


def run(made: Lowered, arrays: dict[str, Array]) -> Array:
    """The raw integers of the output."""
    graph = made.integer
    feeds = {name: to_integer(arrays[name], graph.tensors[name]) for name in graph.inputs}
    return Interpreter(write(graph)).run(feeds)["y"]


def check(mask: str, far: str) -> None:
    for name, made in lowered(mask, far):
        assert made.integer_error() <= 0.05, name
        arrays = sample(5)
        plain, other = run(made, arrays), run(made, others_behind(arrays))
        rows = SEEN if "causal" in mask else LENGTH
        np.testing.assert_array_equal(plain[:, :, :rows], other[:, :, :rows], name)


@pytest.mark.parametrize("far", FARS)
@pytest.mark.parametrize("mask", CONSTANT_MASKS)
def test_a_constant_mask(mask: str, far: str) -> None:
    check(CONSTANT_MASKS[mask], far)


@pytest.mark.parametrize("far", FARS)
@pytest.mark.parametrize("mask", COMPUTED_MASKS)
def test_a_mask_computed_at_run_time(mask: str, far: str) -> None:
    check(COMPUTED_MASKS[mask], far)


def test_a_row_that_may_see_nothing_is_found_by_its_mask() -> None:
    """Exporters write Where(every score is -inf, 0, softmax)."""
    mask = "m = Where (seen, zero, far) t = Add (s, m)"
    body = ATTENTION % (RUN_TIME, mask)
    body = body.replace("y = MatMul (p, v)", NOTHING_SEEN)
    model = parsed(body, opset=17)
    for name, value in (("far", -np.inf), ("zero", 0), ("least", -3e38)):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    blind = {**sample(1), "seen": np.zeros_like(PADDING)}
    for name, made in every_lowering(model, [sample(0), blind]):
        assert made.integer_error() <= 0.05, name
        assert np.unique(run(made, {**sample(2), "seen": blind["seen"]})).size == 1, name
