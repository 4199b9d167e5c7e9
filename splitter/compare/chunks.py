"""Integer graphs in chunks that several plans have in common, each run once on the same integers.

Decides where chunks end (at every border of any plan) and what is remembered. A chunk is known by
what it computes: operators, parameters, weights. Changes no numbers: a graph's chunks in order
compute what the graph computes, bit for bit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from splitter.carve import cut
from splitter.graph import Array
from splitter.plan import Device, Plan
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Tensor
from splitter.tflite.write import write

Arrays = Mapping[str, Array]
HELD = 1 << 28
"""Bytes of results that are remembered; then no more are added."""


@dataclass(frozen=True)
class Chunk:
    """A piece of a segment. lead: of the first one, whose results other plans may ask for too."""

    segment: int
    device: Device
    graph: LiteGraph
    digest: str
    lead: bool


def ranks(plans: Sequence[Plan]) -> Mapping[str, int]:
    """By unit: how many of the plans' borders lie before it. What a unit reads has no higher one:
    everything before a border is fed from before it."""
    sets = set()
    for plan in plans:
        before: frozenset[str] = frozenset()
        for segment in plan.segments[:-1]:
            before = before.union(segment.units)
            sets.add(before)
    units = [unit for segment in plans[0].segments for unit in segment.units]
    return {unit: sum(unit not in before for before in sets) for unit in units}


def chunks(graph: LiteGraph, plan: Plan, rank: Mapping[str, int]) -> tuple[Chunk, ...]:
    """The graph in chunks, in the order of the plan.

    An operator that units share is of the first one that runs, and ranks no lower than what it
    reads.
    """
    place = {unit: index for index, s in enumerate(plan.segments) for unit in s.units}
    groups: dict[tuple[int, int], list[int]] = {}
    made: dict[str, tuple[int, int]] = {}
    for index, op in enumerate(graph.operators):
        key = place[op.unit], rank[op.unit]
        key = max((key, *(made[name] for name in op.inputs if name in made)))
        made.update(dict.fromkeys(op.outputs, key))
        groups.setdefault(key, []).append(index)
    order = sorted(groups)
    pieces = cut(graph, [groups[key] for key in order])
    return tuple(
        Chunk(segment, plan.segments[segment].device, piece, digest_of(piece), segment == 0)
        for (segment, _), piece in zip(order, pieces, strict=True)
    )


def digest_of(graph: LiteGraph) -> str:
    """Equal for graphs that compute the same from the same inputs, names included."""
    digest = hashlib.sha256(repr((graph.inputs, graph.outputs)).encode())
    for name, tensor in graph.tensors.items():
        digest.update(_described(name, tensor).encode())
        if tensor.data is not None:
            digest.update(np.ascontiguousarray(tensor.data).data)
    for op in graph.operators:
        options = sorted((key, _plain(value)) for key, value in op.options.items())
        digest.update(repr((op.code, op.inputs, op.outputs, options)).encode())
    return digest.hexdigest()


def _described(name: str, tensor: Tensor) -> str:
    return repr((name, tensor.shape, tensor.dtype, tensor.quantization))


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


@dataclass
class Memory:
    """Results of leading chunks, by chunk and inputs."""

    results: dict[tuple[str, str], dict[str, Array]] = field(default_factory=dict)
    held: int = 0

    def add(self, key: tuple[str, str], result: dict[str, Array]) -> None:
        size = sum(array.nbytes for array in result.values())
        if self.held + size <= HELD:
            self.results[key] = result
            self.held += size


class Machine:
    """Runs the chunks of one integer graph in order; one thread, LiteRT's built-in kernels.

    cpu_ms: of each CPU segment, the fastest run of each of its chunks, in the thread's own
    processor time, so that what runs beside does not count.
    """

    def __init__(self, chunks: Sequence[Chunk], memory: Memory) -> None:
        self._chunks, self._memory = chunks, memory
        self._parts: dict[int, Interpreter] = {}
        self._fastest: dict[int, float] = {}

    @property
    def cpu_ms(self) -> Mapping[int, float]:
        found: dict[int, float] = {}
        for index, ms in self._fastest.items():
            chunk = self._chunks[index]
            if chunk.device == "cpu":
                found[chunk.segment] = found.get(chunk.segment, 0.0) + ms
        return found

    def run(self, inputs: Arrays) -> dict[str, Array]:
        """Raw integers by name: model inputs to everything that passes between chunks."""
        made = dict(inputs)
        for index, chunk in enumerate(self._chunks):
            feeds = {name: made[name] for name in chunk.graph.inputs}
            made |= self._run(index, chunk, feeds)
        return made

    def _run(self, index: int, chunk: Chunk, feeds: Arrays) -> dict[str, Array]:
        if not chunk.lead or chunk.device == "cpu":
            return self._invoke(index, chunk, feeds)
        key = chunk.digest, _digest(feeds)
        known = self._memory.results.get(key)
        if known is None:
            known = self._invoke(index, chunk, feeds)
            self._memory.add(key, known)
        return known

    def _invoke(self, index: int, chunk: Chunk, feeds: Arrays) -> dict[str, Array]:
        if index not in self._parts:
            self._parts[index] = Interpreter(write(chunk.graph))
        begin = time.thread_time()
        made = self._parts[index].run(feeds)
        taken = 1e3 * (time.thread_time() - begin)
        self._fastest[index] = min(taken, self._fastest.get(index, taken))
        return made


def _digest(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(arrays):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(arrays: Arrays) -> Iterator[bytes]:
    for name in sorted(arrays):
        yield name.encode()
        yield np.ascontiguousarray(arrays[name]).tobytes()
