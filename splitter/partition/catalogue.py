"""Plans worth comparing: the planner's own, what is usually done, and cuts between blocks.

Decides which plans, and how `split` is asked for each; ranks nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Literal

from splitter.graph import Graph
from splitter.partition.borders import block_borders
from splitter.partition.candidates import ALL_CPU, LARGEST, plan
from splitter.partition.mincut import ancestors
from splitter.partition.planner import Planner, prefixed, problem_of
from splitter.partition.segments import scheduled
from splitter.partition.stages import Levels, pinned
from splitter.partition.wishes import NO_MAKERS, read_wishes
from splitter.plan import Plan, Segment, Support
from splitter.rules.schema import Target

Kind = Literal["planner", "usual", "block", "cut"]
FIRST_REFUSED = "to the first refusal"
"""What comes before the first operator that the NPU refuses, in the file's order."""
EVERYTHING = "as a delegate splits it"
"""Every operator that the NPU takes is there, in as many parts as that makes."""


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
    max_segments: int | None = None,
    count: int = 20,
    makers: Mapping[str, str] = NO_MAKERS,
) -> Catalogue:
    """Different plans, about `count`: cuts between blocks fill up what the others leave.

    npu, cpu: as in `plan`. max_segments: at most so many; None: one on the NPU, as `split` plans by
    itself. More segments are tried all the same. cuts: each a list of
    tensors at which the first NPU segment ends. Raises SplitterError as `plan` does.
    """
    names = [name for cut in cuts for name in cut]
    wishes = read_wishes(graph, npu=npu, cpu=cpu, cut=names, makers=makers)
    problem = pinned(problem_of(graph, support, target), npu=wishes.npu, cpu=wishes.cpu)
    planner = Planner(graph, support, target, problem)
    make = partial(
        plan,
        graph,
        support,
        target,
        npu=npu,
        cpu=cpu,
        max_segments=max_segments,
        makers=makers,
    )
    first, *others = make()
    entries = [Entry(first, "planner", _segments_option(first) if max_segments else ())]
    for cut in cuts:
        entries.append(Entry(make(cut=cut)[0], "cut", ("--cut", ",".join(cut))))
    usual = (ALL_CPU, LARGEST)
    entries += [
        Entry(one, "usual") if one.name in usual else Entry(one, "planner", _segments_option(one))
        for one in others
    ]
    if target.has_npu:
        entries += _usual(planner)
        entries += _blocks(planner, count - len(_distinct(entries)), makers)
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


def _blocks(planner: Planner, count: int, makers: Mapping[str, str]) -> list[Entry]:
    """Cuts between blocks; the longest prefix is among the usual plans already."""
    graph, entries = planner.graph, []
    for border in block_borders(planner.problem, count) if count > 0 else ():
        names = outgoing(graph, border.units)
        ends = {index for index in border.units if set(graph.units[index].outputs) & set(names)}
        asked = [original(graph, name, makers) for name in names]
        made = planner.cut(ancestors(planner.problem, ends), 2, title=cut_title(asked))
        entries.append(Entry(made, "block", ("--cut", ",".join(asked))))
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


def original(graph: Graph, name: str, makers: Mapping[str, str]) -> str:
    """The name that a value has in the ONNX file, where a cut there is a cut here."""
    known = name.partition("~")[0]
    node = makers.get(known, "")
    if known in graph.producers or node not in graph.producers[name].nodes:
        return name
    return name if sum(node in unit.nodes for unit in graph.units) > 1 else known


def cut_title(names: Sequence[str]) -> str:
    """The tensor that is made last tells where the cut is."""
    more = f" (+{len(names) - 1})" if len(names) > 1 else ""
    return f"cut at {names[-1]}{more}"
