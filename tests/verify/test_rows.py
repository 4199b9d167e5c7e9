"""Outputs with as many rows as the data decides: rows found again, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.verify import Circumstances, Run, Task, decide, measure
from splitter.verify.rows import count_found

NONE = Task("none", "asked for")


def test_whole_numbers_must_be_equal_and_each_row_counts_once() -> None:
    one = np.array([[0, 0, 3], [0, 1, 5], [0, 1, 5]])
    other = np.array([[0, 1, 5], [0, 0, 4]])
    assert count_found(one, other) == 1
    assert count_found(one, one[::-1]) == 3


def test_real_numbers_may_be_off_by_a_part_of_the_span_of_their_column() -> None:
    one = np.array([[0.0, 100.0], [1.0, 300.0]])
    assert count_found(one, one + np.array([0.09, 19.0])) == 2
    assert count_found(one, one + np.array([0.11, 0.0])) == 0
    near = np.array([[0.9], [0.91]])
    assert count_found(near, near + 0.04) == 2 and count_found(near, near + 0.06) == 0


@pytest.mark.parametrize("rows", [0, 3])
def test_no_row_on_one_side_is_none_found(rows: int) -> None:
    assert count_found(np.zeros((rows, 2)), np.zeros((0, 2))) == 0


def runs(made: list[int], float_rows: int | None = None) -> list[Run]:
    found = []
    for count in made:
        original = {"y": np.arange(12.0).reshape(4, 3)}
        integer = {"y": np.arange(3.0 * count).reshape(count, 3)}
        whole = original if float_rows is None else {"y": original["y"][:float_rows]}
        found.append(Run(original, integer, integer, whole))
    return found


def test_another_number_of_rows_in_integers_is_a_doubt_with_the_count() -> None:
    findings = measure(runs([4, 3, 5]), ["y"], task=NONE, open_ended=["y"])
    stage = findings.stage("quantization")
    assert stage is not None and not stage.bit_equal
    rows = stage.tensors[0].rows
    assert rows is not None and str(rows) == "11 of 12 rows found again, 1 extra"
    assert (rows.runs, rows.alike) == (3, 1)
    verdict = decide(findings, Circumstances())
    assert verdict.passed and "rows of y found again" in verdict.line


def test_another_number_of_rows_in_float_fails() -> None:
    findings = measure(runs([4], float_rows=3), ["y"], task=NONE, open_ended=["y"])
    assert not decide(findings, Circumstances()).passed


def test_a_fixed_output_of_another_shape_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="against"):
        measure(runs([3]), ["y"], task=NONE)
