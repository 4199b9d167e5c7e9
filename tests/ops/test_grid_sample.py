"""GridSample in every mode and padding."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case


def grid(mode: str, padding: str, corners: int) -> Case:
    attrs = f'mode="{mode}", padding_mode="{padding}", align_corners={corners}'
    body = (
        f"(float[1,3,6,8] x, float[1,4,5,2] g) => (float[1,3,4,5] y)"
        f" {{ y = GridSample <{attrs}> (x, g) }}"
    )
    bound = {"linear": 0.06, "nearest": 0.5, "cubic": 0.06}[mode]
    return Case(
        f"GridSample {mode} {padding} {corners}", body, low=-1.3, high=1.3, bound=bound, exact=5e-5
    )


CASES = [
    grid(m, p, c)
    for m in ("linear", "nearest", "cubic")
    for p in ("zeros", "border", "reflection")
    for c in (0, 1)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
