"""Looks through every placement of a small problem that could still be cheaper than those found.

Decides nothing but that: branch and bound over the levels of the units in order. A branch ends when
what is placed and the least that the rest can cost reach the best known, or when the rest sees the
same as in a branch before that was no dearer. `segments` finds the plans; for few units this makes
sure of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf

from splitter.partition.mincut import Passage, Problem
from splitter.partition.segments import LEAST_GAIN, Placement, Shape
from splitter.partition.stages import compacted, crosses, on_npu, staged_ms, unit_ms

UNITS = 12
"""Up to so many units every placement is considered."""


def proven(
    problem: Problem, invoke: float, most: int, found: Mapping[Shape, Placement]
) -> Mapping[Shape, Placement]:
    """The placements, each replaced where a cheaper one exists that fits into its shape."""
    best = dict(found)
    if len(problem.outside) > UNITS:
        return best
    for count in range(2, most + 1):
        for start in (0, 1):
            levels = range(start, start + count)
            least = min((o.ms for o in best.values() if _fits(o, levels)), default=inf)
            better = _Branches(problem, invoke, levels, least).best
            if better is None:
                continue
            known = best.get(better.shape)  # of this shape on the levels asked for, or on others
            if known is None or better.ms < known.ms - LEAST_GAIN:
                best[better.shape] = better
    return dict(sorted(best.items()))


def _fits(placement: Placement, levels: range) -> bool:
    """Whether the placement is one of these levels, shifted by whole pairs if need be."""
    used = set(placement.levels)
    shift = 2 if min(used) < levels.start else 0
    return max(used) + shift <= levels[-1]


class _Branches:
    """One search below a bound. best: the cheapest placement, None when nothing is cheaper."""

    def __init__(self, problem: Problem, invoke: float, levels: range, bound: float) -> None:
        self._problem, self._invoke, self._levels, self._bound = problem, invoke, levels, bound
        self.best: Placement | None = None
        self._seen: dict[Hashable, float] = {}
        count = len(problem.outside)
        self._closing: list[list[Passage]] = [[] for _ in range(count)]
        self._open: list[list[Passage]] = [[] for _ in range(count + 1)]
        for tensor in problem.passages:
            ends = tensor.readers if tensor.producer is None else (tensor.producer, *tensor.readers)
            self._closing[max(ends)].append(tensor)
            for unit in range(min(ends) + 1, max(ends) + 1):
                self._open[unit].append(tensor)
        self._rest = [0.0]
        for unit in reversed(range(count)):
            least = min(unit_ms(problem, unit, 0), unit_ms(problem, unit, 1))
            self._rest.insert(0, self._rest[0] + least)
        self._place([], 0.0, frozenset())

    def _place(self, levels: list[int], spent: float, used: frozenset[int]) -> None:
        unit = len(levels)
        if spent + self._rest[unit] >= self._bound - LEAST_GAIN:
            return
        if unit == len(self._problem.outside):
            self._finish(tuple(levels))
            return
        seen = (unit, used, *(_seen(tensor, levels) for tensor in self._open[unit]))
        if self._seen.get(seen, inf) <= spent:
            return
        self._seen[seen] = spent
        lowest = max((levels[feeder] for feeder in self._problem.feeders[unit]), default=0)
        for level in range(max(lowest, self._levels.start), self._levels.stop):
            ms = unit_ms(self._problem, unit, level)
            if ms == inf:
                continue
            levels.append(level)
            ms += sum(tensor.ms for tensor in self._closing[unit] if crosses(tensor, levels))
            ms += self._invoke if on_npu(level) and level not in used else 0.0
            self._place(levels, spent + ms, used | {level})
            levels.pop()

    def _finish(self, levels: tuple[int, ...]) -> None:
        levels = compacted(levels)
        ms = staged_ms(self._problem, levels, self._invoke)
        if ms < self._bound - LEAST_GAIN:
            self.best, self._bound = Placement(levels, ms), ms


def _seen(tensor: Passage, levels: Sequence[int]) -> tuple[int | None, Hashable]:
    """All that later units can tell of a tensor's ends so far."""
    home = None if tensor.producer is None else levels[tensor.producer]
    ends = {levels[reader] for reader in tensor.readers if reader < len(levels)}
    return home, frozenset(("npu" if on_npu(end) else "cpu", end == home) for end in ends)
