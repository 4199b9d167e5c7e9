"""Rewrites that move the border: what an NPU does not take, written as what it takes."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.graph import Graph, Unit
from splitter.ops import OPS
from splitter.ops.registry import fragment
from splitter.rules.support import as_int8, check_lite
from splitter.rules.targets import load_target
from tests.ops.lowered import Case, graph_of, parsed

CASES = [
    Case(
        "Mul of a column and a row",
        "(float[1,5,1] a, float[1,1,7] b) => (float[1,5,7] y) { y = Mul (a, b) }",
    ),
    Case(
        "Mul of a column and a constant row",
        "(float[1,5,1] a) => (float[1,5,7] y) <float[7] w> { y = Mul (a, w) }",
    ),
    Case(
        "Add of two that are both short",
        "(float[4,1,6] a, float[1,20,6] b) => (float[4,20,6] y) { y = Add (a, b) }",
    ),
    Case(
        "Sub with a long middle axis",
        "(float[4,1,6] a, float[1,30,1] b) => (float[4,30,6] y) { y = Sub (a, b) }",
    ),
    Case(
        "Max over three axes",
        "(float[3,1,5,1] a, float[4,1,6] b) => (float[3,4,5,6] y) { y = Max (a, b) }",
    ),
    Case(
        "Slice every second",
        "(float[1,6,8] x) => (float[1,6,4] y) { s = Constant <value_ints=[1]> ()"
        " e = Constant <value_ints=[8]> () a = Constant <value_ints=[2]> ()"
        " t = Constant <value_ints=[2]> () y = Slice (x, s, e, a, t) }",
    ),
    Case(
        "Slice every second row and third column",
        "(float[2,9,10,3] x) => (float[2,4,3,3] y) { s = Constant <value_ints=[1, 1]> ()"
        " e = Constant <value_ints=[9, 9]> () a = Constant <value_ints=[1, 2]> ()"
        " t = Constant <value_ints=[2, 3]> () y = Slice (x, s, e, a, t) }",
    ),
    Case(
        "Softmax of many rows",
        "(float[1,3000,2,3] x) => (float[1,3000,2,3] y) { y = Softmax <axis=-1> (x) }",
    ),
    Case(
        "Softmax of many rows over the middle axis",
        "(float[1,1500,2,3] x) => (float[1,1500,2,3] y) { y = Softmax <axis=2> (x) }",
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


IMX95 = load_target("imx95")


def fitting(body: str, op: str) -> list[str]:
    """Lowerings of the one unit of this operator that break no rule of the i.MX95."""
    graph: Graph = graph_of(parsed(body, opset=22))
    (unit,) = [unit for unit in graph.units if unit.op == op]
    return [way.name for way in OPS[op].lowerings if fits(graph, unit, way.name)]


def fits(graph: Graph, unit: Unit, name: str) -> bool:
    way = next(way for way in OPS[unit.op].lowerings if way.name == name)
    if way.applies(graph, unit) is not None:
        return False
    return not check_lite(as_int8(fragment(graph, unit, way)), IMX95, trust="proxy")


def test_a_product_that_is_broadcast_on_both_sides_fits_when_written_out() -> None:
    body = "(float[1,5,1] a, float[1,1,7] b) => (float[1,5,7] y) { y = Mul (a, b) }"
    assert fitting(body, "Mul") == ["expanded"]


def test_a_slice_with_steps_fits_when_written_with_reshapes() -> None:
    assert fitting(CASES[5].body, "Slice") == ["reshape"]


def test_a_softmax_of_too_many_rows_fits_in_pieces() -> None:
    assert fitting(CASES[7].body, "Softmax") == ["softmax_by_rows"]


def test_grid_sample_fits_as_two_products() -> None:
    body = (
        "(float[1,3,6,8] x, float[1,4,5,2] g) => (float[1,3,4,5] y)"
        ' { y = GridSample <mode="linear"> (x, g) }'
    )
    assert fitting(body, "GridSample") == ["separable"]


def test_copies_made_by_a_product_with_ones_are_exact_in_int8() -> None:
    case = Case(
        "copies",
        "(float[1,64,1] a, float[1,1,40] b) => (float[1,64,40] y) { y = Add (a, b) }",
    )
    errors = {names: lowered.integer_error() for names, lowered in case.lowerings()}
    assert len(errors) == 2
    low, high = sorted(errors.values())
    assert np.isclose(low, high, rtol=0.05)
