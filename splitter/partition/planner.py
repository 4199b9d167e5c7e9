"""A graph's placement problem, and answers to it as plans with their cost.

Decides how levels become segments. What handing a tensor over costs is `passing`'s matter, verdicts
are `support`'s, times `latency`'s, the search `segments`'; which plans are asked for `candidates`'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from splitter.diagnostics import SplitterError
from splitter.graph import Graph
from splitter.latency import invoke_ms
from splitter.partition.contract import contract
from splitter.partition.costs import unit_costs
from splitter.partition.mincut import Passage, Problem
from splitter.partition.passing import passage_ms
from splitter.partition.proof import proven
from splitter.partition.segments import Placement, Shape, best_placements
from splitter.partition.stages import Levels, crossing, on_npu, unit_ms
from splitter.plan import Cost, Device, Plan, Segment, Support
from splitter.rules.schema import Target

WORTH = 0.03
"""Share of the time that each further segment must save; every one is a file to convert and call,
and the estimate errs by more than that."""


def title_of(levels: Levels) -> str:
    devices = ["NPU" if on_npu(level) else "CPU" for level in sorted(set(levels))]
    return " | ".join(devices) if len(devices) > 1 else f"all on the {devices[0]}"


def prefixed(problem: Problem, prefix: Collection[int]) -> Levels:
    return tuple(0 if unit in prefix else 1 for unit in range(len(problem.outside)))


@dataclass(frozen=True)
class Planner:
    """A graph's problem, and its answers as plans."""

    graph: Graph
    support: Support
    target: Target
    problem: Problem

    def best(self, most: int) -> Mapping[Shape, Placement]:
        """The best placements by shape, within what the target takes."""
        return self._best(self.problem, most)

    def chosen(
        self, found: Mapping[Shape, Placement], most: int, *, calls: int | None, thrifty: bool
    ) -> Plan:
        """The quickest plan of at most so many segments, `calls` of them on the NPU.

        thrifty: segments beyond two save their share.
        """
        allowed = [
            one
            for shape, one in found.items()
            if shape.segments <= most and (calls is None or shape.npu <= calls)
        ]
        placements = sorted(allowed, key=lambda one: (one.segments, one.ms))
        if not placements:
            raise SplitterError(
                f"no plan of at most {most} segments"
                + ("" if calls is None else f", {calls} on the NPU,")
                + " has every unit where it must be",
                where="--npu, --cpu",
                hint="allow more with --max-segments",
            )
        chosen = placements[0]
        for one in placements[1:]:
            extra = max(one.segments - max(chosen.segments, 2), 0) if thrifty else 0
            if one.ms < chosen.ms * (1 - WORTH * extra):
                chosen = one
        return self.plan(title_of(chosen.levels), chosen.levels)

    def cut(self, prefix: Collection[int], most: int, *, title: str) -> Plan:
        """The prefix first, then the quickest rest that starts on the CPU."""
        rest = [unit for unit in range(len(self.graph.units)) if unit not in prefix]
        number = {unit: index for index, unit in enumerate(rest, start=1)}
        passages = [Passage(0, tuple(number.values()), 0.0)] if rest else []
        for tensor in self.problem.passages:
            readers = tuple(number[reader] for reader in tensor.readers if reader in number)
            paid = tensor.producer in prefix or (
                tensor.producer is None and len(readers) < len(tensor.readers)
            )
            if not paid and (readers or tensor.producer is not None):
                maker = None if tensor.producer is None else number[tensor.producer]
                passages.append(Passage(maker, readers, tensor.ms, tensor.leaves))
        problem = Problem(
            (None, *(self.problem.inside[unit] for unit in rest)),
            (0.0, *(self.problem.outside[unit] for unit in rest)),
            tuple(passages),
        )
        found = self._best(problem, most - 1).values()
        if not found:
            raise SplitterError(
                f"no plan of at most {most} segments has every unit where it must be",
                where="--cut, --npu",
                hint="allow more with --max-segments",
            )
        best = min(found, key=lambda one: (one.ms, one.segments))
        levels = [0] * len(self.graph.units)
        for unit, level in zip(rest, best.levels[1:], strict=True):
            levels[unit] = level
        return self.plan(title, tuple(levels))

    def _best(self, problem: Problem, most: int) -> dict[Shape, Placement]:
        invoke = invoke_ms(self.target)
        small = contract(problem)
        found = best_placements(small.problem, invoke, most)
        found = proven(small.problem, invoke, most, found)
        allowed = self.target.max_segments
        return {
            shape: Placement(small.expanded(one.levels), one.ms)
            for shape, one in found.items()
            if one.ms < inf and (allowed is None or shape.npu <= allowed)
        }

    def plan(self, name: str, levels: Levels) -> Plan:
        """The levels as a plan with its cost by kind."""
        units = self.graph.units
        segments = []
        lowerings: dict[str, str] = {}
        for level in sorted(set(levels)):
            device: Device = "npu" if on_npu(level) else "cpu"
            verdicts = self.support.npu if device == "npu" else self.support.cpu
            names = tuple(unit.name for unit, at in zip(units, levels, strict=True) if at == level)
            segments.append(Segment(device, names))
            lowerings |= {name: verdicts[name].lowering for name in names}
        invoke = invoke_ms(self.target)
        calls = sum(segment.device == "npu" for segment in segments)
        passed = sum(tensor.ms for tensor in crossing(self.problem, levels))
        spent = {True: 0.0, False: 0.0}
        for unit, level in enumerate(levels):
            spent[on_npu(level)] += unit_ms(self.problem, unit, level)
        cost = Cost(
            npu_ms=max(spent[True], 0.0),
            cpu_ms=max(spent[False], 0.0),  # what a border saves is taken off: leaves -1e-18
            transfer_ms=passed,
            invoke_ms=invoke * calls,
        )
        return Plan(name, tuple(segments), lowerings, cost)


def problem_of(graph: Graph, support: Support, target: Target) -> Problem:
    inside, outside = unit_costs(graph, support, target)
    return Problem(inside, outside, tuple(_passages(graph, target)))


def _passages(graph: Graph, target: Target) -> Iterator[Passage]:
    index = {unit.name: i for i, unit in enumerate(graph.units)}
    made = {name: index[unit.name] for name, unit in graph.producers.items()}
    for name in dict.fromkeys((*graph.inputs, *made)):
        readers = tuple(index[unit.name] for unit in graph.consumers[name])
        leaves = name in graph.outputs and name in made
        if readers or leaves:
            yield Passage(made.get(name), readers, passage_ms(graph, name, target), leaves)
