"""Float to integer and back, beside the runtime's own QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.glue.board.bundle import Tensor
from splitter.glue.board.messages import BadInput
from splitter.glue.board.numbers import clipped_share, dequantize, quantize
from splitter.graph import Array
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Operator, Quantization
from splitter.tflite.types import Tensor as LiteTensor
from splitter.tflite.write import write


def tensor(kind: str = "int8", scale: float | None = 0.5, zero_point: int = 0) -> Tensor:
    return Tensor("x", (4,), kind, scale, zero_point)


def by_runtime(code: str, array: Array, scale: float, zero_point: int, kind: str) -> Any:
    integer = LiteTensor("q", array.shape, kind, None, Quantization((scale,), (zero_point,)))
    real = LiteTensor("x", array.shape, "float32")
    given, made = ("x", "q") if code == "QUANTIZE" else ("q", "x")
    graph = LiteGraph(
        (given,), (made,), {"x": real, "q": integer}, (Operator(code, (given,), (made,)),)
    )
    return Interpreter(write(graph)).run({given: array})[made]


SCALES = st.floats(2.0**-20, 1024.0, width=32)


@given(scale=SCALES, zero_point=st.integers(-128, 127), kind=st.sampled_from(["int8", "int16"]))
def test_integers_become_the_floats_that_the_runtime_gives(
    scale: float, zero_point: int, kind: str
) -> None:
    zero_point = 0 if kind == "int16" else zero_point
    info = np.iinfo(kind)
    codes = np.linspace(info.min, info.max, 256).astype(kind)
    expected = by_runtime("DEQUANTIZE", codes, scale, zero_point, kind)
    made = dequantize(codes, tensor(kind, scale, zero_point), "float32")
    exact = ((codes.astype("int64") - zero_point) * np.float64(scale)).astype("float32")
    assert np.array_equal(made, exact)
    # The runtime multiplies first and subtracts then, so it is off by its own rounding.
    assert np.abs(made - expected).max() <= 0.01 * scale


@given(
    scale=SCALES,
    zero_point=st.integers(-128, 127),
    steps=st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=50),
)
def test_floats_become_the_integers_that_the_runtime_gives_save_at_ties(
    scale: float, zero_point: int, steps: list[float]
) -> None:
    real = (np.array(steps) * scale).astype("float32")
    made = quantize(real, tensor("int8", scale, zero_point)).astype(int)
    expected = by_runtime("QUANTIZE", real, scale, zero_point, "int8").astype(int)
    tie = np.abs(np.abs(real / np.float32(scale)) % 1 - 0.5) < 1e-3
    assert np.all((made == expected) | (tie & (np.abs(made - expected) <= 1)))


@given(scale=SCALES, zero_point=st.integers(-128, 127))
def test_every_integer_survives_the_way_there_and_back(scale: float, zero_point: int) -> None:
    codes = np.arange(-128, 128).astype("int8")
    one = tensor("int8", scale, zero_point)
    assert np.array_equal(quantize(dequantize(codes, one, "float32"), one), codes)


def test_ties_go_to_the_even_step() -> None:
    real = np.array([0.25, 0.75, 1.25, -0.25], "float32")
    assert quantize(real, tensor()).tolist() == [0, 2, 2, 0]


def test_double_precision_is_first_made_single() -> None:
    real = np.array([0.25 + 1e-12], "float64")
    assert quantize(real, tensor()).tolist() == [0]


def test_clipped_values_are_counted() -> None:
    real = np.array([0.0, 63.5, 64.0, -1e9], "float32")
    assert clipped_share(real, tensor()) == 0.5
    assert quantize(real, tensor()).tolist() == [0, 127, 127, -128]
    assert clipped_share(np.zeros(0, "float32"), tensor()) == 0.0
    assert clipped_share(np.full(3, 2**40), tensor("int32", None)) == 0.0


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_an_integer_that_the_tensor_cannot_hold_is_refused(value: int) -> None:
    with pytest.raises(BadInput, match="beyond int32"):
        quantize(np.array([value]), tensor("int32", None))


def test_outputs_have_the_dtype_that_onnx_declares() -> None:
    codes = np.array([1, 2], "int8")
    for dtype in ("float16", "float32", "float64"):
        assert dequantize(codes, tensor(), dtype).dtype == dtype
    assert dequantize(codes.astype("int32"), tensor("int32", None), "int64").dtype == "int64"
