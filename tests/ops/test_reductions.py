"""Reductions and other operators along an axis."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case


def reduced(name: str, out: str, **known: float) -> Case:
    body = f"(float[2,4,6] x) => (float[{out}] y) <int64[1] a = {{1}}> {{ y = {name} (x, a) }}"
    return Case(name, body, **known)  # type: ignore[arg-type]


CASES = [
    *(
        reduced(name, "2,1,6", bound=0.03)
        for name in (
            "ReduceMean",
            "ReduceSum",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSumExp",
        )
    ),
    reduced("ReduceLogSum", "2,1,6", low=0.2, bound=0.03),
    reduced("ReduceProd", "2,1,6", low=0.5, bound=0.06),
    Case(
        "ReduceMean of all but one axis, which stay",
        "(float[2,4,6] x) => (float[2,4,6] y) <int64[2] a = {1, 2}> {"
        " m = ReduceMean (x, a) y = Sub (x, m) }",
        bound=0.03,
    ),
    Case(
        "ArgMax of the last of equals",
        "(float[3,9] x) => (int64[3,1] y) { y = ArgMax <axis=1, select_last_index=1> (x) }",
        bound=0.4,
    ),
    Case("CumSum", "(float[2,7] x) => (float[2,7] y) <int64 a = {1}> { y = CumSum (x, a) }"),
    Case(
        "CumSum reversed",
        "(float[7,2] x) => (float[7,2] y) <int64 a = {0}>"
        " { y = CumSum <reverse=1, exclusive=1> (x, a) }",
    ),
    Case(
        "TopK smallest",
        "(float[2,50] x) => (float[2,3] y, int64[2,3] i) <int64[1] k = {3}>"
        " { y, i = TopK <largest=0> (x, k) }",
        bound=0.7,
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
