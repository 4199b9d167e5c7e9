"""How much worse outputs are than a reference: one figure for each thing that they decide.

Decides what counts, by task. Every figure is a mean square, so that those of independent causes add
up; figures of different kinds are only ever compared with themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from splitter.graph import Array
from splitter.verify import Task
from splitter.verify.detections import pair_queries, sigmoid

Outputs = Mapping[str, Array]
Damage = Mapping[str, float]

FAR = 0.02
"""Boxes, in parts of the image, moved further than this may have changed places with others."""
SMALL = 0.01
"""Width and height are taken as at least this, in parts of the image."""
LARGEST, HALF, MOVED = " largest", " over half", " moved"
"""Names, behind an output's, of shares of changed decisions."""
FEW = 0.05
"""A value has moved when it is off by more than this part of itself: 50 cents of pitch are 3 %."""
CLASSES = 3
"""Entries of a row from which on its largest one may be an answer."""


def damage(task: Task, reference: Sequence[Outputs], candidate: Sequence[Outputs]) -> Damage:
    """Figures by name, over all samples.

    detection: errors of box edges in parts of the box, and of scores as probabilities, queries
    weighted by the reference's best score and paired where they changed places. Other outputs:
    squared error over squared reference; share of changed indices; and of changed decisions, as a
    square too: which entry of a row is the largest, which of values in 0..1 are over a half, which
    have moved (a few that are far off can hide all others in the squared error).
    """
    sums: dict[str, list[float]] = {}
    for one, other in zip(reference, candidate, strict=True):
        for name, error, weight in _terms(task, one, other):
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += error
            total[1] += weight
    found = {name: error / weight if weight else 0.0 for name, (error, weight) in sums.items()}
    return {n: cost**2 if n.endswith((LARGEST, HALF, MOVED)) else cost for n, cost in found.items()}


def _terms(task: Task, one: Outputs, other: Outputs) -> list[tuple[str, float, float]]:
    """(name, sum of errors, sum of weights) of one sample."""
    detects = task.kind == "detection" and {task.boxes, task.scores} <= set(one)
    special = {task.boxes, task.scores} if detects else set()
    plain = [name for name in one if name not in special]
    terms = [_plain(name, one[name], other[name]) for name in plain]
    for name in plain:
        terms += _decisions(name, one[name], other[name])
    if detects:
        for row in range(len(one[task.boxes])):
            terms += _detections(task, one, other, row)
    return terms


def _plain(name: str, one: Array, other: Array) -> tuple[str, float, float]:
    if one.shape != other.shape:  # another number of rows: as if none were right
        return name, float(max(one.size, other.size)), float(max(one.size, other.size))
    if one.dtype.kind != "f":
        return name, float((one != other).sum()), float(one.size)
    left, right = one.astype(np.float64), other.astype(np.float64)
    return name, float(np.square(right - left).sum()), float(np.square(left).sum())


def _decisions(name: str, one: Array, other: Array) -> list[tuple[str, float, float]]:
    """What a reader of the output may decide by it."""
    terms: list[tuple[str, float, float]] = []
    if one.dtype.kind != "f" or not one.size or one.shape != other.shape:
        return terms
    large = np.abs(one) > 0.1 * np.sqrt(np.square(one, dtype=np.float64).mean())
    moved = large & (np.abs(other - one) > FEW * np.abs(one))
    terms.append((name + MOVED, float(moved.sum()), float(large.sum())))
    if one.ndim > 1 and one.shape[-1] >= CLASSES:
        changed = one.argmax(axis=-1) != other.argmax(axis=-1)
        terms.append((name + LARGEST, float(changed.sum()), float(changed.size)))
    if one.min() >= 0 and one.max() <= 1:
        left, right = one > 0.5, other > 0.5
        terms.append((name + HALF, float((left != right).sum()), float((left | right).sum())))
    return terms


def _detections(
    task: Task, one: Outputs, other: Outputs, row: int
) -> list[tuple[str, float, float]]:
    used = slice(task.classes or None)
    boxes, moved = (np.asarray(o[task.boxes][row], np.float64) for o in (one, other))
    logits, changed = (np.asarray(o[task.scores][row], np.float64)[:, used] for o in (one, other))
    far = np.flatnonzero(np.abs(moved - boxes).max(axis=1) > FAR)
    if len(far) > 1:
        order = np.arange(len(boxes))
        order[far] = far[pair_queries(boxes[far], logits[far], moved[far], changed[far])]
        moved, changed = moved[order], changed[order]
    scores = sigmoid(logits)
    weight = scores.max(axis=1)
    size = np.maximum(np.abs(boxes[:, [2, 3, 2, 3]]), SMALL)
    shift = np.square((moved - boxes) / size).mean(axis=1)
    doubt = np.square(sigmoid(changed) - scores).sum(axis=1)
    total = float(weight.sum())
    return [
        (task.boxes, float((weight * shift).sum()), total),
        (task.scores, float((weight * doubt).sum()), total),
    ]
