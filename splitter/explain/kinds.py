"""Units of one operator with the same reasons, with what they cost on either device.

Decides what is told together. Verdicts are `support`'s, places the plan's, times `latency`'s; what
would move a kind is `ways`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from splitter.diagnostics import Reason
from splitter.graph import Graph, Unit
from splitter.ops.registry import fragment
from splitter.partition.costs import unit_costs
from splitter.plan import Device, Plan, Support
from splitter.rules.schema import Target
from splitter.rules.support import CANNOT_WRITE, as_int8, lowering_of


@dataclass(frozen=True, slots=True)
class Placed:
    """One unit: where it sits, estimated milliseconds on either device, ALL reasons by attempt.

    npu_ms: None where it does not fit. An attempt is a lowering, or the operator of an ONNX node.
    """

    unit: Unit
    device: Device
    cpu_ms: float
    npu_ms: float | None
    attempts: Mapping[str, tuple[Reason, ...]]


@dataclass(frozen=True, slots=True)
class Basis:
    """A rule by which the NPU takes an operator of the kind."""

    operator: str
    confidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Units of one operator on one device that break the same rules, most expensive first.

    rests_on: for units that fit, the rules that say so. after: for units that fit, operators that
    do not, in the same segment, whose results these units need.
    """

    op: str
    placed: tuple[Placed, ...]
    rests_on: tuple[Basis, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def device(self) -> Device:
        return self.placed[0].device

    @property
    def fits(self) -> bool:
        return self.placed[0].npu_ms is not None

    @property
    def cpu_ms(self) -> float:
        return sum(one.cpu_ms for one in self.placed)

    @property
    def npu_ms(self) -> float | None:
        return sum(one.npu_ms or 0.0 for one in self.placed) if self.fits else None

    @property
    def nodes(self) -> tuple[str, ...]:
        """ONNX nodes; for units that stand for none, and only turn a value, the value."""
        names = (node for one in self.placed for node in one.unit.nodes or _turned(one.unit))
        return tuple(dict.fromkeys(names))

    def attempts(self) -> dict[str, tuple[Reason, ...]]:
        """Every attempt with the reasons against it, each actual value once."""
        merged: dict[str, tuple[Reason, ...]] = {}
        for one in self.placed:
            for tried, why in one.attempts.items():
                merged[tried] = tuple(dict.fromkeys((*merged.get(tried, ()), *why)))
        return merged


def kinds(
    graph: Graph, support: Support, target: Target, plan: Plan, units: Iterable[Unit]
) -> tuple[Kind, ...]:
    """These units, those alike together, most expensive on the CPU first."""
    inside, outside = unit_costs(graph, support, target)
    costs = {u.name: (i, o) for u, i, o in zip(graph.units, inside, outside, strict=True)}
    places = {name: segment.device for segment in plan.segments for name in segment.units}
    behind = _behind(graph, support, plan)
    table: dict[tuple[object, ...], list[Placed]] = {}
    for unit in units:
        npu_ms, cpu_ms = costs[unit.name]
        attempts = _attempts(support, unit)
        one = Placed(unit, places[unit.name], cpu_ms, npu_ms, attempts)
        broken = tuple((t, tuple(dict.fromkeys(r.rule for r in w))) for t, w in attempts.items())
        waits = npu_ms is not None and bool(behind[unit.name])
        key = (unit.op, one.device, npu_ms is None, broken, waits)
        table.setdefault(key, []).append(one)
    found = [_kind(graph, support, target, placed, behind) for placed in table.values()]
    return tuple(sorted(found, key=lambda kind: (-kind.cpu_ms, kind.op, kind.nodes)))


def _kind(
    graph: Graph,
    support: Support,
    target: Target,
    placed: list[Placed],
    behind: Mapping[str, frozenset[str]],
) -> Kind:
    fits = placed[0].npu_ms is not None
    before = (operator for one in placed for operator in behind[one.unit.name] if fits)
    bases = (b for one in placed if fits for b in _bases(graph, support, target, one.unit))
    return Kind(
        op=placed[0].unit.op,
        placed=tuple(sorted(placed, key=lambda one: (-one.cpu_ms, one.unit.name))),
        rests_on=tuple(dict.fromkeys(bases)),
        after=tuple(sorted(set(before))),
    )


def _attempts(support: Support, unit: Unit) -> dict[str, tuple[Reason, ...]]:
    """What was tried and why it failed. Of ONNX nodes only the operator: their names differ."""
    verdict = support.npu[unit.name]
    merged: dict[str, tuple[Reason, ...]] = {}
    for tried, why in {} if verdict.fits else verdict.reasons.items():
        operator = tried.split(" ")[0]
        merged[operator] = tuple(dict.fromkeys((*merged.get(operator, ()), *why)))
    return merged


def _turned(unit: Unit) -> tuple[str, ...]:
    return (f"(for the layout of {unit.inputs[0]})" if unit.inputs else unit.name,)


def _bases(graph: Graph, support: Support, target: Target, unit: Unit) -> Iterator[Basis]:
    verdict = support.npu[unit.name]
    if not verdict.fits or target.dialect != "tflite":
        return
    part = as_int8(fragment(graph, unit, lowering_of(unit, verdict.lowering)))
    for code in dict.fromkeys(op.code for op in part.operators):
        rule = target.operators.get(code)
        if rule is not None:
            yield Basis(code, rule.confidence, target.source_text(rule.source))


def _behind(graph: Graph, support: Support, plan: Plan) -> dict[str, frozenset[str]]:
    """Unit -> operators that do not fit, in its own segment, whose results it needs."""
    segment = {name: i for i, one in enumerate(plan.segments) for name in one.units}
    found: dict[str, frozenset[str]] = {}
    for unit in graph.units:
        before: set[str] = set()
        for name in unit.inputs:
            maker = graph.producers.get(name)
            if maker is None or segment[maker.name] != segment[unit.name]:
                continue
            before |= found[maker.name]
            before |= set() if support.npu[maker.name].fits else {maker.op}
        found[unit.name] = frozenset(before)
    return found


def cannot_write(why: Iterable[Reason]) -> bool:
    """Whether an attempt failed because the lowering has no form of this unit."""
    return any(reason.source == CANNOT_WRITE for reason in why)
