"""Detections as sets: decoded from the outputs of a DETR-type model, matched by class and overlap.

Decides how a prediction becomes boxes, scores and classes, and when two sets say the same thing.
Leaves the mean average precision to `coco`, the verdict to `verdict`. The order of the queries
never counts: a detector whose rows are permuted is the same detector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.graph import Array

SCORE = 0.5
"""A detection counts as a decision above this score."""
OVERLAP = 0.5
"""Two boxes of one class are the same object from this intersection over union on."""


@dataclass(frozen=True)
class Detections:
    """What a model says of one image, best score first.

    boxes [N, 4] float64, x0 y0 x1 y1 in the unit the decoder was given; scores [N] 0..1; classes
    [N] int64.
    """

    boxes: Array
    scores: Array
    classes: Array

    def rows(self, keep: Array) -> Detections:
        """The rows of a mask or an index."""
        return Detections(self.boxes[keep], self.scores[keep], self.classes[keep])

    def over(self, score: float) -> Detections:
        return self.rows(self.scores > score)

    def __len__(self) -> int:
        return len(self.scores)


def decode_detr(
    boxes: Array,
    logits: Array,
    *,
    classes: int = 0,
    size: tuple[float, float] = (1.0, 1.0),
    limit: int = 0,
) -> Detections:
    """The best (query, class) pairs by sigmoid score, as RF-DETR's own postprocessing takes them.

    boxes [Q, 4] center x, center y, width, height, normalized; logits [Q, C]. `classes` keeps the
    first columns only (a trailing background slot is left out), 0 keeps all. `size` is (width,
    height) in the unit wanted. `limit` pairs are kept, 0 as many as there are queries. No
    non-maximum suppression. Ties keep the order of (query, class). NaN scores sort last.
    """
    used = logits[:, : classes or logits.shape[1]].astype(np.float64)
    scores = sigmoid(used).reshape(-1)
    order = np.argsort(-scores, kind="stable")[: limit or len(boxes)]
    query, label = order // used.shape[1], order % used.shape[1]
    found = corners(boxes[query].astype(np.float64))
    return Detections(found * np.array([*size, *size]), scores[order], label.astype(np.int64))


def corners(boxes: Array) -> Array:
    """[N, 4] x0 y0 x1 y1 of center x, center y, width, height."""
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def sigmoid(logits: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow, float64."""
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def overlaps(left: Array, right: Array) -> Array:
    """Intersection over union, [N, M], of corner boxes [N, 4] and [M, 4]; 0 for empty boxes."""
    low = np.maximum(left[:, None, :2], right[None, :, :2])
    high = np.minimum(left[:, None, 2:], right[None, :, 2:])
    extent = np.maximum(high - low, 0.0)
    shared = extent[..., 0] * extent[..., 1]
    union = _area(left)[:, None] + _area(right)[None, :] - shared
    ratio: Array = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return ratio


def _area(boxes: Array) -> Array:
    extent = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
    return np.asarray(extent[:, 0] * extent[:, 1])


@dataclass(frozen=True, slots=True)
class Pair:
    """Row `left` of one set is row `right` of the other, with their overlap."""

    left: int
    right: int
    overlap: float


def match(left: Detections, right: Detections, *, overlap: float = OVERLAP) -> tuple[Pair, ...]:
    """Pairs one to one, same class, overlap at least `overlap`, the closest pairs first."""
    table = overlaps(left.boxes, right.boxes)
    same = left.classes[:, None] == right.classes[None, :]
    rows, columns = np.nonzero(same & (table >= overlap))
    order = np.lexsort((columns, rows, -table[rows, columns]))
    free_left, free_right = np.ones(len(left), bool), np.ones(len(right), bool)
    pairs = []
    for row, column in zip(rows[order], columns[order], strict=True):
        if free_left[row] and free_right[column]:
            free_left[row] = free_right[column] = False
            pairs.append(Pair(int(row), int(column), float(table[row, column])))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class SetAgreement:
    """How two detectors agree on the same images, detections over `score` on both sides.

    reference, candidate: detections over the score on each side.
    found:      pairs of them, same class and overlap at least OVERLAP.
    weakened:   of the reference detections not found, those that are still there under the score
                (same class, overlap): the object is seen, the score has fallen below the line.
    overlap:    mean intersection over union of the pairs.
    rows:       detections of the reference at any score, of which `reference` are over it.
    score_rms:  root mean square difference of the scores of the pairs.
    score_bias: mean score difference, candidate minus reference.
    """

    score: float
    images: int
    reference: int
    candidate: int
    found: int
    weakened: int
    overlap: float
    score_rms: float
    score_bias: float
    rows: int = 0

    @property
    def crowded(self) -> bool:
        """The reference takes most of what it looks at for an object: untrained weights do that."""
        return 2 * self.reference > self.rows > 0

    @property
    def found_share(self) -> float:
        """Share of the reference detections found again, 1.0 when there were none."""
        return self.found / self.reference if self.reference else 1.0

    @property
    def extra(self) -> int:
        return self.candidate - self.found

    @property
    def extra_share(self) -> float:
        """Detections that the reference does not have, as a share of the reference's."""
        return self.extra / max(1, self.reference)


def agree(
    reference: Sequence[Detections], candidate: Iterable[Detections], *, score: float = SCORE
) -> SetAgreement:
    """Compare two detectors image by image; both sequences in the same order of images."""
    counts = np.zeros(4, dtype=np.int64)
    overlap: list[float] = []
    change: list[float] = []
    for left_all, right_all in zip(reference, candidate, strict=True):
        left, right = left_all.over(score), right_all.over(score)
        pairs = match(left, right)
        lost = np.setdiff1d(np.arange(len(left)), [pair.left for pair in pairs])
        weak = match(left.rows(lost), right_all.rows(right_all.scores <= score))
        counts += (len(left), len(right), len(pairs), len(weak))
        overlap += [pair.overlap for pair in pairs]
        change += [float(right.scores[p.right] - left.scores[p.left]) for p in pairs]
    differences = np.array(change) if change else np.zeros(1)
    known, given, found, weakened = (int(count) for count in counts)
    return SetAgreement(
        score=score,
        images=len(reference),
        reference=known,
        candidate=given,
        found=found,
        weakened=weakened,
        overlap=float(np.mean(overlap)) if overlap else 1.0,
        score_rms=float(np.sqrt(np.mean(differences**2))),
        score_bias=float(np.mean(differences)),
        rows=sum(len(detections) for detections in reference),
    )


def pair_queries(boxes: Array, scores: Array, other_boxes: Array, other_scores: Array) -> Array:
    """Row order of the other side that puts each query opposite its nearest one, [Q].

    boxes [Q, 4], scores [Q, C] logits. Nearest by the sum of box differences plus the mean score
    difference; the closest pairs are taken first, each row once. Every run is independent.
    """
    left, right = boxes.astype(np.float64), other_boxes.astype(np.float64)
    cost = np.abs(left[:, None] - right[None]).sum(axis=2)
    one, other = sigmoid(scores.astype(np.float64)), sigmoid(other_scores.astype(np.float64))
    for column in range(scores.shape[1]):
        cost += np.abs(one[:, None, column] - other[None, :, column]) / scores.shape[1]
    cost = np.where(np.isnan(cost), np.finfo(np.float64).max, cost)
    order = np.full(len(boxes), -1)
    rows, columns = np.arange(len(boxes)), np.arange(len(boxes))
    while len(rows):
        rest = cost[np.ix_(rows, columns)]
        nearest_column = rest.argmin(axis=1)
        mutual = rest.argmin(axis=0)[nearest_column] == np.arange(len(rows))
        order[rows[mutual]] = columns[nearest_column[mutual]]
        rows, columns = rows[~mutual], np.delete(columns, nearest_column[mutual])
    return order


@dataclass(frozen=True)
class Example:
    """One image for the report: its index, both sides' detections over SCORE, the pairs."""

    index: int
    reference: Detections
    candidate: Detections
    pairs: tuple[Pair, ...]

    @property
    def differences(self) -> int:
        """Detections of either side without a partner."""
        return len(self.reference) + len(self.candidate) - 2 * len(self.pairs)


def choose_examples(
    reference: Sequence[Detections], candidate: Sequence[Detections], *, count: int = 6
) -> tuple[Example, ...]:
    """Half of them the images with most differences, half spread evenly; in order of images."""
    every = []
    for index, (left, right) in enumerate(zip(reference, candidate, strict=True)):
        one, other = left.over(SCORE), right.over(SCORE)
        every.append(Example(index, one, other, match(one, other)))
    worst = sorted(every, key=lambda example: (-example.differences, example.index))[: count // 2]
    chosen = {example.index for example in worst}
    rest = [example for example in every if example.index not in chosen and example.reference]
    more = min(count - len(worst), len(rest))
    together = worst + [rest[slot * len(rest) // more] for slot in range(more)]
    return tuple(sorted(together, key=lambda example: example.index))
