"""Which decisions outputs stand for."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Value
from splitter.verify.tasks import find_task

DETS = Value("dets", (1, 40, 4), "float32")
LABELS = Value("labels", (1, 40, 9), "float32")


def test_boxes_and_logits_of_the_same_queries_are_a_detector() -> None:
    task = find_task([LABELS, DETS], classes=8)
    assert (task.kind, task.boxes, task.scores, task.classes) == ("detection", "dets", "labels", 8)


def test_class_names_that_are_not_one_short_of_the_columns_leave_all_columns() -> None:
    assert find_task([DETS, LABELS], classes=5).classes == 0


def test_four_classes_are_told_from_boxes_by_the_names() -> None:
    boxes = Value("pred_boxes", (1, 10, 4), "float32")
    scores = Value("pred_logits", (1, 10, 4), "float32")
    for outputs in ([boxes, scores], [scores, boxes]):
        task = find_task(outputs)
        assert (task.boxes, task.scores) == ("pred_boxes", "pred_logits")


def test_one_row_of_classes_is_a_classification() -> None:
    assert find_task([Value("y", (1, 1000), "float32")]).kind == "classification"


def test_other_outputs_are_no_task_that_is_known() -> None:
    assert find_task([Value("mask", (1, 21, 64, 64), "float32")]).kind == "none"
    assert find_task([Value("y", (1, 1), "float32")]).kind == "none"


@pytest.mark.parametrize("asked", ["detr", "detection"])
def test_a_task_asked_for_that_the_outputs_cannot_be_is_refused(asked: str) -> None:
    with pytest.raises(SplitterError, match="are no detection"):
        find_task([Value("y", (1, 1000), "float32")], asked=asked)


def test_an_unknown_task_lists_the_valid_ones() -> None:
    with pytest.raises(SplitterError) as caught:
        find_task([DETS, LABELS], asked="segment")
    assert "detection, classification, none" in caught.value.hint


def test_none_can_be_asked_for() -> None:
    assert find_task([DETS, LABELS], asked="none").kind == "none"


def test_answers_of_a_sequence_can_be_asked_for() -> None:
    logits = Value("logits", (1, 64, 500), "float32")
    assert find_task([logits], asked="classify").scores == "logits"
