"""The integer models of many plans from one calibration.

Decides what is shared: every way of writing a unit that any plan uses is calibrated in one float
graph, side by side, so each plan finds the ranges of its own lowerings there. Plans whose integer
graphs are the same are one model. A unit that reads another one sees what the first plan's
lowering of it gives; lowerings of a unit differ by their stated error at most. A plan that writes a
value which is not there is calibrated by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from splitter.compare.chunks import Chunk, chunks, digest_of, ranks
from splitter.graph import Array, Graph, Unit
from splitter.lower import lower
from splitter.ops.registry import fragment
from splitter.plan import Plan
from splitter.quantize import Range, Ranges, calibrate, quantize
from splitter.quantize.choice import CANDIDATES, pick_clip
from splitter.quantize.clipping import Clip, Function
from splitter.quantize.demands import demands_of
from splitter.quantize.pieces import Join, part_outputs
from splitter.rules.schema import Target
from splitter.rules.support import lowering_of
from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.width import units_on

Key = tuple[str, str]
"""A unit and the lowering that it is written by."""


@dataclass(frozen=True)
class Integers:
    """The integer graph of a plan, and it in chunks. digest: of what it computes."""

    whole: LiteGraph
    chunks: tuple[Chunk, ...]
    joins: Mapping[str, Join]
    digest: str


class Remembered:
    """A way of clipping that is asked once for each range, however many graphs have it."""

    def __init__(self, clip: Clip) -> None:
        self._clip = clip
        self._known: dict[tuple[int, bool], tuple[Range, tuple[float, float]]] = {}

    def __call__(
        self, entry: Range, symmetric: bool, function: Function | None = None
    ) -> tuple[float, float]:
        if function is not None:
            return self._clip(entry, symmetric, function)
        key = id(entry), symmetric
        if key not in self._known:  # the range is kept, so that no other can have its id
            self._known[key] = entry, self._clip(entry, symmetric, None)
        return self._known[key][1]


class Workshop:
    """Makes integer graphs of plans on one graph, all from one calibration."""

    def __init__(
        self,
        graph: Graph,
        plans: Sequence[Plan],
        samples: Sequence[Mapping[str, Array]],
        *,
        flags: Collection[str] = (),
        threads: int,
    ) -> None:
        """plans: every plan that will be asked for, the one that the clipping is chosen on first.

        samples: arrays by input name, as in `calibrate`; flags too.
        """
        self._graph = graph
        self._samples = samples
        self._flags = flags
        self._first = plans[0]
        merged, self._names = side_by_side(graph, plans)
        self._ranges = calibrate(merged, samples, flags=flags, threads=threads)
        self._ways = {name: Remembered(clip) for name, clip in CANDIDATES.items()}
        self._clip = next(iter(CANDIDATES))
        self._rank = ranks(plans)

    def choose_clip(self, target: Target) -> str:
        """The way of clipping that serves the first plan, for all of them."""
        lite, ranges = self._floats(self._first)
        parted = part_outputs(lite, ranges)
        npu, demands = units_on(self._first, "npu"), demands_of(target)

        def made(clip: str) -> LiteGraph:
            way = self._ways[clip]
            return quantize(parted.graph, parted.ranges, npu=npu, demands=demands, clip=way)

        self._clip = pick_clip(parted.graph, self._samples, made)
        return self._clip

    def integers(self, plan: Plan, target: Target) -> Integers:
        """The plan's integer graph."""
        lite, ranges = self._floats(plan)
        parted = part_outputs(lite, ranges)
        whole = quantize(
            parted.graph,
            parted.ranges,
            npu=units_on(plan, "npu"),
            demands=demands_of(target),
            clip=self._ways[self._clip],
        )
        pieces = chunks(whole, plan, self._rank)
        return Integers(whole, pieces, parted.joins, digest_of(whole))

    def _floats(self, plan: Plan) -> tuple[LiteGraph, Ranges]:
        lite = lower(self._graph, plan.lowerings)
        found = {}
        for op in lite.operators:
            names = self._names.get((op.unit, plan.lowerings[op.unit]), {})
            for name in op.outputs:
                entry = self._ranges.get(names.get(name, name))
                if entry is not None:
                    found[name] = entry
        found |= {name: self._ranges[name] for name in lite.inputs if name in self._ranges}
        if any(_needs_range(tensor) and name not in found for name, tensor in lite.tensors.items()):
            return lite, calibrate(lite, self._samples, flags=self._flags, threads=1)
        return lite, found


def _needs_range(tensor: Tensor) -> bool:
    return tensor.dtype == "float32" and tensor.data is None and tensor.elements > 0


def side_by_side(
    graph: Graph, plans: Sequence[Plan]
) -> tuple[LiteGraph, Mapping[Key, Mapping[str, str]]]:
    """One float graph with every lowering that a plan uses, and the names of the further ones.

    The first plan's lowerings are linked up; each further lowering of a unit reads the same values
    and nothing reads it. By (unit, lowering): its tensors' names -> their names in this graph.
    """
    merged = lower(graph, plans[0].lowerings)
    tensors, operators = dict(merged.tensors), list(merged.operators)
    names: dict[Key, dict[str, str]] = {}
    for unit in graph.units:
        used = dict.fromkeys(plan.lowerings[unit.name] for plan in plans)
        for lowering in list(used)[1:]:
            part, table = _renamed(graph, unit, lowering)
            if all(name in tensors for name in part.inputs):
                names[unit.name, lowering] = table
                tensors = {**part.tensors, **tensors}
                operators += part.operators
    return replace(merged, tensors=tensors, operators=tuple(operators)), names


def _renamed(graph: Graph, unit: Unit, lowering: str) -> tuple[LiteGraph, dict[str, str]]:
    """A unit in another lowering, everything that it makes under names of its own."""
    part = fragment(graph, unit, lowering_of(unit, lowering))
    own = {n: t for n, t in part.tensors.items() if n not in part.inputs}
    kept = {n for n, t in own.items() if t.data is not None and n in graph.values}
    table = {name: f"{name}@{lowering}" for name in own if name not in kept}
    operators = tuple(_with_names(op, table) for op in part.operators)
    tensors = {table.get(n, n): replace(t, name=table.get(n, n)) for n, t in part.tensors.items()}
    return replace(part, tensors=tensors, operators=operators), table


def _with_names(op: Operator, table: Mapping[str, str]) -> Operator:
    return replace(
        op,
        inputs=tuple(table.get(name, name) for name in op.inputs),
        outputs=tuple(table.get(name, name) for name in op.outputs),
    )
