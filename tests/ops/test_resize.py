"""Resize in every mode and coordinate transformation."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case


def resize(attrs: str, out: str, scales: str) -> str:
    lists = ", ".join(scales.split())
    return (
        f"(float[1,3,6,8] x) => (float[{out}] y) <float[4] s = {{1, 1, {lists}}}>"
        f" {{ y = Resize <{attrs}> (x, , s) }}"
    )


def _resizes() -> list[Case]:
    cases = []
    for mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        for kind in ("linear", "cubic"):
            attrs = f'mode="{kind}", coordinate_transformation_mode="{mode}"'
            cases.append(Case(f"{kind} {mode} up", resize(attrs, "1,3,12,24", "2 3")))
            cases.append(Case(f"{kind} {mode} down", resize(attrs, "1,3,3,2", "0.5 0.25")))
    for mode in ("half_pixel", "align_corners", "asymmetric"):
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            attrs = (
                f'mode="nearest", coordinate_transformation_mode="{mode}", nearest_mode="{nearest}"'
            )
            cases.append(Case(f"nearest {mode} {nearest}", resize(attrs, "1,3,12,20", "2 2.5")))
    for nearest in ("floor", "round_prefer_floor", "ceil"):
        attrs = (
            'mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn",'
            f' nearest_mode="{nearest}"'
        )
        up, down = resize(attrs, "1,3,12,11", "2 1.375"), resize(attrs, "1,3,3,3", "0.5 0.375")
        cases.append(Case(f"nearest as TensorFlow {nearest} up", up, opset=13))
        cases.append(Case(f"nearest as TensorFlow {nearest} down", down, opset=13))
    for attrs in (
        'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"',
        'mode="nearest", nearest_mode="round_prefer_ceil"',
        'mode="linear", coordinate_transformation_mode="align_corners"',
    ):
        for factors, out in (("2 2.05", "1,3,24,41"), ("0.41666666 0.35", "1,3,5,7")):
            body = resize(attrs, out, factors).replace("1,3,6,8", "1,3,12,20")
            cases.append(Case(f"lengths by {factors} {attrs}", body, opset=13))
    attrs = 'mode="linear", antialias=1'
    cases.append(Case("linear with antialias", resize(attrs, "1,3,3,4", "0.5 0.5")))
    attrs = 'mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5'
    cases.append(Case("cubic with excluded outside", resize(attrs, "1,3,9,16", "1.5 2")))
    cases.append(
        Case(
            "trilinear",
            "(float[1,2,3,4,5] x) => (float[1,2,6,4,10] y) <float[5] s = {1, 1, 2, 1, 2}>"
            ' { y = Resize <mode="linear"> (x, , s) }',
        )
    )
    return cases


CASES = _resizes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
