"""Places in a network where little is handed on: between its blocks.

Decides where, by what would have to be handed over and how the work is spread; names no plan. In
execution order a residual network has one tensor to hand over between two blocks, and several
inside one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitter.partition.mincut import Problem, possible


@dataclass(frozen=True, slots=True)
class Border:
    """units: those before it, a closed prefix. ms, tensors: to hand over what is read after it."""

    units: tuple[int, ...]
    ms: float
    tensors: int


def block_borders(problem: Problem, count: int) -> tuple[Border, ...]:
    """At most `count` borders among the units that an NPU prefix can hold, spread by their work.

    The work (ms outside the prefix) is divided evenly; of each share the border is taken that costs
    least to hand over, of equal ones the last. None at the very end.
    """
    free = possible(problem)
    order = [unit for unit in range(len(problem.outside)) if unit in free]
    ms, tensors = _handed_over(problem, order)
    total = sum(problem.outside[unit] for unit in order)
    best: dict[int, int] = {}
    done = 0.0
    for position, unit in enumerate(order[:-1], start=1):
        done += problem.outside[unit]
        share = min(int(count * done / total), count - 1) if total else 0
        held = best.get(share)
        rated = (ms[position], tensors[position])
        if held is None or rated <= (ms[held], tensors[held]):
            best[share] = position
    return tuple(
        Border(tuple(order[:position]), ms[position], tensors[position])
        for position in sorted(best.values())
        if tensors[position]
    )


def _handed_over(problem: Problem, order: Sequence[int]) -> tuple[list[float], list[int]]:
    """By position: ms and number of tensors made before it and read after it."""
    place = {unit: index for index, unit in enumerate(order)}
    ms, tensors = [0.0] * (len(order) + 1), [0] * (len(order) + 1)
    for tensor in problem.passages:
        if tensor.producer not in place:
            continue
        first = place[tensor.producer] + 1
        last = max((place.get(reader, len(order)) for reader in tensor.readers), default=0)
        last = len(order) if tensor.leaves else last
        for position in range(first, last + 1):
            ms[position] += tensor.ms
            tensors[position] += 1
    return ms, tensors
