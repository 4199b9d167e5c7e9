"""What a placement on any number of segments costs, and the two-segment problems inside it.

Decides how levels are read and paid for; searches nothing (`segments` does). A placement gives each
unit a level. Even levels run on the NPU, odd ones on the CPU, in ascending order, so a unit never
reads a higher level than its own. A tensor is paid for once: one made on the NPU when anything but
its own segment reads it or when it is a model output, one made on the CPU or given to the model
when any NPU segment reads it. Every NPU segment pays for being called.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf

from splitter.partition.mincut import Passage, Problem, ancestors, best_prefix, possible

Levels = tuple[int, ...]
"""A level for each unit: even on the NPU, odd on the CPU."""

OUTSIDE = -1
"""Where model inputs lie: a CPU level before all others."""


def on_npu(level: int) -> bool:
    return level % 2 == 0


def staged_ms(problem: Problem, levels: Levels, invoke: float) -> float:
    """Cost of a placement in ms; infinite where a unit is where it cannot be."""
    total = sum(unit_ms(problem, unit, level) for unit, level in enumerate(levels))
    total += sum(tensor.ms for tensor in crossing(problem, levels))
    return total + invoke * len({level for level in levels if on_npu(level)})


def unit_ms(problem: Problem, unit: int, level: int) -> float:
    if on_npu(level):
        inside = problem.inside[unit]
        return inf if inside is None else inside
    return problem.outside[unit]


def crossing(problem: Problem, levels: Levels) -> tuple[Passage, ...]:
    """The tensors that are paid for."""
    return tuple(tensor for tensor in problem.passages if crosses(tensor, levels))


def crosses(tensor: Passage, levels: Sequence[int]) -> bool:
    home = OUTSIDE if tensor.producer is None else levels[tensor.producer]
    if on_npu(home):
        return tensor.leaves or any(levels[reader] != home for reader in tensor.readers)
    return any(on_npu(levels[reader]) for reader in tensor.readers)


def compacted(levels: Levels) -> Levels:
    """The same placement without empty levels; neighbors on one device become one segment."""
    place: dict[int, int] = {}
    last = OUTSIDE
    for level in sorted(set(levels)):
        if not place:
            last = 0 if on_npu(level) else 1
        elif on_npu(level) != on_npu(last):
            last += 1
        place[level] = last
    return tuple(place[level] for level in levels)


def segments_of(levels: Levels) -> int:
    """How many segments a compacted placement has."""
    return len(set(levels))


@dataclass(frozen=True, slots=True)
class Window:
    """Levels low..high of a placement, to be divided anew between `low` and `high` alone.

    The two lie on different devices. Everything outside the window stays where it is.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if on_npu(self.low) == on_npu(self.high):
            raise ValueError("a window has a device at each end")


def divided(problem: Problem, levels: Levels, window: Window) -> Levels | None:
    """The placement with the window divided at least cost, exactly; None where it cannot be."""
    members = [u for u, level in enumerate(levels) if window.low <= level <= window.high]
    if not members:
        return None
    early, needed = _inner_problem(problem, levels, window, members)
    if not ancestors(early, needed) <= possible(early):
        return None
    first = best_prefix(early, required=needed)
    made = list(levels)
    for index, unit in enumerate(members, start=1):
        made[unit] = window.low if index in first else window.high
    return tuple(made)


def _inner_problem(
    problem: Problem, levels: Levels, window: Window, members: Sequence[int]
) -> tuple[Problem, frozenset[int]]:
    """The window as a prefix problem of its own, and what must be in the prefix.

    Units are renumbered; unit 0, always in the prefix, stands for the tensors made before.
    """
    number = {unit: index for index, unit in enumerate(members, start=1)}
    before = 0
    npu_first = on_npu(window.low)
    inside = [0.0, *(_possible(problem, unit, window.low) for unit in members)]
    outside = [0.0, *(unit_ms(problem, unit, window.high) for unit in members)]
    passages = []
    touched = sorted({index for unit in members for index in problem.touching[unit]})
    for tensor in (problem.passages[index] for index in touched):
        readers = tuple(number[r] for r in tensor.readers if r in number)
        others = [levels[r] for r in tensor.readers if r not in number]
        asked = any(on_npu(level) for level in others)
        if tensor.producer in number:
            maker = number[tensor.producer]
            read = bool(others) or tensor.leaves
            at_low, at_high = (read, asked) if npu_first else (asked, read)
            outside[maker] += tensor.ms if at_high else 0.0
            passages.append(Passage(maker, readers, tensor.ms, at_low))
            continue
        made_on_npu = tensor.producer is not None and on_npu(levels[tensor.producer])
        if readers and not made_on_npu and not asked:
            passages.append(Passage(None if npu_first else before, readers, tensor.ms))
    needed = {index for index, ms in enumerate(outside) if ms == inf} | {before}
    bounded = (0.0 if ms == inf else ms for ms in outside)
    inner = Problem(tuple(inside), tuple(bounded), tuple(passages))
    return inner, frozenset(needed)


def _possible(problem: Problem, unit: int, level: int) -> float | None:
    ms = unit_ms(problem, unit, level)
    return None if ms == inf else ms


def pinned(problem: Problem, *, npu: Collection[int] = (), cpu: Collection[int] = ()) -> Problem:
    """The problem with units that must be on one device: the other one costs infinitely much."""
    inside = list(problem.inside)
    outside = list(problem.outside)
    for unit in cpu:
        inside[unit] = None
    for unit in npu:
        outside[unit] = inf
    return replace(problem, inside=tuple(inside), outside=tuple(outside))
