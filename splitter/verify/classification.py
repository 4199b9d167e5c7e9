"""Answers as pairs: how many a change of the model flips, and whether it made them worse.

Equal accuracy can hide a quarter of the answers changed, so the flips are counted, not accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitter.graph import Array
from splitter.verify.statistics import Share, mcnemar, share_of


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Against labels: right in each arm, and the pairs in which only one arm is right.

    p_value: exact two-sided McNemar test of lost against gained.
    """

    reference: float
    candidate: float
    lost: int
    gained: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Answers:
    """Top-1 answers of two models on the same samples. first_flip: sample index, -1 for none."""

    flips: Share
    first_flip: int
    accuracy: Accuracy | None = None

    @property
    def agreement(self) -> float:
        return 1.0 - self.flips.share


def compare_answers(
    reference: Sequence[Array], candidate: Sequence[Array], labels: Array | None = None
) -> Answers:
    """reference, candidate: answers (class indices) of each run; labels as many, or None.

    Raises ValueError when the counts differ.
    """
    left, right = _joined(reference), _joined(candidate)
    if left.shape != right.shape:
        raise ValueError(f"{len(left)} answers against {len(right)}")
    changed = left != right
    first = int(np.argmax(changed)) if changed.any() else -1
    flips = share_of(int(changed.sum()), len(left))
    if labels is None:
        return Answers(flips, first)
    return Answers(flips, first, _accuracy(left, right, labels.reshape(-1)))


def answers_of(scores: Array, *, classes: int = 0) -> Array:
    """The best class of each row of [..., C], the first of equals."""
    return np.asarray(np.argmax(scores[..., : classes or scores.shape[-1]], axis=-1)).reshape(-1)


def _joined(answers: Sequence[Array]) -> Array:
    return np.concatenate(answers) if answers else np.zeros(0, np.int64)


def _accuracy(left: Array, right: Array, labels: Array) -> Accuracy:
    if labels.shape != left.shape:
        raise ValueError(f"{len(labels)} labels for {len(left)} answers")
    first, second = left == labels, right == labels
    lost, gained = int((first & ~second).sum()), int((~first & second).sum())
    count = max(1, len(labels))
    return Accuracy(
        float(first.sum() / count), float(second.sum() / count), lost, gained, mcnemar(lost, gained)
    )
