"""ReverseSequence, as TensorFlow's exporter writes every reversal along time."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.normalize import normalize
from splitter.reference import run_onnx
from tests.normalize.support import as_model, model_of, ops


def test_a_reversal_of_everything_is_a_slice() -> None:
    body = """g (float[4,2,3] x) => (float[4,2,3] y) <int64[2] n = {4, 4}> {
      y = ReverseSequence<time_axis = 0, batch_axis = 1>(x, n)
    }"""
    assert set(ops(normalize(as_model(model_of(body))).proto)) == {"Slice"}


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("lengths", [(1, 4), (3, 2), (4, 4)])
def test_lengths_that_are_computed_reverse_as_many(
    axes: tuple[int, int], lengths: tuple[int, int]
) -> None:
    shape = "4,2,3" if axes[0] == 0 else "2,4,3"
    model = model_of(f"""g (float[{shape}] x, int64[2] n) => (float[{shape}] y) {{
      zero = Constant<value = int64 {{0}}>()
      m = Add(n, zero)
      y = ReverseSequence<time_axis = {axes[0]}, batch_axis = {axes[1]}>(x, m)
    }}""")  # fmt: skip
    made = normalize(as_model(model)).proto
    assert "ReverseSequence" not in ops(made)
    x = np.arange(24, dtype=np.float32).reshape([int(n) for n in shape.split(",")])
    feeds = {"x": x, "n": np.asarray(lengths, np.int64)}
    np.testing.assert_array_equal(run_onnx(made, feeds)["y"], run_onnx(model, feeds)["y"])
