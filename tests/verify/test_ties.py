"""Near ties: told from a difference that is an error."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.verify import Ranking, Run, Task, measure, near_tie

SCORES = np.array([[1.0, 0.5, 0.5000001, 0.2]], np.float32)
TASK = Task("none", "")


def ranking(reference: list[int], candidate: list[int]) -> Ranking:
    return Ranking(SCORES, np.array([reference]), np.array([candidate]))


def run(value: float, *, tie: float | None = None) -> Run:
    one = {"y": np.full(3, 1.0, np.float32)}
    return Run(one, one, one, {"y": np.full(3, value, np.float32)}, tie=tie)


def test_equal_rankings_are_no_tie() -> None:
    assert near_tie([ranking([0, 2], [0, 2])]) is None
    assert near_tie([]) is None


def test_two_scores_a_rounding_error_apart_are_a_tie_in_order_and_at_the_last_place() -> None:
    for swapped in (ranking([0, 2, 1], [0, 1, 2]), ranking([0, 2], [0, 1])):
        assert near_tie([swapped]) == pytest.approx(1.2e-7, rel=0.1)


def test_scores_apart_by_more_than_rounding_are_no_tie() -> None:
    assert near_tie([ranking([0, 2], [0, 3])]) is None


def test_only_the_first_difference_counts() -> None:
    assert near_tie([ranking([0, 2], [0, 1]), ranking([0, 2], [0, 3])]) is not None
    assert near_tie([ranking([0, 2], [0, 3]), ranking([0, 2], [0, 1])]) is None


def test_the_axis_of_the_ranking_is_followed() -> None:
    made = Ranking(SCORES.T, np.array([[0], [2]]), np.array([[0], [1]]), axis=0)
    assert near_tie([made]) is not None


def test_runs_with_a_tie_are_left_out_of_the_conversion_and_counted() -> None:
    findings = measure([run(1.0), run(3.0, tie=1e-7)], ["y"], task=TASK)
    stage = findings.stage("conversion")
    assert stage is not None
    assert (stage.runs, stage.ties, stage.gap) == (1, 1, 1e-7)
    assert stage.tensors[0].relative_rms == 0.0


def test_when_every_run_has_a_tie_none_is_left_out() -> None:
    stage = measure([run(3.0, tie=1e-7)], ["y"], task=TASK).stage("conversion")
    assert stage is not None
    assert (stage.runs, stage.ties) == (1, 0)
    assert stage.tensors[0].relative_rms == 2.0


def test_rewrites_are_a_figure_of_their_own() -> None:
    one, two = ({"y": np.full(3, v, np.float32)} for v in (1.0, 1.5))
    findings = measure([Run(one, one, one, one, two)], ["y"], task=TASK)
    assert [stage.stage for stage in findings.stages] == [
        "conversion",
        "rewrites",
        "quantization",
        "split",
    ]
    errors = {stage.stage: stage.tensors[0].relative_rms for stage in findings.stages}
    assert errors["rewrites"] == 0.5
    assert errors["conversion"] == errors["quantization"] == 0.0


def test_parts_that_were_not_run_are_no_stage() -> None:
    one = {"y": np.ones(3, np.float32)}
    findings = measure([Run(one, one, None)], ["y"], task=TASK)
    assert [stage.stage for stage in findings.stages] == ["quantization"]
