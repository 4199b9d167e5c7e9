"""What an ONNX part gives is judged by what it decides: sets of detections, texts, classes."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Array
from splitter.verify import Behind, Circumstances, Run, Task, Verdict, verify
from splitter.verify.classification import Answers
from splitter.verify.decisions import DetectionDecisions
from splitter.verify.sets import SetJudge

Outputs = dict[str, Array]
BOXES = np.asarray([[0, 0, 10, 10], [20, 20, 40, 40], [5, 30, 15, 60]], np.float32)


def detected(boxes: Array, scores: list[float], classes: list[int]) -> Outputs:
    """As torchvision's detectors give them."""
    return {
        "2037": np.asarray(boxes, np.float32).reshape(-1, 4),
        "2007": np.asarray(classes, np.int64),
        "2006": np.asarray(scores, np.float32),
    }


def judged(*runs: tuple[Outputs, Outputs], asked: str = "", fixed: str = "") -> object:
    judge = SetJudge(asked)
    for one, other in runs:
        judge.add(one, other, fixed=fixed.split())
    found = judge.result()
    return found[0] if found else None


def sets_of(decisions: object) -> tuple[int, int, int]:
    assert isinstance(decisions, DetectionDecisions)
    same = decisions.agreement
    return same.reference, same.candidate, same.found


def test_boxes_scores_and_classes_are_sets_whatever_their_order() -> None:
    one = detected(BOXES, [0.9, 0.8, 0.7], [1, 2, 3])
    other = detected(BOXES[[2, 0, 1]] + 0.5, [0.72, 0.9, 0.81], [3, 1, 2])
    assert sets_of(judged((one, other))) == (3, 3, 3)


def test_another_class_or_place_is_another_detection() -> None:
    one = detected(BOXES, [0.9, 0.8, 0.7], [1, 2, 3])
    other = detected(BOXES + np.asarray([[0], [0], [50]]), [0.9, 0.8, 0.7], [1, 5, 3])
    assert sets_of(judged((one, other))) == (3, 3, 1)


def test_sets_of_other_lengths_and_empty_ones_are_compared() -> None:
    none = detected(np.zeros((0, 4)), [], [])
    one = detected(BOXES[:1], [0.9], [1])
    assert sets_of(judged((none, none), (one, none), (none, one), (one, one))) == (2, 2, 1)


@pytest.mark.parametrize("batch", [False, True])
def test_rows_of_corners_score_and_class_are_detections(batch: bool) -> None:
    rows = np.concatenate([BOXES, [[0.9, 1], [0.8, 2], [0.3, 3]]], axis=1).astype(np.float32)
    other = rows + np.asarray([1, 1, 1, 1, 0.02, 0], np.float32)
    one = {"rows": rows[None] if batch else rows}
    assert sets_of(judged((one, {"rows": other[None] if batch else other[:2]}))) == (2, 2, 2)


def test_seven_columns_begin_with_the_picture() -> None:
    rows = np.concatenate([np.zeros((3, 1)), BOXES, [[1, 0.9], [2, 0.8], [3, 0.7]]], axis=1)
    run = {"out": rows.astype(np.float32)}
    assert sets_of(judged((run, run))) == (3, 3, 3)


def test_boxes_as_centers_and_lengths_overlap_as_what_they_are() -> None:
    centers = [[50, 50, 10, 10], [80, 80, 10, 10]]
    one, other = detected(centers, [0.9, 0.8], [1, 1]), detected(centers, [0.9, 0.8], [1, 1])
    other["2037"] = other["2037"] + np.asarray([[9, 0, 0, 0], [1, 0, 0, 0]], np.float32)
    assert sets_of(judged((one, other))) == (2, 2, 1)


def test_texts_are_answers_and_too_many_of_them_are_changed() -> None:
    one = {"text": np.asarray(["stop", "go", "left"])}
    other = {"text": np.asarray(["stop", "no"])}
    found = judged((one, other))
    assert isinstance(found, Answers)
    assert (found.flips.count, found.flips.total, found.first_flip) == (2, 3, 1)


def test_class_numbers_and_rows_of_classes_are_answers_where_their_shape_is_fixed() -> None:
    logits = np.asarray([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]], np.float32)
    found = judged(({"y": logits}, {"y": logits[:, ::-1]}), fixed="y")
    assert isinstance(found, Answers) and (found.flips.count, found.flips.total) == (1, 2)
    numbers = {"pred": np.asarray([1, 2, 3])}
    found = judged((numbers, {"pred": np.asarray([1, 2, 4])}), fixed="pred")
    assert isinstance(found, Answers) and found.flips.count == 1
    assert judged(({"y": logits}, {"y": logits})) is None, "data may decide how many rows it has"
    assert judged((numbers, numbers), asked="none") is None


def test_a_task_that_the_outputs_are_not_is_an_error() -> None:
    with pytest.raises(SplitterError, match="are no detection"):
        judged(({"y": np.zeros(3, np.float32)},) * 2, asked="detection")


def verified(integer: Outputs, places: Array) -> Verdict:
    """One run of a detector whose TFLite parts hand on scores and the places of boxes."""
    whole = detected(BOXES, [0.9, 0.8, 0.7], [1, 2, 3])
    given = {"places": np.asarray([5, 900, 3], np.int32)}
    behind = Behind(whole, whole, integer, (whole, integer))
    run = Run(given, {"places": places}, {"places": places}, given, behind=behind)
    return verify(
        [run] * 12, ["places"], task=Task("none", ""), circumstances=Circumstances()
    ).verdict


def test_detections_of_the_onnx_part_have_the_gates_of_any_other() -> None:
    same = detected(BOXES, [0.9, 0.8, 0.7], [1, 2, 3])
    good = verified(same, np.asarray([5, 3, 900], np.int32))
    assert good.passed and "100.0 % of 36 detections found again" in good.line
    lost = verified(detected(BOXES[:1], [0.9], [1]), np.asarray([5, 900, 3], np.int32))
    assert not lost.passed and "detections found again 33.3 %" in lost.line


def test_places_that_only_the_onnx_part_reads_are_a_doubt_at_most() -> None:
    none = detected(np.zeros((0, 4)), [], [])
    given = {"places": np.asarray([5, 900, 3], np.int32)}
    made = {"places": np.asarray([900, 5, 3], np.int32)}
    run = Run(given, made, made, given, behind=Behind(none, none, none, (none, none)))
    verdict = verify(
        [run], ["places"], task=Task("none", ""), circumstances=Circumstances()
    ).verdict
    (check,) = [c for c in verdict.checks if c.name.startswith("handed on")]
    assert check.weight == "doubt" and check.measured == "33.3 % of the values equal"
    assert verdict.passed and "no float detection over 0.5" in verdict.line


@pytest.mark.parametrize(("ranked", "passed"), [({"deltas"}, True), (set(), False)])
def test_rows_that_a_ranking_puts_in_order_are_a_doubt_and_others_a_gate(
    ranked: set[str], passed: bool
) -> None:
    none = detected(np.zeros((0, 4)), [], [])
    given = {"deltas": BOXES}
    behind = Behind(none, none, none, (none, none), ranked=frozenset(ranked))
    made = {"deltas": BOXES[[2, 0, 1]]}
    run = Run(given, made, made, given, behind=behind)
    verdict = verify(
        [run], ["deltas"], task=Task("none", ""), circumstances=Circumstances()
    ).verdict
    assert verdict.passed is passed
