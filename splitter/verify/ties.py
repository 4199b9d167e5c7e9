"""Near ties: two runtimes that rank two scores differently because they differ by a rounding error.

A model that picks its best candidates (TopK) hands on another one then, and everything behind it is
another: no error of the conversion. Decides which differences are proven to be of that kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from splitter.graph import Array

NEAR = 1e-5
"""Scores this close, relative to the largest of them, count as equal. float32 noise of the scores
of RF-DETR between LiteRT and ONNX Runtime is 2e-6 of the largest."""


@dataclass(frozen=True)
class Ranking:
    """One TopK in one run: the reference's scores, and the indices that both sides took of them."""

    scores: Array
    reference: Array
    candidate: Array
    axis: int = -1


def near_tie(rankings: Iterable[Ranking]) -> float | None:
    """How far apart the scores are that the first differing ranking took in another order.

    Relative to the largest score; None when nothing differs, or by more than NEAR. Rankings in the
    order of the graph: a later one may differ because of the first.
    """
    for ranking in rankings:
        if ranking.reference.shape != ranking.candidate.shape:
            return None
        changed = ranking.reference != ranking.candidate
        if changed.any():
            gap = _gap(ranking, changed)
            return gap if gap <= NEAR else None
    return None


def _gap(ranking: Ranking, changed: Array) -> float:
    one, other = (
        np.take_along_axis(ranking.scores, indices.astype(np.int64), axis=ranking.axis)
        for indices in (ranking.reference, ranking.candidate)
    )
    largest = float(np.abs(ranking.scores).max()) or 1.0
    return float(np.abs(one[changed] - other[changed]).max()) / largest
