"""Functions that are steep within one step of their input."""

from __future__ import annotations

import numpy as np

from splitter.quantize import calibrate, quantize
from splitter.quantize.lookup import Seen, table
from splitter.tflite.types import Quantization
from tests.ops.lowered import Lowered, every_lowering, parsed

SPECTRUM = "(float[1,400] x) => (float[1,400] y) { y = Log (x) }"


def powers() -> np.ndarray:
    """Half of the values far under one 256th of the largest."""
    random = np.random.default_rng(0)
    return np.exp(random.uniform(-12, 2, (1, 400))).astype(np.float32)


def lowered() -> Lowered:
    return next(m for _, m in every_lowering(parsed(SPECTRUM, opset=17), [{"x": powers()}]))


def test_the_logarithm_of_what_rounds_to_zero_is_its_mean() -> None:
    made = lowered()
    assert "GATHER" in {op.code for op in made.integer.operators}
    small = np.log(powers()[powers() < 0.01])
    spread = float(np.sqrt(np.mean((small - small.mean()) ** 2)))
    assert made.integer_error() * np.sqrt(np.mean(np.log(powers()) ** 2)) <= spread


def test_on_the_npu_the_kernel_stays() -> None:
    made = lowered()
    ranges = calibrate(made.graph, [{"x": powers()}], threads=1)
    units = {op.unit for op in made.graph.operators}
    assert [op.code for op in quantize(made.graph, ranges, npu=units).operators] == ["LOG"]


def test_a_smooth_function_keeps_the_middle_of_each_step() -> None:
    source, target = Quantization((0.1,), (0,)), Quantization((0.1,), (0,))
    seen = Seen((np.array([0.04, 0.03, 1.01]),))
    plain = table(lambda x: x, source, 8, target, 8)
    assert np.array_equal(plain, table(lambda x: x, source, 8, target, 8, seen))


def test_where_the_least_is_asked_for_the_least_entry_is_no_mean() -> None:
    body = """(float[1,400] x) => (float[1,400] y) {
      axes = Constant<value = int64[1] {1}>()
      decibels = Log (x)
      least = ReduceMin<keepdims = 1> (decibels, axes)
      y = Sub (decibels, least)
    }"""
    made = next(m for _, m in every_lowering(parsed(body, opset=18), [{"x": powers()}]))
    (table_of_log,) = [t for t in made.integer.tensors.values() if t.name == "decibels/table"]
    q = table_of_log.quantization
    assert q is not None and table_of_log.data is not None
    least = (int(table_of_log.data.min()) - q.zero_point[0]) * q.scale[0]
    assert least <= np.log(powers()).min() + q.scale[0]


def test_a_logarithm_held_above_a_part_of_its_largest_keeps_its_means() -> None:
    body = """(float[1,400] x) => (float[1,400] y) {
      axes = Constant<value = int64[1] {1}>()
      span = Constant<value = float {-20.0}>()
      tiny = Constant<value = float {1e-9}>()
      safe = Max (x, tiny)
      decibels = Log (safe)
      most = ReduceMax<keepdims = 1> (decibels, axes)
      floor = Add (most, span)
      y = Max (decibels, floor)
    }"""
    made = next(m for _, m in every_lowering(parsed(body, opset=18), [{"x": powers()}]))
    assert made.integer_error() <= 1.01 * lowered().integer_error()
