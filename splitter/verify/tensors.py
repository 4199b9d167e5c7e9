"""How far a tensor is from its reference: streamed sums over runs, and points for the plots.

Decides which numbers describe an error. Cosine is kept as a side note only: a pure gain error of
44 % has cosine 1.0000, and one shared scale over boxes and scores ruins the scores at 1.0000 too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from splitter.graph import Array
from splitter.verify.rows import RowsFound, RowsMeter

POINTS = 1500
"""Points kept of a tensor for its plots."""
_POINTS_A_RUN = 256


@dataclass(frozen=True)
class TensorError:
    """A tensor against its reference over all runs.

    relative_rms: rms(candidate - reference) / rms(reference); the plain rms when the reference is
    all zero.
    gain:         least-squares slope of candidate over reference, 1 is right.
    cosine:       a side note, never a criterion.
    equal_share:  share of elements that are equal bit for bit.
    constant:     the candidate has one value everywhere and the reference has not.
    not_finite:   NaN or infinite elements of the candidate (beyond those of the reference).
    points:       (reference, candidate), [P, 2] float64, the largest errors among them.
    rows:         of an output with as many rows as the data decides; the figures above are then of
                  the runs in which both sides have as many.
    """

    name: str
    elements: int
    relative_rms: float
    max_abs: float
    gain: float
    cosine: float
    equal_share: float
    constant: bool
    not_finite: int
    reference_rms: float
    reference_range: tuple[float, float]
    candidate_range: tuple[float, float]
    points: Array = field(repr=False, compare=False)
    rows: RowsFound | None = field(default=None, repr=False)

    @property
    def bit_equal(self) -> bool:
        return self.equal_share == 1.0

    @property
    def broken(self) -> bool:
        return self.constant or self.not_finite > 0


class TensorMeter:
    """Sums up one tensor run by run; `result` may be asked at any time. open_ended: data decides
    how many rows there are."""

    def __init__(self, name: str, *, open_ended: bool = False) -> None:
        self._name = name
        self._rows = RowsMeter() if open_ended else None
        self._elements = self._equal = self._not_finite = 0
        self._sums = np.zeros(4)  # reference^2, candidate^2, product, error^2
        self._max_abs = 0.0
        self._reference = (np.inf, -np.inf)
        self._candidate = (np.inf, -np.inf)
        self._points: list[Array] = []
        self._random = np.random.default_rng(0)

    def add(self, reference: Array, candidate: Array) -> None:
        """One run's tensor on both sides. Raises ValueError when shapes differ, but in rows."""
        if self._rows is not None and reference.shape[1:] == candidate.shape[1:]:
            self._rows.add(reference, candidate)
            if len(reference) != len(candidate):
                self._elements += max(reference.size, candidate.size)
                return
        if reference.shape != candidate.shape:
            raise ValueError(f"{self._name}: {reference.shape} against {candidate.shape}")
        if not reference.size:
            return
        self._elements += reference.size
        self._equal += _equal_bits(reference, candidate)
        left, right = _numbers(reference), _numbers(candidate)
        usable = np.isfinite(left) & np.isfinite(right)
        self._not_finite += int((np.isfinite(left) & ~np.isfinite(right)).sum())
        left, right = left[usable], right[usable]
        if not left.size:
            return
        error = right - left
        self._sums += (left @ left, right @ right, left @ right, error @ error)
        self._max_abs = max(self._max_abs, float(np.abs(error).max()))
        self._reference = _widened(self._reference, left)
        self._candidate = _widened(self._candidate, right)
        self._points.append(self._sample(left, right))

    def _sample(self, left: Array, right: Array) -> Array:
        """Random elements (strides would hit one coordinate of a box only), and the worst one."""
        chosen = np.arange(left.size)
        if left.size > _POINTS_A_RUN:
            chosen = self._random.integers(0, left.size, _POINTS_A_RUN)
        worst = np.argmax(np.abs(right - left))
        chosen = np.append(chosen[chosen != worst], worst)
        return np.stack([left[chosen], right[chosen]], axis=1)

    def result(self) -> TensorError:
        reference, candidate, product, error = (float(value) for value in self._sums)
        count = max(1, self._elements)
        norm = np.sqrt(reference * candidate)
        varied = self._reference[0] < self._reference[1]
        return TensorError(
            name=self._name,
            elements=self._elements,
            relative_rms=float(np.sqrt(error / (reference or count))),
            max_abs=self._max_abs,
            gain=product / reference if reference else 1.0,
            cosine=float(product / norm) if norm else float(reference == candidate),
            equal_share=self._equal / count if self._elements else 1.0,
            constant=bool(varied and self._candidate[0] >= self._candidate[1]),
            not_finite=self._not_finite,
            reference_rms=float(np.sqrt(reference / count)),
            reference_range=_closed(self._reference),
            candidate_range=_closed(self._candidate),
            points=_thinned(self._points),
            rows=self._rows.result() if self._rows else None,
        )


def _numbers(array: Array) -> Array:
    return np.asarray(array, np.float64).reshape(-1)


def _equal_bits(left: Array, right: Array) -> int:
    """Elements of equal type and bits; a NaN equals the same NaN, 0.0 does not equal -0.0."""
    if left.dtype != right.dtype:
        return 0
    width = left.dtype.itemsize
    one = np.ascontiguousarray(left).reshape(-1).view(np.uint8).reshape(-1, width)
    two = np.ascontiguousarray(right).reshape(-1).view(np.uint8).reshape(-1, width)
    return int((one == two).all(axis=1).sum())


def _widened(bounds: tuple[float, float], values: Array) -> tuple[float, float]:
    return min(bounds[0], float(values.min())), max(bounds[1], float(values.max()))


def _closed(bounds: tuple[float, float]) -> tuple[float, float]:
    return bounds if bounds[0] <= bounds[1] else (0.0, 0.0)


def _thinned(points: list[Array]) -> Array:
    """At most POINTS of all, evenly, the worst of all first."""
    if not points:
        return np.zeros((0, 2))
    together = np.concatenate(points)
    worst = int(np.argmax(np.abs(together[:, 1] - together[:, 0])))
    rest = np.delete(together, worst, axis=0)
    step = max(1, -(-len(rest) // (POINTS - 1)))
    return np.concatenate([together[worst : worst + 1], rest[::step]])
