"""What the user asks of the placement: names read as units, and refused where they cannot be.

Decides which names are meant and what stands in the way; `partition` heeds the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from splitter.diagnostics import Reason, SplitterError, nearest
from splitter.graph import Graph, Unit
from splitter.partition.mincut import Problem
from splitter.plan import Support

SHOWN = 20
"""Lines of an error that lists operators."""

NO_MAKERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asks for, as unit indices. `cut`: the units that make what it is cut at.

    fused: of the names in `--cut`, those inside a unit, with the value that is cut at instead.
    """

    npu: frozenset[int]
    cpu: frozenset[int]
    cut: frozenset[int]
    fused: Mapping[str, str] = field(default_factory=dict)

    def title(self, cut: Sequence[str]) -> str:
        """ "cut at A, B (in C)"."""
        inside = {name: f" (in {value})" for name, value in self.fused.items()}
        return f"cut at {', '.join(name + inside.get(name, '') for name in cut)}"


def read_wishes(
    graph: Graph,
    *,
    npu: Sequence[str],
    cpu: Sequence[str],
    cut: Sequence[str],
    makers: Mapping[str, str] = NO_MAKERS,
) -> Wishes:
    """A name is a unit, a value of the graph, or a node or value of the ONNX file.

    makers: value of the ONNX file -> its node. Raises SplitterError with every name that means
    nothing and the nearest ones that do.
    """
    names = _Names(graph, makers)
    found = {
        option: [names.find(option, name) for name in asked]
        for option, asked in (("--npu", npu), ("--cpu", cpu), ("--cut", cut))
    }
    if names.mistakes:
        raise SplitterError("; ".join(names.mistakes), where="placement options")
    sets = {option: frozenset(i for units in each for i in units) for option, each in found.items()}
    ends = zip(cut, found["--cut"], strict=True)
    inside = {name: names.instead(name, max(units)) for name, units in ends}
    fused = {name: value for name, value in inside.items() if value}
    return Wishes(sets["--npu"], sets["--cpu"], sets["--cut"], fused)


class _Names:
    """What names mean on a graph; gathers those that mean nothing."""

    def __init__(self, graph: Graph, makers: Mapping[str, str]) -> None:
        self.mistakes: list[str] = []
        self._graph, self._makers = graph, makers
        self._units: dict[str, list[int]] = {}
        for index, unit in enumerate(graph.units):
            for name in dict.fromkeys((unit.name, *unit.nodes)):
                self._units.setdefault(name, []).append(index)
        self._values = {n: i for i, unit in enumerate(graph.units) for n in unit.outputs if n}

    def find(self, option: str, name: str) -> tuple[int, ...]:
        """Indices of the units; none, and a mistake, when there are none."""
        if option == "--cut" and name in self._values:
            return (self._values[name],)
        if name in self._units:
            return tuple(self._units[name])
        if name in self._values:
            return (self._values[name],)
        if self._makers.get(name, "") in self._units:
            return tuple(self._units[self._makers[name]])
        self.mistakes.append(f"{option} {name}: {self._unknown(option, name)}")
        return ()

    def instead(self, name: str, index: int) -> str:
        """The value that a cut at the name is at, when that is another one; else ""."""
        made = [value for value, node in self._makers.items() if name in (value, node)]
        unit = self._graph.units[index]
        known = {word for value in unit.outputs for word in (value, value.partition("~")[0])}
        return "" if name == unit.name or known & {name, *made} else unit.outputs[0]

    def _unknown(self, option: str, name: str) -> str:
        if name in self._graph.inputs:
            return "an input of the model, which no operator makes"
        if name in self._makers or name in self._makers.values():
            return "no longer computed: constants took its place"
        kind = "value or node" if option == "--cut" else "node, value or unit"
        known = {*self._units, *self._values, *self._makers, *self._makers.values()}
        return f"no such {kind}; {nearest(name, known)}"


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
    others = len(reasons) - 1
    more = f" (and {others} more reason{'s' if others > 1 else ''})" if others else ""
    return f"{reasons[0]}{more}"
