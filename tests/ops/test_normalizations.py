"""Normalizations over channels, groups, images and any axis."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case, one

CASES = [
    Case(
        "InstanceNormalization",
        "(float[2,3,6,7] x) => (float[2,3,6,7] y) <float[3] s, float[3] b>"
        " { y = InstanceNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "InstanceNormalization of one axis",
        "(float[2,3,16] x) => (float[2,3,16] y) <float[3] s, float[3] b>"
        " { y = InstanceNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "GroupNormalization",
        "(float[2,6,5,4] x) => (float[2,6,5,4] y) <float[6] s, float[6] b>"
        " { y = GroupNormalization <num_groups=3> (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "RMSNormalization",
        "(float[2,6,16] x) => (float[2,6,16] y) <float[16] s> { y = RMSNormalization (x, s) }",
        opset=23,
        bound=0.03,
    ),
    Case(
        "LayerNormalization",
        "(float[2,6,16] x) => (float[2,6,16] y) <float[16] s, float[16] b>"
        " { y = LayerNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case("LpNormalization", one("LpNormalization <axis=1>"), bound=0.03),
    Case("LpNormalization 1", one("LpNormalization <axis=2, p=1>"), bound=0.04),
    Case("LRN", one("LRN <size=3, alpha=0.5, beta=0.75>", shape="1,8,4,5"), bound=0.03),
    Case(
        "BatchNormalization",
        "(float[1,4,5,5] x) => (float[1,4,5,5] y)"
        " <float[4] s, float[4] b, float[4] m, float[4] v = {0.5, 1.0, 2.0, 3.0}>"
        " { y = BatchNormalization (x, s, b, m, v) }",
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
