"""Plans worth comparing: the planner's own, what is usually done, and cuts between blocks.

Decides which plans, and how `split` is asked for each; ranks nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from splitter.graph import Graph
from splitter.partition.borders import block_borders
from splitter.partition.candidates import ALL_CPU, LARGEST, plan
from splitter.partition.mincut import ancestors
from splitter.partition.planner import Planner, prefixed, problem_of
from splitter.partition.segments import scheduled
from splitter.partition.stages import Levels, pinned
from splitter.partition.wishes import read_wishes
from splitter.plan import Plan, Segment, Support
from splitter.rulefile import Target

Kind = Literal["planner", "usual", "block", "cut"]
FIRST_REFUSED = "until the first operator that the NPU refuses"
EVERYTHING = "everything the NPU takes, as a delegate does"


@dataclass(frozen=True)
class Entry:
    """A plan, why it is looked at, and the options with which `split` carries it out.

    options: () where no option asks for it. also: names of the same placement, found otherwise.
    """

    plan: Plan
    kind: Kind
    options: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """The plan that `split` carries out, then the others.

    unit_ms: estimated ms of each unit on the NPU (None where it does not fit) and on the CPU.
    """

    entries: tuple[Entry, ...]
    unit_ms: Mapping[str, tuple[float | None, float]]


def catalogue(
    graph: Graph,
    support: Support,
    target: Target,
    *,
    npu: Sequence[str] = (),
    cpu: Sequence[str] = (),
    cuts: Sequence[Sequence[str]] = (),
    max_segments: int = 2,
    count: int = 20,
) -> Catalogue:
    """Different plans, about `count`: cuts between blocks fill up what the others leave.

    npu, cpu, max_segments: as in `plan`; more segments are tried all the same. cuts: each a list of
    tensors at which the first NPU segment ends. Raises SplitterError as `plan` does.
    """
    wishes = read_wishes(graph, npu=npu, cpu=cpu, cut=[name for cut in cuts for name in cut])
    problem = pinned(problem_of(graph, support, target), npu=wishes.npu, cpu=wishes.cpu)
    planner = Planner(graph, support, target, problem)
    first, *others = plan(graph, support, target, npu=npu, cpu=cpu, max_segments=max_segments)
    entries = [Entry(first, "planner", _segments_option(first))]
    for cut in cuts:
        made = plan(graph, support, target, npu=npu, cpu=cpu, cut=cut, max_segments=max_segments)
        entries.append(Entry(made[0], "cut", ("--cut", ",".join(cut))))
    usual = (ALL_CPU, LARGEST)
    entries += [
        Entry(one, "usual") if one.name in usual else Entry(one, "planner", _segments_option(one))
        for one in others
    ]
    if target.has_npu:
        entries += _usual(planner)
        entries += _blocks(planner, count - len(_distinct(entries)))
    unit_ms = zip(graph.units, problem.inside, problem.outside, strict=True)
    return Catalogue(
        tuple(_distinct(entries).values()), {unit.name: (a, b) for unit, a, b in unit_ms}
    )


def _distinct(entries: Sequence[Entry]) -> dict[tuple[Segment, ...], Entry]:
    """The first of each placement, those that cannot be left out."""
    unlike: dict[tuple[Segment, ...], Entry] = {}
    for entry in entries:
        if entry.plan.cost.total_ms == inf:
            continue
        same = unlike.setdefault(entry.plan.segments, entry)
        if entry.plan.name not in (same.plan.name, *same.also):
            unlike[entry.plan.segments] = replace(same, also=(*same.also, entry.plan.name))
    return unlike


def _segments_option(plan: Plan) -> tuple[str, ...]:
    return ("--max-segments", str(len(plan.segments)))


def _usual(planner: Planner) -> list[Entry]:
    """What other tools do: the longest prefix in the file's order, or whatever is supported."""
    problem, target = planner.problem, planner.target
    fits = [inside is not None for inside in problem.inside]
    refused = fits.index(False) if False in fits else len(fits)
    found = [(FIRST_REFUSED, prefixed(problem, range(refused)))] if refused else []
    greedy = scheduled(problem, fits)
    if target.max_segments is None or _npu_segments(greedy) <= target.max_segments:
        found.append((EVERYTHING, greedy))
    return [Entry(planner.plan(name, levels), "usual") for name, levels in found if levels]


def _npu_segments(levels: Levels) -> int:
    return sum(level % 2 == 0 for level in set(levels))


def _blocks(planner: Planner, count: int) -> list[Entry]:
    """Cuts between blocks; the longest prefix is among the usual plans already."""
    graph, entries = planner.graph, []
    for border in block_borders(planner.problem, count) if count > 0 else ():
        names = outgoing(graph, border.units)
        makers = {index for index in border.units if set(graph.units[index].outputs) & set(names)}
        made = planner.cut(ancestors(planner.problem, makers), 2, title=cut_title(names))
        entries.append(Entry(made, "block", ("--cut", ",".join(names))))
    return entries


def outgoing(graph: Graph, units: Collection[int]) -> tuple[str, ...]:
    """Values that the units make and others read, or that are outputs of the model."""
    inside = {graph.units[index].name for index in units}
    return tuple(
        name
        for index in sorted(units)
        for name in graph.units[index].outputs
        if name in graph.outputs
        or any(reader.name not in inside for reader in graph.consumers.get(name, ()))
    )


def cut_title(names: Sequence[str]) -> str:
    """The tensor that is made last tells where the cut is."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"cut at {names[-1]}{more}"
