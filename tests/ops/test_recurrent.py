"""LSTM, GRU and RNN, unrolled."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case


def cell(name: str, gates: int, directions: int, attrs: str, *, layout: int = 0) -> Case:
    x, y = ("3,5,4", f"3,5,{directions},6") if layout else ("5,3,4", f"5,{directions},3,6")
    state = f"3,{directions},6" if layout else f"{directions},3,6"
    cells = ", c" if name == "LSTM" else ""
    shown = f", float[{state}] c" if cells else ""
    body = (
        f"(float[{x}] x, float[{state}] h0) => (float[{y}] y, float[{state}] h{shown})"
        f" <float[{directions},{gates * 6},4] w, float[{directions},{gates * 6},6] r,"
        f" float[{directions},{gates * 12}] b>"
        f" {{ y, h{cells} = {name} <hidden_size=6{attrs}> (x, w, r, b, , h0) }}"
    )
    return Case(f"{name}{attrs}", body, low=-1.0, high=1.0, bound=0.03)


CASES = [
    cell("LSTM", 4, 1, ""),
    cell("LSTM", 4, 1, ', direction="reverse"'),
    cell("LSTM", 4, 2, ', direction="bidirectional"'),
    cell("GRU", 3, 1, ""),
    cell("GRU", 3, 2, ', direction="bidirectional", linear_before_reset=1'),
    cell("RNN", 1, 1, ', activations=["Relu"]'),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
