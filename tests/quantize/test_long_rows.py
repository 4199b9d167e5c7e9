"""Softmax of long rows in 16 bits."""

from __future__ import annotations

import numpy as np

from tests.ops.lowered import Lowered, every_lowering, parsed
from tests.quantize.wide import outputs, wide

BODY = "(float[1,5,{length}] x) => (float[1,5,{length}] y) {{ y = Softmax<axis = -1> (x) }}"


def lowered(length: int) -> Lowered:
    """Rows of which one entry stands out and all others are next to nothing."""
    x = np.random.default_rng(0).uniform(-30, -12, (1, 5, length)).astype(np.float32)
    x[:, np.arange(5), np.arange(5)] = np.linspace(-2, 3, 5)
    x[:, :, 7] = 0.0
    model = parsed(BODY.format(length=length), opset=17)
    return next(made for _, made in every_lowering(model, [{"x": x}]))


def test_what_is_next_to_nothing_adds_next_to_nothing() -> None:
    made = lowered(3000)
    graph = wide(made)
    assert "SOFTMAX" not in [op.code for op in graph.operators]
    assert np.abs(outputs(graph, made.samples[0]) - made.wanted[0]["y"]).max() <= 2e-3


def test_short_rows_stay_with_the_kernel() -> None:
    assert [op.code for op in wide(lowered(64)).operators] == ["SOFTMAX"]
