"""Matrix products and Einsum."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case

CASES = [
    *(
        Case(
            f"Einsum {equation}",
            f"(float[{a}] a, float[{b}] b) => (float[{y}] y)"
            f' {{ y = Einsum <equation="{equation}"> (a, b) }}',
            bound=0.03,
        )
        for equation, a, b, y in (
            ("bhid,bhjd->bhij", "2,3,4,5", "2,3,6,5", "2,3,4,6"),
            ("bchw,bnc->bnhw", "1,4,2,3", "1,5,4", "1,5,2,3"),
            ("bnc,bmc->bnm", "2,3,4", "2,5,4", "2,3,5"),
            ("ij,j->i", "3,4", "4", "3"),
            ("bhwc,hkc->bhwk", "2,3,4,5", "3,6,5", "2,3,4,6"),
            ("i,j->ij", "3", "4", "3,4"),
        )
    ),
    Case(
        "Einsum of one operand",
        '(float[3,4,4] x) => (float[4,3] y) { y = Einsum <equation="bii->ib"> (x) }',
    ),
    Case(
        "MatMul of a constant on the left",
        "(float[2,4,5] x) => (float[2,3,5] y) <float[3,4] w> { y = MatMul (w, x) }",
    ),
    Case("MatMul", "(float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) { y = MatMul (a, b) }"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
