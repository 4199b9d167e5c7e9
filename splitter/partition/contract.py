"""Joins units that some best placement keeps in one segment, so that the search has fewer.

Decides which neighbors may be joined, by an exchange argument: whatever the placement, one of the
two can move to the other's segment without making it dearer. That holds for any number of segments
and any cost of a call, so a smaller problem has the same least cost. See `stages` for the costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from splitter.partition.mincut import Passage, Problem


@dataclass(frozen=True, slots=True)
class Contraction:
    """A smaller problem. members[i]: the units that its unit i stands for, ascending."""

    problem: Problem
    members: tuple[tuple[int, ...], ...]

    def expanded(self, levels: Sequence[int]) -> tuple[int, ...]:
        """Levels of the smaller problem's units as levels of all units."""
        whole = [0] * sum(len(units) for units in self.members)
        for level, units in zip(levels, self.members, strict=True):
            for unit in units:
                whole[unit] = level
        return tuple(whole)


@dataclass(slots=True)
class _Tensor:
    maker: int | None
    readers: set[int]
    ms: float
    leaves: bool


@dataclass(slots=True)
class _Node:
    """A group of units. npu, cpu: milliseconds there, infinite where it cannot be."""

    npu: float
    cpu: float
    units: list[int]
    reads: set[int] = field(default_factory=set)
    makes: set[int] = field(default_factory=set)


def contract(problem: Problem) -> Contraction:
    """The problem with units joined until no two neighbors can be any more."""
    state = _State(problem)
    waiting = list(reversed(range(len(problem.outside))))
    while waiting:
        unit = waiting.pop()
        if unit not in state.nodes:
            continue
        other = next((n for n in state.neighbors(unit) if state.joinable(unit, n)), None)
        if other is not None:
            state.join(unit, other)
            waiting.append(unit)
            waiting.extend(n for n in state.around(unit) if n != unit)
    return state.result()


class _State:
    """Groups and the tensors between them, while they are being joined."""

    def __init__(self, problem: Problem) -> None:
        pairs = zip(problem.inside, problem.outside, strict=True)
        self.nodes = {
            unit: _Node(inf if inside is None else inside, outside, [unit])
            for unit, (inside, outside) in enumerate(pairs)
        }
        self.tensors = [
            _Tensor(one.producer, set(one.readers), one.ms, one.leaves) for one in problem.passages
        ]
        for index, tensor in enumerate(self.tensors):
            for reader in tensor.readers:
                self.nodes[reader].reads.add(index)
            if tensor.maker is not None:
                self.nodes[tensor.maker].makes.add(index)

    def feeders(self, node: int) -> set[int]:
        makers = (self.tensors[t].maker for t in self.nodes[node].reads)
        return {maker for maker in makers if maker is not None}

    def readers(self, node: int) -> set[int]:
        return {r for t in self.nodes[node].makes for r in self.tensors[t].readers}

    def neighbors(self, node: int) -> list[int]:
        """Groups after this one that it alone feeds, or that alone read it."""
        readers = self.readers(node)
        alone = len(readers) == 1 and not self.leaves(node)
        return sorted(r for r in readers if alone or self.feeders(r) == {node})

    def leaves(self, node: int) -> bool:
        return any(self.tensors[t].leaves for t in self.nodes[node].makes)

    def around(self, node: int) -> list[int]:
        return sorted({*self.feeders(node), *self.readers(node)})

    def joinable(self, first: int, last: int) -> bool:
        """Whether in every case in which the two lie in different segments one can move."""
        u, v = self.nodes[first], self.nodes[last]
        up = self.feeders(last) == {first}
        down = self.readers(first) == {last} and not self.leaves(first)
        saved = self._sum(t for t in u.makes if self._only(t, last))
        made = self._sum(v.makes)
        given = self._sum(t for t in v.reads if self.tensors[t].maker is None)
        read = self._sum(t for t in u.reads if self.tensors[t].maker is not None)
        read_all = self._sum(u.reads)
        gain_u, gain_v = u.cpu - u.npu, v.cpu - v.npu
        cases = (
            (u.npu, v.cpu, made + given - gain_v - saved, read + gain_u - saved),
            (u.cpu, v.npu, made + gain_v - saved, read_all - gain_u - saved),
            (u.npu, v.npu, made - saved, read - saved),
        )
        return all(
            (up and move_last <= 0) or (down and move_first <= 0)
            for u_ms, v_ms, move_last, move_first in cases
            if u_ms < inf and v_ms < inf
        )

    def _sum(self, tensors: Iterable[int]) -> float:
        return sum(self.tensors[t].ms for t in tensors)

    def _only(self, tensor: int, reader: int) -> bool:
        one = self.tensors[tensor]
        return one.readers == {reader} and not one.leaves

    def join(self, first: int, last: int) -> None:
        """Makes `last` part of `first`."""
        u, v = self.nodes[first], self.nodes.pop(last)
        u.npu += v.npu
        u.cpu += v.cpu
        u.units += v.units
        for index in v.reads:
            self.tensors[index].readers.discard(last)
            self.tensors[index].readers.add(first)
        for index in v.makes:
            self.tensors[index].maker = first
        u.reads |= v.reads
        u.makes |= v.makes
        for index in sorted(u.makes & u.reads):
            tensor = self.tensors[index]
            tensor.readers.discard(first)
            u.reads.discard(index)
            if not tensor.readers and not tensor.leaves:
                u.makes.discard(index)

    def result(self) -> Contraction:
        order = self._ordered()
        number = {node: index for index, node in enumerate(order)}
        nodes = [self.nodes[node] for node in order]
        used = sorted({t for node in nodes for t in (*node.reads, *node.makes)})
        passages = []
        for tensor in (self.tensors[index] for index in used):
            maker = None if tensor.maker is None else number[tensor.maker]
            readers = tuple(sorted(number[reader] for reader in tensor.readers))
            passages.append(Passage(maker, readers, tensor.ms, tensor.leaves))
        problem = Problem(
            tuple(None if node.npu == inf else node.npu for node in nodes),
            tuple(node.cpu for node in nodes),
            tuple(passages),
        )
        return Contraction(problem, tuple(tuple(sorted(node.units)) for node in nodes))

    def _ordered(self) -> list[int]:
        """Groups in topological order, the one with the earliest unit first where free."""
        waiting = {node: len(self.feeders(node)) for node in self.nodes}
        ready = sorted((n for n, count in waiting.items() if not count), reverse=True)
        order = []
        while ready:
            node = ready.pop()
            order.append(node)
            for reader in sorted(self.readers(node), reverse=True):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        return order
