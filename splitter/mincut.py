"""The cheapest prefix of a graph of units, exactly, as a minimum s-t cut.

Decides which units form the prefix, from plain numbers; knows no operators and no target. The
prefix is closed: whoever feeds a unit of the prefix is in the prefix too (minimum closure, Picard
1976), and a tensor that leaves it is paid for once however many units read it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import networkx as nx
from networkx.algorithms.flow import boykov_kolmogorov

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


@dataclass(frozen=True, slots=True)
class Problem:
    """Units 0..n-1 in topological order: time inside the prefix (None: impossible), outside."""

    inside: tuple[float | None, ...]
    outside: tuple[float, ...]
    passages: tuple[Passage, ...]


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
    feeders = _feeders(problem)
    found: set[int] = set()
    for unit, inside in enumerate(problem.inside):
        if inside is not None and unit not in barred and feeders[unit] <= found:
            found.add(unit)
    return frozenset(found)


def ancestors(problem: Problem, units: Collection[int]) -> frozenset[int]:
    """The units and everything that feeds them."""
    feeders = _feeders(problem)
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
    free = possible(problem, barred)
    flow = nx.DiGraph()
    flow.add_nodes_from(("source", "sink"))
    for unit in sorted(free):
        gain = problem.outside[unit] - (problem.inside[unit] or 0.0)
        if unit in required:
            _add(flow, "source", unit, None)
        else:
            _add(flow, "source", unit, max(gain, 0.0))
        _add(flow, unit, "sink", max(-gain, 0.0))
    for index, tensor in enumerate(problem.passages):
        _add_passage(flow, tensor, ("tensor", index), free)
    residual = boykov_kolmogorov(flow, "source", "sink")
    outside = _reaching(residual, "sink")
    return frozenset(unit for unit in free if unit not in outside)


def _add(flow: nx.DiGraph, tail: Hashable, head: Hashable, ms: float | None) -> None:
    """An edge; None is a capacity without bound. Edges in parallel add up."""
    if ms is None:
        flow.add_edge(tail, head)
        flow[tail][head].pop("capacity", None)
        return
    amount = round(ms * NANOSECONDS)
    if flow.has_edge(tail, head):
        if "capacity" in flow[tail][head]:
            flow[tail][head]["capacity"] += amount
    elif amount:
        flow.add_edge(tail, head, capacity=amount)


def _add_passage(flow: nx.DiGraph, tensor: Passage, node: Hashable, free: Collection[int]) -> None:
    """The tensor's cost, by a node of its own: paid once for all readers."""
    readers = [unit for unit in tensor.readers if unit in free]
    if tensor.producer is None:
        for unit in readers:
            _add(flow, unit, node, None)
        if readers:
            _add(flow, node, "sink", tensor.ms)
        return
    if tensor.producer not in free:
        return
    for unit in readers:
        _add(flow, unit, tensor.producer, None)
    if tensor.leaves or len(readers) < len(tensor.readers):
        _add(flow, tensor.producer, "sink", tensor.ms)
    elif len(readers) == 1:
        _add(flow, tensor.producer, readers[0], tensor.ms)
    elif readers:
        _add(flow, tensor.producer, node, tensor.ms)
        for unit in readers:
            _add(flow, node, unit, None)


def _reaching(residual: nx.DiGraph, sink: Hashable) -> set[Hashable]:
    """Nodes from which the sink can still be reached: the smallest outside."""
    found = {sink}
    stack = [sink]
    while stack:
        head = stack.pop()
        for tail in residual.pred[head]:
            edge = residual[tail][head]
            if tail not in found and edge["flow"] < edge["capacity"]:
                found.add(tail)
                stack.append(tail)
    return found


def _passes(tensor: Passage, prefix: Collection[int]) -> bool:
    if tensor.producer is None:
        return any(unit in prefix for unit in tensor.readers)
    if tensor.producer not in prefix:
        return False
    return tensor.leaves or any(unit not in prefix for unit in tensor.readers)


def _feeders(problem: Problem) -> tuple[set[int], ...]:
    feeders: tuple[set[int], ...] = tuple(set() for _ in problem.outside)
    for tensor in problem.passages:
        if tensor.producer is not None:
            for unit in tensor.readers:
                feeders[unit].add(tensor.producer)
    return feeders
