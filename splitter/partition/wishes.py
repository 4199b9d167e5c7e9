"""What the user asks of the placement: names read as units, and refused where they cannot be.

Decides which names are meant and what stands in the way; `partition` heeds the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from splitter.diagnostics import Reason, SplitterError, nearest
from splitter.graph import Graph, Unit
from splitter.partition.mincut import Problem
from splitter.plan import Support

SHOWN = 20
"""Lines of an error that lists operators."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asks for, as unit indices. `cut`: the units that make the cut tensors."""

    npu: frozenset[int]
    cpu: frozenset[int]
    cut: frozenset[int]


def read_wishes(
    graph: Graph, *, npu: Sequence[str], cpu: Sequence[str], cut: Sequence[str]
) -> Wishes:
    """Raises SplitterError with every unknown name and the nearest known ones."""
    index: dict[str, list[int]] = {}
    for i, unit in enumerate(graph.units):
        for name in dict.fromkeys((unit.name, *unit.nodes)):
            index.setdefault(name, []).append(i)
    tensors = {name: i for i, unit in enumerate(graph.units) for name in unit.outputs if name}
    mistakes = [
        f"{option} {name}: no such {kind}; {nearest(name, known)}"
        for option, kind, names, known in (
            ("--npu", "unit or node", npu, index),
            ("--cpu", "unit or node", cpu, index),
            ("--cut", "tensor between operators", cut, tensors),
        )
        for name in names
        if name not in known
    ]
    if mistakes:
        raise SplitterError("; ".join(mistakes), where="placement options")
    return Wishes(
        npu=frozenset(i for name in npu for i in index[name]),
        cpu=frozenset(i for name in cpu for i in index[name]),
        cut=frozenset(tensors[name] for name in cut),
    )


def refuse_impossible(
    graph: Graph, support: Support, problem: Problem, wishes: Wishes, must: Collection[int]
) -> None:
    """One error with every unit of `must` that cannot be on the NPU, and why."""
    lines = []
    for i in sorted(must):
        unit = graph.units[i]
        if i in wishes.cpu:
            lines.append(f"{_named(unit)}: --cpu asks for the CPU")
        elif problem.inside[i] is None:
            verdict = support.npu[unit.name]
            reasons = [reason for group in verdict.reasons.values() for reason in group]
            lines.append(f"{_named(unit)}: {_first(reasons)}")
    if lines:
        shown = "\n  ".join(lines[:SHOWN])
        more = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        raise SplitterError(
            f"{len(lines)} operator(s) cannot be on the NPU as asked:\n  {shown}{more}",
            where="--npu, --cut",
            hint="what feeds the cut must be on the NPU too; cut earlier, or allow more segments",
        )


def _named(unit: Unit) -> str:
    return f"{unit.name} ({unit.op})"


def _first(reasons: Sequence[Reason]) -> str:
    if not reasons:
        return "the target has no NPU"
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"
