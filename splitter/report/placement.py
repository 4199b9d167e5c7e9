"""Where every unit sits and why, and the CPU's units gathered by reason, the dearest first.

Decides how reasons are put into words; the reasons themselves are `support`'s and the plan's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from splitter.diagnostics import Reason
from splitter.graph import Graph
from splitter.latency import operator_ms
from splitter.plan import Device
from splitter.report.data import ReportData
from splitter.tflite.facts import macs
from splitter.tflite.types import Operator

BEHIND = "fit the NPU, but read what the CPU computes, and the plan has no NPU part after it"
CHEAPER = "fit the NPU, but moving the data there would take longer than it saves"
ASKED = "fit the NPU, and are here because the plan keeps to {} as given"
NO_NPU = "the target has no NPU"


@dataclass(frozen=True, slots=True)
class Placement:
    """A unit. part: index of its file, -1 when it needs no operator. ms: estimated, on its device.

    reasons: why it is not on the NPU, all of them; why in words; both empty on the NPU.
    proxies: its operators that are on the NPU on the word of a sibling NPU.
    """

    unit: str
    op: str
    nodes: tuple[str, ...]
    device: Device
    part: int
    lowering: str
    operators: tuple[str, ...]
    macs: int
    ms: float
    proxies: int
    reasons: tuple[Reason, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """One rule that speaks against a group, with the values met (at most SHOWN of them)."""

    rule: str
    limit: str
    actual: tuple[str, ...]
    confidence: str
    source: str
    file: str

    def __str__(self) -> str:
        return f"{self.rule} is {self.met}; taken: {self.limit}"

    @property
    def met(self) -> str:
        """The values met; a value may hold commas itself."""
        return " / ".join(self.actual)


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """CPU units of one operator with the same rules against them."""

    op: str
    why: str
    grounds: tuple[Ground, ...]
    units: tuple[str, ...]
    macs: int
    ms: float


SHOWN = 4
"""Different values of one fact that a group shows."""


def place_units(data: ReportData) -> tuple[Placement, ...]:
    """Every unit in the order of the segments."""
    operators = _operators_by_unit(data.whole.operators)
    part_of = {
        op.unit: index for index, part in enumerate(data.parts) for op in part.graph.operators
    }
    behind = _behind_the_cpu(data)
    rows = []
    for segment in data.plan.segments:
        for name in segment.units:
            unit = data.graph.unit[name]
            verdict = data.support.npu[name]
            mine = operators.get(name, ())
            reasons = _all_reasons(verdict.reasons) if segment.device == "cpu" else ()
            rows.append(
                Placement(
                    unit=name,
                    op=unit.op,
                    nodes=unit.nodes,
                    device=segment.device,
                    part=part_of.get(name, -1),
                    lowering=data.plan.lowerings.get(name, ""),
                    operators=tuple(op.code for op in mine),
                    macs=sum(macs(data.whole, op) for op in mine),
                    ms=sum(operator_ms(data.whole, op, segment.device, data.target) for op in mine),
                    proxies=verdict.proxies if segment.device == "npu" else 0,
                    reasons=() if verdict.fits else reasons,
                    why=_why(name, segment.device, data, behind),
                )
            )
    return tuple(rows)


def _operators_by_unit(operators: Iterable[Operator]) -> Mapping[str, Sequence[Operator]]:
    table: dict[str, list[Operator]] = {}
    for op in operators:
        table.setdefault(op.unit, []).append(op)
    return table


def _all_reasons(reasons: Mapping[str, tuple[Reason, ...]]) -> tuple[Reason, ...]:
    """Over all lowerings tried, each once."""
    return tuple(dict.fromkeys(reason for group in reasons.values() for reason in group))


def _why(name: str, device: Device, data: ReportData, behind: set[str]) -> str:
    if device == "npu":
        return ""
    if not data.target.has_npu:
        return NO_NPU
    if not data.support.npu[name].fits:
        return "breaks the target's rules"
    asked = [option for option in ("cpu", "cut") if data.manifest.options.get(option)]
    if name in behind:
        return BEHIND
    return ASKED.format(" and ".join(f"--{one}" for one in asked)) if asked else CHEAPER


def _behind_the_cpu(data: ReportData) -> set[str]:
    """Units that depend on one that does not fit the NPU."""
    graph: Graph = data.graph
    behind: set[str] = set()
    for unit in graph.units:
        for name in unit.inputs:
            producer = graph.producers.get(name)
            if producer is None:
                continue
            if producer.name in behind or not data.support.npu[producer.name].fits:
                behind.add(unit.name)
    return behind


def group_cpu(placements: Sequence[Placement]) -> tuple[PlacementGroup, ...]:
    """Units on the CPU by operator and by the rules against them, most time first."""
    table: dict[tuple[str, str, tuple[str, ...]], list[Placement]] = {}
    for placement in placements:
        if placement.device == "cpu":
            rules = tuple(dict.fromkeys(reason.rule for reason in placement.reasons))
            table.setdefault((placement.op, placement.why, rules), []).append(placement)
    groups = [
        PlacementGroup(
            op=op,
            why=why,
            grounds=tuple(_ground(rule, members) for rule in rules),
            units=tuple(member.unit for member in members),
            macs=sum(member.macs for member in members),
            ms=sum(member.ms for member in members),
        )
        for (op, why, rules), members in table.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.ms, group.op, group.why)))


def shortened_grounds(grounds: Sequence[Ground], *, most: int = 3) -> str:
    """One line: rules with the same limit and value named together, at most `most` of them."""
    table: dict[tuple[str, str], list[str]] = {}
    for ground in grounds:
        table.setdefault((ground.limit, ground.met), []).append(ground.rule)
    lines = [
        f"{', '.join(rules)} {'is' if len(rules) == 1 else 'are'} {met} (taken: {limit})"
        for (limit, met), rules in table.items()
    ]
    more = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return "; ".join([*lines[:most], *more])


def _ground(rule: str, members: Sequence[Placement]) -> Ground:
    reasons = [reason for member in members for reason in member.reasons if reason.rule == rule]
    actual = list(dict.fromkeys(reason.actual for reason in reasons))
    more = [f"and {len(actual) - SHOWN} more"] if len(actual) > SHOWN else []
    first = reasons[0]
    return Ground(
        rule,
        first.limit,
        (*actual[:SHOWN], *more),
        first.confidence,
        first.source,
        first.file,
    )
