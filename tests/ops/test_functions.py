"""Functions of one and two variables, element by element."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case, one

CASES = [
    Case(call.split(" ")[0] + call.partition("<")[2], one(call), **known)  # type: ignore[arg-type]
    for call, known in {
        "Relu": {},
        "Sigmoid": {},
        "Tanh": {},
        "Exp": {},
        "Sin": {},
        "Cos": {},
        "Abs": {},
        "Neg": {},
        "Floor": {"bound": 0.2},
        "Ceil": {"bound": 0.2},
        "Round": {"bound": 0.2},
        "Sign": {"bound": 0.15},
        "Log": {"low": 0.1, "high": 4.0},
        "Sqrt": {"low": 0.0, "high": 4.0},
        "Reciprocal": {"low": 0.3, "high": 3.0},
        "Erf": {},
        "Softplus": {},
        "Softsign": {},
        "HardSwish": {},
        "Mish": {},
        "Elu": {},
        "Elu <alpha=0.5>": {},
        "Celu <alpha=0.7>": {},
        "Selu": {},
        "LeakyRelu": {},
        "LeakyRelu <alpha=0.3>": {},
        "ThresholdedRelu <alpha=0.6>": {"bound": 0.12},
        "HardSigmoid": {},
        "HardSigmoid <alpha=0.3, beta=0.4>": {},
        "Shrink <lambd=0.7, bias=0.2>": {"bound": 0.06},
        "Gelu": {},
        'Gelu <approximate="tanh">': {},
        "Tan": {"low": -1.2, "high": 1.2},
        "Atan": {},
        "Sinh": {},
        "Cosh": {},
        "Asin": {"low": -0.9, "high": 0.9},
        "Acos": {"low": -0.9, "high": 0.9},
        "Asinh": {},
        "Acosh": {"low": 1.1, "high": 4.0},
        "Atanh": {"low": -0.9, "high": 0.9},
        "Softmax <axis=-1>": {"bound": 0.04},
        "Softmax <axis=1>": {"bound": 0.04},
        "LogSoftmax <axis=1>": {"bound": 0.04},
        "Hardmax <axis=1>": {"bound": 0.3},
        "Identity": {},
    }.items()
] + [
    Case(
        "Clip",
        "(float[2,3,5] x) => (float[2,3,5] y) <float lo = {-0.5}, float hi = {1.2}>"
        " { y = Clip (x, lo, hi) }",
    ),
    Case("PRelu", "(float[2,3,4,5] x) => (float[2,3,4,5] y) <float[3,1,1] w> { y = PRelu (x, w) }"),
    Case(
        "PRelu of rank 5",
        "(float[2,3,4,2,5] x) => (float[2,3,4,2,5] y) <float[3,1,1,1] w> { y = PRelu (x, w) }",
    ),
    *(
        Case(
            f"Pow {p}",
            f"(float[3,5] x) => (float[3,5] y) <float p = {{{p}}}> {{ y = Pow (x, p) }}",
            low=0.2,
            bound=0.03,
        )
        for p in ("2.0", "3.0", "0.5", "-0.5", "1.7")
    ),
    Case(
        "Div",
        "(float[3,5] x, float[3,5] z) => (float[3,5] y) { y = Div (x, z) }",
        low=0.5,
        bound=0.03,
    ),
    Case(
        "Mod of a constant",
        "(float[3,50] x) => (float[3,50] y) <float m = {0.75}> { y = Mod <fmod=1> (x, m) }",
        bound=0.2,
        exact=1e-4,
    ),
    Case(
        "comparisons",
        "(float[3,50] x, float[50] z) => (bool[3,50] y, bool[3,50] q)"
        " { y = Greater (x, z) q = LessOrEqual (x, z) }",
        bound=0.02,
    ),
    Case(
        "Where", "(bool[3,5] c, float[3,5] x, float[5] z) => (float[3,5] y) { y = Where (c, x, z) }"
    ),
    Case(
        "Xor and others",
        "(bool[3,5] a, bool[3,5] b) => (bool[3,5] y)"
        " { c = Xor (a, b) d = And (a, b) e = Not (d) y = Or (c, e) }",
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
