"""The precision metric against pycocotools, the reference implementation."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from splitter.graph import Array
from splitter.verify.coco import Truth, average_precision
from splitter.verify.detections import Detections


def scenes(
    seed: int, *, images: int = 25, classes: int = 4
) -> tuple[list[Detections], list[Truth]]:
    """Random objects, and detections that are jittered copies, doubles and inventions of them."""
    rng = np.random.default_rng(seed)
    found, truth = [], []
    for _ in range(images):
        count = int(rng.integers(0, 6))
        corner = rng.uniform(0, 90, (count, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(4, 40, (count, 2))], axis=1)
        labels = rng.integers(0, classes, count)
        copies = np.repeat(boxes, 2, axis=0) + rng.normal(0, 2.0, (2 * count, 4))
        false_corner = rng.uniform(0, 90, (5, 2))
        false = np.concatenate([false_corner, false_corner + rng.uniform(4, 40, (5, 2))], axis=1)
        all_boxes = np.concatenate([copies, false])
        all_labels = np.concatenate([np.repeat(labels, 2), rng.integers(0, classes, 5)])
        scores = np.round(rng.uniform(0, 1, len(all_boxes)), 2)  # rounded: ties must agree too
        order = np.argsort(-scores, kind="stable")
        found.append(Detections(all_boxes[order], scores[order], all_labels[order]))
        truth.append(Truth(boxes.astype(np.float32), labels))
    return found, truth


def by_pycocotools(found: list[Detections], truth: list[Truth], classes: int) -> Array:
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    objects, detections = [], []
    for index, (mine, goal) in enumerate(zip(found, truth, strict=True), start=1):
        for box, label in zip(goal.boxes, goal.classes, strict=True):
            extent = [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]
            objects.append(
                {
                    "id": len(objects) + 1,
                    "image_id": index,
                    "category_id": int(label) + 1,
                    "bbox": extent,
                    "area": extent[2] * extent[3],
                    "iscrowd": 0,
                }
            )
        for box, score, label in zip(mine.boxes, mine.scores, mine.classes, strict=True):
            extent = [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]
            detections.append(
                {
                    "image_id": index,
                    "category_id": int(label) + 1,
                    "score": float(score),
                    "bbox": extent,
                }
            )
    with contextlib.redirect_stdout(io.StringIO()):
        given = coco.COCO()
        given.dataset = {
            "images": [{"id": i + 1, "width": 128, "height": 128} for i in range(len(truth))],
            "annotations": objects,
            "categories": [{"id": c + 1, "name": str(c)} for c in range(classes)],
        }
        given.createIndex()
        run = cocoeval.COCOeval(given, given.loadRes(detections), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return np.array([run.stats[1], run.stats[0]])


@pytest.mark.parametrize("seed", range(6))
def test_precision_equals_pycocotools(seed: int) -> None:
    found, truth = scenes(seed)
    mine = average_precision(found, truth)
    assert [mine.ap50, mine.ap] == pytest.approx(by_pycocotools(found, truth, 4), abs=1e-12)


def test_more_than_a_hundred_detections_of_an_image_are_cut_as_pycocotools_cuts_them() -> None:
    rng = np.random.default_rng(3)
    goal = np.array([[10.0, 10, 40, 40], [60, 60, 90, 100]])
    boxes = goal[rng.integers(0, 2, 150)] + rng.normal(0, 6, (150, 4))
    scores = np.sort(rng.uniform(0, 1, 150))[::-1]
    found = [Detections(boxes, scores, np.zeros(150, np.int64))]
    truth = [Truth(goal, np.zeros(2, np.int64))]
    mine = average_precision(found, truth)
    assert [mine.ap50, mine.ap] == pytest.approx(by_pycocotools(found, truth, 1), abs=1e-12)


def test_inverted_boxes_are_no_false_alarms_as_in_pycocotools() -> None:
    goal = np.array([[10.0, 10, 40, 40]])
    boxes = np.array([[50.0, 10, 40, 40], [10, 10, 40, 41], [80, 80, 90, 90]])
    found = [Detections(boxes, np.array([0.9, 0.8, 0.7]), np.zeros(3, np.int64))]
    truth = [Truth(goal, np.zeros(1, np.int64))]
    mine = average_precision(found, truth)
    assert [mine.ap50, mine.ap] == pytest.approx(by_pycocotools(found, truth, 1), abs=1e-12)


def test_perfect_detections_have_precision_one() -> None:
    truth = [Truth(np.array([[0.0, 0, 10, 10]]), np.array([2]))]
    found = [Detections(truth[0].boxes, np.array([0.3]), truth[0].classes)]
    assert average_precision(found, truth).ap == pytest.approx(1.0)


def test_no_objects_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no objects"):
        average_precision([], [])
