"""How much worse outputs are than others."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.verify import Task
from splitter.widen.damage import damage

NONE = Task("none", "")
DETECTION = Task("detection", "", "dets", "labels")


def detections(shift: float = 0.0, *, order: tuple[int, ...] = (0, 1, 2)) -> dict[str, np.ndarray]:
    boxes = np.array([[0.2, 0.2, 0.1, 0.2], [0.5, 0.5, 0.2, 0.2], [0.8, 0.8, 0.4, 0.4]])
    logits = np.array([[3.0, -3.0], [-3.0, 2.0], [-8.0, -8.0]])
    boxes[:, 0] += shift
    rows = list(order)
    return {
        "dets": boxes[None, rows].astype(np.float32),
        "labels": logits[None, rows].astype(np.float32),
    }


def test_equal_outputs_have_no_damage() -> None:
    assert damage(DETECTION, [detections()], [detections()]) == {"dets": 0.0, "labels": 0.0}


def test_queries_in_another_order_are_the_same_detections() -> None:
    cost = damage(DETECTION, [detections()], [detections(order=(1, 0, 2))])
    assert cost == {"dets": 0.0, "labels": 0.0}


def test_a_shift_counts_in_parts_of_the_box_and_by_its_score() -> None:
    cost = damage(DETECTION, [detections()], [detections(0.01)])
    parts = np.array([0.01 / 0.1, 0.01 / 0.2, 0.01 / 0.4]) ** 2 / 4
    weights = 1 / (1 + np.exp(-np.array([3.0, 2.0, -8.0])))
    assert cost["dets"] == pytest.approx(float((parts * weights).sum() / weights.sum()), rel=1e-4)
    assert cost["labels"] == 0.0


def test_a_background_column_does_not_count() -> None:
    task = Task("detection", "", "dets", "labels", classes=1)
    other = detections()
    other["labels"][0, 1, 1] = -5
    assert damage(task, [detections()], [other])["labels"] == 0.0
    assert damage(DETECTION, [detections()], [other])["labels"] > 0.1


def test_other_outputs_count_by_relative_square_and_by_share_of_changed_indices() -> None:
    one = {"y": np.array([3.0, 4.0], np.float32), "i": np.array([1, 2, 3, 4])}
    two = {"y": np.array([3.0, 5.0], np.float32), "i": np.array([1, 2, 3, 5])}
    cost = damage(NONE, [one, one], [one, two])
    assert cost == {"y": 1 / 50, "y moved": (1 / 4) ** 2, "i": 1 / 8}


def test_answers_count_by_the_square_of_the_share_that_changed() -> None:
    one = {"y": np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], np.float32)}
    two = {"y": np.array([[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]], np.float32)}
    cost = damage(NONE, [one], [two])
    assert cost["y largest"] == pytest.approx(1 / 4)
    assert cost["y over half"] == pytest.approx((1 / 2) ** 2)


def test_an_output_over_one_has_no_half() -> None:
    one = {"y": np.array([[1.5, 0.2]], np.float32)}
    assert set(damage(NONE, [one], [one])) == {"y", "y moved"}


def test_a_value_far_off_does_not_hide_that_others_moved() -> None:
    one = {"y": np.array([10.0, 10.0, 10.0, 0.0], np.float32)}
    near = {"y": np.array([10.1, 10.1, 500.0, 0.2], np.float32)}
    off = {"y": np.array([10.9, 10.9, 500.0, 0.2], np.float32)}
    assert damage(NONE, [one], [near])["y moved"] == pytest.approx((1 / 3) ** 2)
    assert damage(NONE, [one], [off])["y moved"] == 1.0
