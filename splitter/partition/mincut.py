"""The cheapest prefix of a graph of units, exactly, as a minimum s-t cut.

Decides which units form the prefix, from plain numbers; knows no operators and no target. The
prefix is closed: whoever feeds a unit of the prefix is in the prefix too (minimum closure, Picard
1976), and a tensor that leaves it is paid for once however many units read it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from splitter.partition.flow import BOUNDLESS, Flow

NANOSECONDS = 1_000_000
"""A millisecond in the integers that the flow works on, so that sums are exact."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A tensor that costs `ms` when it passes the border.

    producer: index of the unit that makes it, None for a model input (which lies outside).
    readers: indices of the units that read it. leaves: it is a model output.
    """

    producer: int | None
    readers: tuple[int, ...]
    ms: float
    leaves: bool = False


@dataclass(frozen=True)
class Problem:
    """Units 0..n-1 in topological order: time inside the prefix (None: impossible), outside."""

    inside: tuple[float | None, ...]
    outside: tuple[float, ...]
    passages: tuple[Passage, ...]

    @cached_property
    def feeders(self) -> tuple[frozenset[int], ...]:
        """By unit: the units whose tensors it reads."""
        found: tuple[set[int], ...] = tuple(set() for _ in self.outside)
        for tensor in self.passages:
            if tensor.producer is not None:
                for unit in tensor.readers:
                    found[unit].add(tensor.producer)
        return tuple(map(frozenset, found))

    @cached_property
    def touching(self) -> tuple[tuple[int, ...], ...]:
        """By unit: the indices of the tensors that it makes or reads, ascending."""
        found: tuple[list[int], ...] = tuple([] for _ in self.outside)
        for index, tensor in enumerate(self.passages):
            ends = tensor.readers if tensor.producer is None else (tensor.producer, *tensor.readers)
            for unit in dict.fromkeys(ends):
                found[unit].append(index)
        return tuple(map(tuple, found))


def prefix_ms(problem: Problem, prefix: Collection[int]) -> float:
    """Cost of a closed prefix: units on their sides, and every tensor that passes the border."""
    total = 0.0
    for unit, outside in enumerate(problem.outside):
        inside = problem.inside[unit]
        total += outside if unit not in prefix or inside is None else inside
    return total + sum(tensor.ms for tensor in passing(problem, prefix))


def passing(problem: Problem, prefix: Collection[int]) -> tuple[Passage, ...]:
    """The tensors that pass the border of a closed prefix, inwards or outwards."""
    return tuple(tensor for tensor in problem.passages if _passes(tensor, prefix))


def possible(problem: Problem, barred: Collection[int] = ()) -> frozenset[int]:
    """The largest closed prefix: units that can be inside and are fed by such units only."""
    feeders = problem.feeders
    found: set[int] = set()
    for unit, inside in enumerate(problem.inside):
        if inside is not None and unit not in barred and feeders[unit] <= found:
            found.add(unit)
    return frozenset(found)


def ancestors(problem: Problem, units: Collection[int]) -> frozenset[int]:
    """The units and everything that feeds them."""
    feeders = problem.feeders
    found = set(units)
    for unit in range(len(problem.outside) - 1, -1, -1):
        if unit in found:
            found |= feeders[unit]
    return frozenset(found)


def best_prefix(
    problem: Problem, *, required: Collection[int] = (), barred: Collection[int] = ()
) -> frozenset[int]:
    """The closed prefix of least cost; of equal ones the largest.

    required: units that must be inside, all of them and what feeds them `possible`.
    """
    free = sorted(possible(problem, barred))
    number = {unit: index for index, unit in enumerate(free)}
    flow = Flow(len(free))
    for unit in free:
        gain = problem.outside[unit] - (problem.inside[unit] or 0.0)
        if unit in required:
            flow.from_source(number[unit], BOUNDLESS)
        elif gain > 0:
            flow.from_source(number[unit], capacity(gain))
        if gain < 0:
            flow.to_sink(number[unit], capacity(-gain))
    for tensor in problem.passages:
        _add_passage(flow, tensor, number)
    _, most = flow.solve()
    return frozenset(unit for unit in free if number[unit] in most)


def capacity(ms: float) -> int:
    """Milliseconds as the flow's integers."""
    return round(ms * NANOSECONDS)


def _add_passage(flow: Flow, tensor: Passage, number: dict[int, int]) -> None:
    """The tensor's cost, by a node of its own: paid once for all readers."""
    readers = [number[unit] for unit in tensor.readers if unit in number]
    cost = capacity(tensor.ms)
    if tensor.producer is None:
        if len(readers) == 1:
            flow.to_sink(readers[0], cost)
        elif readers:
            node = flow.add_node()
            flow.to_sink(node, cost)
            for reader in readers:
                flow.between(reader, node, BOUNDLESS)
        return
    if tensor.producer not in number:
        return
    producer = number[tensor.producer]
    for reader in readers:
        flow.between(reader, producer, BOUNDLESS)
    if tensor.leaves or len(readers) < len(tensor.readers):
        flow.to_sink(producer, cost)
    elif len(readers) == 1:
        flow.between(producer, readers[0], cost)
    elif readers:
        node = flow.add_node()
        flow.between(producer, node, cost)
        for reader in readers:
            flow.between(node, reader, BOUNDLESS)


def _passes(tensor: Passage, prefix: Collection[int]) -> bool:
    if tensor.producer is None:
        return any(unit in prefix for unit in tensor.readers)
    if tensor.producer not in prefix:
        return False
    return tensor.leaves or any(unit not in prefix for unit in tensor.readers)
