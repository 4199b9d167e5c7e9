"""Random planning problems, and the least cost of any placement by trying them all."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st

from splitter.partition.mincut import Passage, Problem
from splitter.partition.stages import compacted, segments_of, staged_ms

COSTS = st.integers(0, 20).map(float)


@st.composite
def problems(draw: st.DrawFn, largest: int = 9) -> Problem:
    """Random DAGs, some units impossible inside, tensors read by any later units."""
    size = draw(st.integers(1, largest))
    inside = tuple(draw(st.one_of(st.none(), COSTS)) for _ in range(size))
    outside = tuple(draw(COSTS) for _ in range(size))
    passages = []
    for producer in (None, None, *range(size)):
        later = range(0 if producer is None else producer + 1, size)
        readers = tuple(i for i in later if draw(st.booleans()) and draw(st.booleans()))
        leaves = producer is not None and draw(st.booleans())
        if readers or leaves:
            passages.append(Passage(producer, readers, draw(COSTS), leaves))
    return Problem(inside, outside, tuple(passages))


def least_ms(problem: Problem, invoke: float, most: int, *, bound: float = inf) -> float:
    """The cost of the cheapest placement on at most `most` segments, by trying all of them.

    Placements whose units alone cost `bound` or more are not looked at; it is returned then.
    """
    size = len(problem.outside)
    rest = [0.0] * (size + 1)
    for unit in reversed(range(size)):
        inside = problem.inside[unit]
        least = problem.outside[unit] if inside is None else min(inside, problem.outside[unit])
        rest[unit] = rest[unit + 1] + least
    best = bound

    def place(levels: tuple[int, ...], spent: float) -> None:
        nonlocal best
        unit = len(levels)
        if spent + rest[unit] >= best:
            return
        if unit == size:
            whole = compacted(levels)
            if segments_of(whole) <= most:
                best = min(best, staged_ms(problem, whole, invoke))
            return
        lowest = max((levels[feeder] for feeder in problem.feeders[unit]), default=0)
        for level in range(lowest, most + 1):
            ms = problem.inside[unit] if level % 2 == 0 else problem.outside[unit]
            if ms is not None:
                place((*levels, level), spent + ms + _paid(problem, (*levels, level)))

    place((), 0.0)
    return best


def _paid(problem: Problem, levels: tuple[int, ...]) -> float:
    """What the tensors cost whose last end was just placed."""
    last = len(levels) - 1
    total = 0.0
    for tensor in problem.passages:
        ends = tensor.readers if tensor.producer is None else (tensor.producer, *tensor.readers)
        if max(ends) == last:
            home = None if tensor.producer is None else levels[tensor.producer]
            if home is not None and home % 2 == 0:
                moves = tensor.leaves or any(levels[r] != home for r in tensor.readers)
            else:
                moves = any(levels[r] % 2 == 0 for r in tensor.readers)
            total += tensor.ms if moves else 0.0
    return total
