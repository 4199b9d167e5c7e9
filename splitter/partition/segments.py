"""The best placement on any number of segments: free choice of devices, then fewer segments.

Decides the search. A placement without regard to order is a plain minimum cut (every tensor paid
once between devices). It is put into levels, its borders are moved, each exactly with the others
held (`stages.divided`), and segments are taken away where that costs least; so there is a best
placement for each number of segments, by the device it starts on. Among few units `proof` then
looks through everything that is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from splitter.partition.flow import BOUNDLESS, Flow
from splitter.partition.mincut import Passage, Problem, capacity
from splitter.partition.stages import (
    OUTSIDE,
    Levels,
    Window,
    compacted,
    divided,
    on_npu,
    segments_of,
    staged_ms,
)

LEAST_GAIN = 1e-9
"""Milliseconds that a change must save."""

MANY = 3
"""Times the segments allowed up to which a placement is worth improving."""

NEAR = 2
"""How many segments more than allowed may remain when borders begin to be moved."""

BUDGET = 60_000
"""Units in all cuts of one search together, about three seconds; then the best so far stands."""

DEARER = (32, 16, 8, 4, 2, 1)
"""Factors on what crosses between devices: the dearer, the fewer segments come out."""


class Shape(NamedTuple):
    """Number of segments, and how many of them are on the NPU."""

    segments: int
    npu: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Compacted levels of the units (see `stages`) and their cost in ms."""

    levels: Levels
    ms: float

    @property
    def segments(self) -> int:
        return segments_of(self.levels)

    @property
    def shape(self) -> Shape:
        used = set(self.levels)
        return Shape(len(used), sum(on_npu(level) for level in used))


def best_placements(problem: Problem, invoke: float, most: int) -> Mapping[Shape, Placement]:
    """For each shape of up to `most` segments that has one, the best placement found."""
    search = _Search(problem, invoke, most)
    for start in _two_or_one(problem):
        search.keep(start)
    for start in _many(problem, invoke):
        if segments_of(start) <= MANY * most and not search.exhausted:
            search.descend(start)
    return dict(sorted(search.found.items()))


def _two_or_one(problem: Problem) -> Iterator[Levels]:
    """The best of one and two segments, exactly."""
    everything = (0,) * len(problem.outside)
    yield everything
    yield tuple(level + 1 for level in everything)
    for window in (Window(0, 1), Window(OUTSIDE, 0)):
        made = divided(problem, everything, window)
        if made is not None:
            yield made


def _many(problem: Problem, invoke: float) -> Iterator[Levels]:
    """What is cheapest when order costs nothing, from few segments to many."""
    for factor in DEARER:
        share = invoke / 2 if factor > 1 else 0.0
        dear = (replace(one, ms=(one.ms + share) * factor) for one in problem.passages)
        for devices in dict.fromkeys(free_choice(replace(problem, passages=tuple(dear)))):
            yield scheduled(problem, devices)
    yield scheduled(problem, tuple(inside is not None for inside in problem.inside))


class _Search:
    """Keeps the best placement of each shape while placements are improved."""

    def __init__(self, problem: Problem, invoke: float, most: int) -> None:
        self.problem, self.invoke, self.most = problem, invoke, most
        self.found: dict[Shape, Placement] = {}
        self.spent = 0
        self._done: set[Levels] = set()

    @property
    def exhausted(self) -> bool:
        return self.spent >= BUDGET

    def keep(self, levels: Levels) -> Placement:
        """The placement with its cost, remembered if it is the best of its shape."""
        levels = compacted(levels)
        made = Placement(levels, staged_ms(self.problem, levels, self.invoke))
        best = self.found.get(made.shape)
        if made.segments <= self.most and made.ms < (best.ms if best else inf) - LEAST_GAIN:
            self.found[made.shape] = made
        return made

    def descend(self, start: Levels) -> None:
        """Takes segments away, two or more at a time, until one is left; then settles borders."""
        current: Levels | None = compacted(start)
        while current is not None and not self.exhausted and current not in self._done:
            self._done.add(current)
            if segments_of(current) <= self.most + NEAR:
                current = self._settled(current)
            current = self._fewer(current)

    def _divided(self, levels: Levels, window: Window) -> Levels | None:
        self.spent += sum(window.low <= level <= window.high for level in levels)
        return None if self.exhausted else divided(self.problem, levels, window)

    def _settled(self, levels: Levels) -> Levels:
        """Every border moved to its best place in turn, until none moves; no segment is added."""
        best = self.keep(levels)
        waiting = list(range(OUTSIDE, max(best.levels) + 1))
        while waiting:
            low = waiting.pop(0)
            made = self._divided(best.levels, Window(low, low + 1))
            if made is None or made == best.levels or segments_of(compacted(made)) > best.segments:
                continue
            one = self.keep(made)
            if one.ms < best.ms - LEAST_GAIN:
                same = one.segments == best.segments
                again = (low - 1, low + 1) if same else range(OUTSIDE, max(one.levels) + 1)
                waiting += [w for w in again if w not in waiting and w <= max(one.levels)]
                best = one
        return best.levels

    def _fewer(self, levels: Levels) -> Levels | None:
        """Four neighboring levels (some may be empty) made two where that costs least.

        With many segments left, in several places at once.
        """
        count = segments_of(levels)
        rated = []
        for low in range(OUTSIDE - 1, max(levels) + 1):
            made = self._divided(levels, Window(low, low + 3))
            if made is not None and segments_of(compacted(made)) < count:
                rated.append((self.keep(made).ms, low, made))
        rated.sort()
        places = len(rated) // 3 if count > self.most + NEAR else 1
        taken: dict[int, int] = {}
        blocked: set[int] = set()
        for _, low, made in rated[: max(1, places)]:
            reach = set(range(low, low + 4))
            if not blocked & reach:
                blocked |= reach
                taken |= {u: made[u] for u, level in enumerate(levels) if level in reach}
        return compacted(tuple(taken.get(u, at) for u, at in enumerate(levels))) if taken else None


def scheduled(problem: Problem, devices: Sequence[bool]) -> Levels:
    """Each unit on the lowest level of its device that its feeders allow."""
    lowest = [OUTSIDE] * len(devices)
    levels: list[int] = []
    readers: list[list[int]] = [[] for _ in devices]
    for tensor in problem.passages:
        if tensor.producer is not None:
            readers[tensor.producer].extend(tensor.readers)
    for unit, npu in enumerate(devices):
        level = max(lowest[unit], 0)
        level += on_npu(level) != npu
        levels.append(level)
        for reader in readers[unit]:
            lowest[reader] = max(lowest[reader], level)
    return compacted(tuple(levels))


def free_choice(problem: Problem) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Which units are on the NPU at least cost, calls and order left out: the fewest, the most."""
    count = len(problem.outside)
    flow = Flow(count)
    for unit, (inside, outside) in enumerate(zip(problem.inside, problem.outside, strict=True)):
        if inside is None:
            flow.to_sink(unit, BOUNDLESS)
        elif outside == inf:
            flow.from_source(unit, BOUNDLESS)
        elif outside > inside:
            flow.from_source(unit, capacity(outside - inside))
        else:
            flow.to_sink(unit, capacity(inside - outside))
    for tensor in problem.passages:
        _join(flow, tensor)
    few, many = flow.solve()
    units = range(count)
    return tuple(unit in few for unit in units), tuple(unit in many for unit in units)


def _join(flow: Flow, tensor: Passage) -> None:
    """A tensor is paid once when it is read on the other device than the one it is made on."""
    cost = capacity(tensor.ms)
    if tensor.readers:
        back = flow.add_node()
        for reader in tensor.readers:
            flow.between(reader, back, BOUNDLESS)
        if tensor.producer is None:
            flow.to_sink(back, cost)
        else:
            flow.between(back, tensor.producer, cost)
    if tensor.producer is None:
        return
    if tensor.leaves:
        flow.to_sink(tensor.producer, cost)
    elif tensor.readers:
        away = flow.add_node()
        flow.between(tensor.producer, away, cost)
        for reader in tensor.readers:
            flow.between(away, reader, BOUNDLESS)
