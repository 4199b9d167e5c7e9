"""Outputs with as many rows as the data decides: which rows of one side the other has too.

Element by element such outputs can be compared only where both have as many rows in one order. One
box more or less over a threshold moves all that follow, so rows are looked for as a set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitter.graph import Array

NEAR, SAME = 0.1, 1e-3
"""How far each number of a row may be off to be found again, and to be the same: in parts of the
span of its column, or of half its largest number where that is more (scores all near 1). Whole
numbers (indices, classes) must be equal."""


@dataclass(frozen=True, slots=True)
class RowsFound:
    """Sums over the runs. reference, candidate: rows; found: rows of the reference that the other
    side has too, each counted once, `same` of them the same; alike: runs in which both sides have
    as many."""

    reference: int
    candidate: int
    found: int
    same: int
    runs: int
    alike: int

    @property
    def extra(self) -> int:
        return self.candidate - self.found

    @property
    def reordered(self) -> bool:
        """Whether both sides have the same rows, in some order."""
        return self.alike == self.runs and self.same == self.reference

    def __str__(self) -> str:
        return f"{self.found} of {self.reference} rows found again, {self.extra} extra"


class RowsMeter:
    """Sums up run by run."""

    def __init__(self) -> None:
        self._sums = np.zeros(6, np.int64)

    def add(self, reference: Array, candidate: Array) -> None:
        one, other = len(reference), len(candidate)
        found = count_found(reference, candidate)
        same = count_found(reference, candidate, within=SAME)
        self._sums += (one, other, found, same, 1, one == other)

    def result(self) -> RowsFound:
        return RowsFound(*(int(value) for value in self._sums))


def count_found(reference: Array, candidate: Array, *, within: float = NEAR) -> int:
    """Rows of the reference that have a partner among the others, the nearest free one in turn."""
    if not len(reference) or not len(candidate):
        return 0
    one, other = (np.asarray(a, np.float64).reshape(len(a), -1) for a in (reference, candidate))
    step = np.zeros(one.shape[1])
    if reference.dtype.kind == "f":
        step = within * np.maximum(np.ptp(one, axis=0), np.abs(one).max(axis=0) / 2)
    free, found = np.ones(len(other), bool), 0
    for row in one:
        off = np.abs(other - row)
        fits = free & (off <= step).all(axis=1)
        if fits.any():
            free[np.argmin(np.where(fits, off.sum(axis=1), np.inf))] = False
            found += 1
    return found
