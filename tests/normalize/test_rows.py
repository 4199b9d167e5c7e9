"""Rows picked from rows that were picked or put together."""

from __future__ import annotations

import onnx
import pytest

from splitter.normalize.rows import pick_rows
from tests.normalize.support import model_of, ops, run_passes, same

INPUTS = "(float[2,4,3] a, float[2,5,3] b, float[2,6,3] c) => (float[2,{rows},3] y)"


def after(body: str, rows: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    model = model_of(f"g {INPUTS.format(rows=rows)} {{ {body} }}")
    return model, run_passes(model, pick_rows)


def slice_text(out: str, source: str, *numbers: int) -> str:
    names = [f"{out}_{index}" for index in range(4)]
    constants = "".join(
        f" {name} = Constant<value = int64[1] {{{number}}}>()"
        for name, number in zip(names, numbers, strict=True)
    )
    return f"{constants} {out} = Slice({source}, {', '.join(names)})"


def gather_text(out: str, source: str, *rows: int) -> str:
    written = ", ".join(map(str, rows))
    return (
        f" {out}_i = Constant<value = int64[{len(rows)}] {{{written}}}>()"
        f" {out} = Gather<axis=1>({source}, {out}_i)"
    )


def test_every_other_row_of_one_operand_reads_the_operand() -> None:
    body = "t = Concat<axis=1>(a, b, c)" + slice_text("u", "t", 4, 9, 1, 2) + " y = Neg(u)"
    before, made = after(body, 3)
    assert ops(made) == {"Slice": 1, "Neg": 1} and same(before, made)


def test_rows_of_rows_are_one_gather() -> None:
    body = gather_text("t", "c", 5, 3, 1, -6) + gather_text("u", "t", 3, 0, 1) + " y = Neg(u)"
    before, made = after(body, 3)
    assert ops(made) == {"Gather": 1, "Neg": 1} and same(before, made)


def test_assignments_in_a_row_are_one_concat_and_one_gather() -> None:
    body = (
        "t = Concat<axis=1>(a, b)" + gather_text("u", "t", 0, 4, 2, 5)
        + " v = Concat<axis=1>(u, c)" + gather_text("w", "v", 4, 1, 6, 3) + " y = Neg(w)"
    )  # fmt: skip
    before, made = after(body, 4)
    (concat,) = (node for node in made.graph.node if node.op_type == "Concat")
    assert ops(made) == {"Concat": 1, "Gather": 1, "Neg": 1}
    assert sorted(concat.input) == ["b", "c"] and same(before, made)


def test_an_operand_that_nothing_reads_is_left_out() -> None:
    body = "t = Concat<axis=1>(a, b, c)" + slice_text("u", "t", 4, 15, 1, 1) + " y = Neg(u)"
    before, made = after(body, 11)
    assert ops(made) == {"Concat": 1, "Neg": 1} and same(before, made)


@pytest.mark.parametrize("numbers", [(1, 14, 1, 1), (14, 0, 1, -1)], ids=["forward", "backward"])
def test_rows_of_all_operands_stay(numbers: tuple[int, ...]) -> None:
    rows = len(range(numbers[0], numbers[1], numbers[3]))
    body = "t = Concat<axis=1>(a, b, c)" + slice_text("u", "t", *numbers) + " y = Neg(u)"
    before, made = after(body, rows)
    assert ops(made) == {"Concat": 1, "Slice": 1, "Neg": 1} and same(before, made)


def test_scores_split_off_a_turned_concat_never_meet_the_boxes() -> None:
    """YOLOv10 and later rank the scores that they have just put beside the boxes."""
    model = model_of("""g (float[2,4,9] boxes, float[2,3,9] scores)
        => (float[2,9,4] y, float[2,9] z) {
      both = Concat<axis=1>(boxes, scores)
      turned = Transpose<perm=[0, 2, 1]>(both)
      sizes = Constant<value = int64[2] {4, 3}>()
      y0, s = Split<axis=-1>(turned, sizes)
      last = Constant<value = int64[1] {2}>()
      y = Neg(y0)
      z = ReduceMax<keepdims=0>(s, last)
    }""", opset=18)  # fmt: skip
    made = run_passes(model, pick_rows)
    assert ops(made) == {"Transpose": 2, "Neg": 1, "ReduceMax": 1} and same(model, made)


def test_levels_put_together_and_split_by_kind_are_put_together_by_kind() -> None:
    """YOLOv8: boxes and classes of each level, levels side by side, boxes and classes apart."""
    model = model_of("""g (float[1,4,9] b0, float[1,3,9] c0, float[1,4,5] b1, float[1,3,5] c1)
        => (float[1,4,14] y, float[1,3,14] z) {
      l0 = Concat<axis=1>(b0, c0)
      l1 = Concat<axis=1>(b1, c1)
      all = Concat<axis=2>(l0, l1)
      sizes = Constant<value = int64[2] {4, 3}>()
      b, c = Split<axis=1>(all, sizes)
      y = Neg(b)
      z = Sigmoid(c)
    }""", opset=18)  # fmt: skip
    made = run_passes(model, pick_rows)
    assert ops(made) == {"Concat": 2, "Neg": 1, "Sigmoid": 1} and same(model, made)


def test_a_split_of_anything_else_stays() -> None:
    model = model_of("""g (float[2,4,9] x) => (float[2,1,9] y, float[2,3,9] z) {
      sizes = Constant<value = int64[2] {1, 3}>()
      a, b = Split<axis=1>(x, sizes)
      y = Neg(a)
      z = Neg(b)
    }""", opset=18)  # fmt: skip
    assert ops(run_passes(model, pick_rows)) == {"Split": 1, "Neg": 2}


def test_rows_along_another_axis_stay() -> None:
    body = (
        "t = Concat<axis=1>(a, b)" + slice_text("u", "t", 0, 3, 2, 2) + " y = Concat<axis=2>(u, u)"
    )
    model = model_of(f"g {INPUTS.format(rows=9).replace(',3] y', ',4] y')} {{ {body} }}")
    made = run_passes(model, pick_rows)
    assert ops(made) == {"Concat": 2, "Slice": 1} and same(model, made)
