"""COCO's mean average precision, equal to pycocotools' COCOeval (bbox, all areas, 100 detections).

Decides the metric only. Written out in numpy because it needs no more than that, and checked
against pycocotools 2.0.11 in the tests. No crowd regions and no ignored objects: the validation
files of this tool have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitter.graph import Array
from splitter.verify.detections import Detections

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
PER_IMAGE = 100
_WIDEST = 1e10  # COCO's "all" area range is 0 to 1e5 squared


@dataclass(frozen=True)
class Truth:
    """The objects of one image: boxes [N, 4] x0 y0 x1 y1 in pixels, classes [N]."""

    boxes: Array
    classes: Array


@dataclass(frozen=True, slots=True)
class Precision:
    """Mean average precision, 0..1: at overlap 0.50, and averaged over 0.50 to 0.95."""

    ap50: float
    ap: float


def average_precision(found: Sequence[Detections], truth: Sequence[Truth]) -> Precision:
    """mAP50 and mAP50-95 over the classes that occur in `truth`; boxes of both in pixels.

    Raises ValueError when no image holds an object.
    """
    classes = np.unique(np.concatenate([t.classes for t in truth])) if truth else np.zeros(0)
    if not classes.size:
        raise ValueError("no objects to measure precision against")
    table = np.array([_class_precision(found, truth, int(label)) for label in classes])
    return Precision(float(table[:, 0].mean()), float(table.mean()))


def _class_precision(found: Sequence[Detections], truth: Sequence[Truth], label: int) -> Array:
    """Average precision of one class at each overlap threshold, [10]."""
    objects = 0
    scores: list[Array] = []
    hits: list[Array] = []
    ignored: list[Array] = []
    for detections, objects_here in zip(found, truth, strict=True):
        goal = _extents(objects_here.boxes[objects_here.classes == label])
        objects += len(goal)
        mine = np.flatnonzero(detections.classes == label)
        mine = mine[np.argsort(-detections.scores[mine], kind="stable")][:PER_IMAGE]
        boxes = _extents(detections.boxes[mine])
        hit = _hits(boxes, goal)
        area = boxes[:, 2] * boxes[:, 3]
        scores.append(detections.scores[mine])
        hits.append(hit)
        ignored.append(~hit & ((area < 0) | (area > _WIDEST)))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hit_all = np.concatenate(hits, axis=1)[:, order]
    counted = ~np.concatenate(ignored, axis=1)[:, order]
    return np.array([_area_under(h, k, objects) for h, k in zip(hit_all, counted, strict=True)])


def _extents(corners: Array) -> Array:
    """Corner boxes as x, y, width, height in float64: COCO's own form, so sums round alike."""
    boxes = corners.astype(np.float64).reshape(-1, 4)
    # Widths are taken in the given type, as a caller of pycocotools would hand them over.
    sizes = (corners.reshape(-1, 4)[:, 2:] - corners.reshape(-1, 4)[:, :2]).astype(np.float64)
    return np.concatenate([boxes[:, :2], sizes], axis=1)


def _hits(boxes: Array, goal: Array) -> Array:
    """Whether each detection (best first) takes an object, for each threshold: [10, N]."""
    hit = np.zeros((len(THRESHOLDS), len(boxes)), bool)
    if not len(goal):
        return hit
    table = _coco_overlaps(boxes, goal)
    free = np.ones((len(THRESHOLDS), len(goal)), bool)
    levels = np.arange(len(THRESHOLDS))
    least = np.minimum(THRESHOLDS, 1 - 1e-10)
    for row in np.flatnonzero(table.max(axis=1) >= least[0]):
        open_here = free & (table[row] >= least[:, None])
        value = np.where(open_here, table[row], -1.0)
        best = len(goal) - 1 - np.argmax(value[:, ::-1], axis=1)  # of equals the last, as COCO
        taken = open_here[levels, best]
        free[levels[taken], best[taken]] = False
        hit[taken, row] = True
    return hit


def _coco_overlaps(boxes: Array, goal: Array) -> Array:
    low = np.maximum(boxes[:, None, :2], goal[None, :, :2])
    ends = boxes[:, :2] + boxes[:, 2:]
    goal_ends = goal[:, :2] + goal[:, 2:]
    extent = np.minimum(ends[:, None], goal_ends[None]) - low
    shared = np.where((extent > 0).all(axis=2), extent[..., 0] * extent[..., 1], 0.0)
    union = (boxes[:, 2] * boxes[:, 3])[:, None] + (goal[:, 2] * goal[:, 3])[None] - shared
    ratio: Array = np.divide(shared, union, out=np.zeros_like(shared), where=union != 0)
    return ratio


def _area_under(hit: Array, counted: Array, objects: int) -> float:
    """Mean of the interpolated precision at the 101 recalls."""
    good = np.cumsum(hit & counted).astype(np.float64)
    bad = np.cumsum(~hit & counted).astype(np.float64)
    recall = good / objects
    precision = good / (good + bad + np.spacing(1))
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    index = np.searchsorted(recall, RECALLS, side="left")
    inside = index < len(precision)
    return float(np.concatenate([precision[index[inside]], np.zeros((~inside).sum())]).mean())
