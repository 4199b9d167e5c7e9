"""Where every unit sits: an NPU prefix of least estimated time and a CPU remainder, or CPU alone.

Decides the candidates and their order, best first. Verdicts are `support`'s, times `latency`'s, the
search itself `mincut`'s. Segments come as a tuple so that more than two can follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from splitter.diagnostics import Reason, SplitterError, nearest
from splitter.graph import Graph, Unit
from splitter.latency import graph_ms, invoke_ms, transfer_ms
from splitter.mincut import (
    Passage,
    Problem,
    ancestors,
    best_prefix,
    passing,
    possible,
)
from splitter.ops.registry import fragment, lite_dtype
from splitter.plan import Cost, Device, Plan, Segment, Support
from splitter.rulefile import Target
from splitter.support import as_int8, lowering_of

BYTES = {"float32": 1, "int32": 4}
"""Bytes of an element at the border: activations are int8, indices int32, masks one byte."""

SHOWN = 20
"""Lines of an error that lists operators."""


def plan(
    graph: Graph,
    support: Support,
    target: Target,
    *,
    npu: Sequence[str] = (),
    cpu: Sequence[str] = (),
    cut: Sequence[str] = (),
) -> tuple[Plan, ...]:
    """The candidates, best first; with `cut`, the user's cut is first whatever it costs.

    npu, cpu: units, or ONNX nodes, that must sit there. cut: tensors; what they are computed from
    is the NPU part. Raises SplitterError for names that do not exist and wishes that cannot be.
    """
    wishes = _wishes(graph, npu=npu, cpu=cpu, cut=cut)
    problem = _problem(graph, support, target)
    wanted = ancestors(problem, wishes.cut)
    _refuse_impossible(graph, support, problem, wishes)
    largest = possible(problem, wishes.cpu)
    prefixes = {
        "npu|cpu by min cut": best_prefix(problem, required=wishes.npu, barred=wishes.cpu),
        "npu|cpu, as much as possible on the NPU": largest,
    }
    if not wishes.npu:
        prefixes["all on the CPU"] = frozenset()
    if not target.has_npu:
        prefixes = {"all on the CPU": frozenset()}
    own = []
    if cut:
        own = [_plan(f"cut at {', '.join(cut)}", wanted, graph, support, problem, target)]
    found: dict[frozenset[int], Plan] = {}
    for name, prefix in prefixes.items():
        title = name if prefix else "all on the CPU"
        found.setdefault(prefix, _plan(title, prefix, graph, support, problem, target))
    ranked = sorted(found.values(), key=lambda candidate: candidate.cost.total_ms)
    return (*own, *(one for one in ranked if not own or one.segments != own[0].segments))


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What the user asks for, as unit indices. `cut`: the units that make the cut tensors."""

    npu: frozenset[int]
    cpu: frozenset[int]
    cut: frozenset[int]


def _problem(graph: Graph, support: Support, target: Target) -> Problem:
    inside: list[float | None] = []
    outside: list[float] = []
    for unit in graph.units:
        verdict = support.npu[unit.name]
        outside.append(_unit_ms(graph, unit, support.cpu[unit.name].lowering, "cpu", target))
        fits = verdict.fits and target.has_npu
        inside.append(_unit_ms(graph, unit, verdict.lowering, "npu", target) if fits else None)
    return Problem(tuple(inside), tuple(outside), tuple(_passages(graph, target)))


def _unit_ms(graph: Graph, unit: Unit, lowering: str, device: Device, target: Target) -> float:
    part = fragment(graph, unit, lowering_of(unit, lowering))
    return graph_ms(as_int8(part), device, target)


def _passages(graph: Graph, target: Target) -> Iterator[Passage]:
    index = {unit.name: i for i, unit in enumerate(graph.units)}
    made = {name: index[unit.name] for name, unit in graph.producers.items()}
    for name in dict.fromkeys((*graph.inputs, *made)):
        readers = tuple(index[unit.name] for unit in graph.consumers[name])
        leaves = name in graph.outputs and name in made
        if readers or leaves:
            ms = transfer_ms(boundary_bytes(graph, name), target)
            yield Passage(made.get(name), readers, ms, leaves)


def boundary_bytes(graph: Graph, name: str) -> int:
    """Bytes of a value when it passes between parts."""
    value = graph.values[name]
    return value.elements * BYTES.get(lite_dtype(value.dtype), 1)


def _plan(
    name: str,
    prefix: Collection[int],
    graph: Graph,
    support: Support,
    problem: Problem,
    target: Target,
) -> Plan:
    groups: tuple[tuple[Device, list[str]], ...] = (
        ("npu", [u.name for i, u in enumerate(graph.units) if i in prefix]),
        ("cpu", [u.name for i, u in enumerate(graph.units) if i not in prefix]),
    )
    segments = tuple(Segment(device, tuple(names)) for device, names in groups if names)
    verdicts = {"npu": support.npu, "cpu": support.cpu}
    lowerings = {
        unit: verdicts[segment.device][unit].lowering
        for segment in segments
        for unit in segment.units
    }
    cost = Cost(
        npu_ms=sum(problem.inside[i] or 0.0 for i in sorted(prefix)),
        cpu_ms=sum(ms for i, ms in enumerate(problem.outside) if i not in prefix),
        transfer_ms=sum(tensor.ms for tensor in passing(problem, prefix)),
        invoke_ms=invoke_ms(target) if prefix else 0.0,
    )
    return Plan(name, segments, lowerings, cost)


def _wishes(graph: Graph, *, npu: Sequence[str], cpu: Sequence[str], cut: Sequence[str]) -> _Wishes:
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
    return _Wishes(
        npu=frozenset(i for name in npu for i in index[name]),
        cpu=frozenset(i for name in cpu for i in index[name]),
        cut=frozenset(tensors[name] for name in cut),
    )


def _refuse_impossible(graph: Graph, support: Support, problem: Problem, wishes: _Wishes) -> None:
    """One error with every unit that stands in the way of --npu and --cut, and why."""
    needed = ancestors(problem, wishes.npu | wishes.cut)
    lines = []
    for i in sorted(needed):
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
            hint="everything that feeds an NPU operator must be on the NPU too; cut earlier",
        )


def _named(unit: Unit) -> str:
    return f"{unit.name} ({unit.op})"


def _first(reasons: Sequence[Reason]) -> str:
    if not reasons:
        return "the target has no NPU"
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"
