"""Attention with masks, causality and grouped heads."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case

CASES = [
    Case(
        "Attention of heads",
        "(float[1,2,4,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,2,4,8] y)"
        " { y = Attention (q, k, v) }",
        opset=23,
        bound=0.05,
    ),
    Case(
        "causal Attention",
        "(float[1,2,5,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,2,5,8] y)"
        " { y = Attention <is_causal=1> (q, k, v) }",
        opset=23,
        bound=0.08,
    ),
    Case(
        "grouped Attention",
        "(float[1,4,4,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,4,4,8] y)"
        " { y = Attention (q, k, v) }",
        opset=23,
        bound=0.05,
    ),
    Case(
        "Attention with a mask",
        "(float[1,4,16] q, float[1,5,16] k, float[1,5,16] v, bool[4,5] m)"
        " => (float[1,4,16] y) { y = Attention <q_num_heads=2, kv_num_heads=2> (q, k, v, m) }",
        opset=23,
        bound=0.08,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
