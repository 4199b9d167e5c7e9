"""A candidate as a row of the comparison, and the order of rows.

Decides what is counted and how rows are ranked: by estimated time. Leaves words and looks to the
renderers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitter.compare.trial import Trial
from splitter.graph import Graph
from splitter.partition import boundary_bytes
from splitter.partition.catalogue import Entry, Kind
from splitter.plan import Cost, Device, Plan
from splitter.rules.schema import Target
from splitter.verify import Decisions, Findings
from splitter.verify.decisions import DetectionDecisions
from splitter.verify.wider import decision_figures

LIKENESS = "likeness of the worst output"
"""1 less its relative error: the figure of a model that is not known to decide anything."""


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """ms: estimated, without transfer and call. host_ms: the same part on this computer's CPU."""

    device: Device
    units: int
    macs: int
    ms: float
    host_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """How good a model is, by one figure, 0..1, more is better; `goal` is what float reaches."""

    name: str
    value: float
    goal: float


@dataclass(frozen=True)
class Measured:
    """model: first digits of the integer file's sha256. errors: relative RMS by output, query order
    aside. figure: None for a model that is not known to decide anything."""

    model: str
    runs: int
    errors: Mapping[str, float]
    figure: Figure
    decisions: Decisions | None

    @property
    def worst(self) -> float:
        return max(self.errors.values(), default=0.0)


@dataclass(frozen=True)
class Row:
    """A candidate. rank from 1; chosen: what `split` carries out unless it is asked otherwise.

    also: names under which the same placement came up again.
    front: no other candidate of the target is both quicker and at least as good.
    """

    rank: int
    target: str
    name: str
    kind: Kind
    options: tuple[str, ...]
    chosen: bool
    segments: tuple[SegmentRow, ...]
    npu_share: float
    boundary: tuple[str, ...]
    boundary_bytes: int
    cost: Cost
    measured: Measured | None
    also: tuple[str, ...] = ()
    front: bool = False
    plan: Plan = field(repr=False, kw_only=True)

    @property
    def total_ms(self) -> float:
        return self.cost.total_ms

    @property
    def stages_ms(self) -> tuple[float, float]:
        """What the NPU is busy with a frame, and the CPU: it calls, copies and computes."""
        return self.cost.npu_ms + self.cost.invoke_ms, self.cost.cpu_ms + self.cost.transfer_ms

    @property
    def frames(self) -> float:
        """Frames a second when a frame enters as soon as the busier device is free."""
        return 1e3 / max(self.stages_ms)

    @property
    def host_ms(self) -> float | None:
        """All CPU parts together on this computer."""
        times = [segment.host_ms for segment in self.segments if segment.host_ms is not None]
        return sum(times) if times else None


@dataclass(frozen=True)
class Sheet:
    """What rows of one target are counted from. macs: of a unit on either device."""

    target: Target
    graph: Graph
    unit_ms: Mapping[str, tuple[float | None, float]]
    macs: Mapping[str, tuple[int, int]]

    def row(self, entry: Entry, measured: Measured | None, trial: Trial | None) -> Row:
        """The candidate, not yet ranked."""
        plan = entry.plan
        host = trial.cpu_ms if trial else {}
        segments = tuple(
            self._segment(plan, index, host.get(index)) for index in range(len(plan.segments))
        )
        work = sum(segment.macs for segment in segments)
        npu = sum(segment.macs for segment in segments if segment.device == "npu")
        handed = handed_over(self.graph, plan)
        return Row(
            rank=0,
            target=self.target.name,
            name=plan.name,
            kind=entry.kind,
            options=entry.options,
            chosen=False,
            segments=segments,
            npu_share=npu / work if work else 0.0,
            boundary=handed,
            boundary_bytes=sum(boundary_bytes(self.graph, name) for name in handed),
            cost=plan.cost,
            measured=measured,
            also=entry.also,
            plan=plan,
        )

    def _segment(self, plan: Plan, index: int, host_ms: float | None) -> SegmentRow:
        segment = plan.segments[index]
        side = 0 if segment.device == "npu" else 1
        return SegmentRow(
            segment.device,
            len(segment.units),
            sum(self.macs[unit][side] for unit in segment.units),
            sum(self.unit_ms[unit][side] or 0.0 for unit in segment.units),
            host_ms,
        )


def handed_over(graph: Graph, plan: Plan) -> tuple[str, ...]:
    """Values that one segment makes and another reads."""
    place = {unit: index for index, s in enumerate(plan.segments) for unit in s.units}
    return tuple(dict.fromkeys(value for a, b, value in graph.edges() if place[a] != place[b]))


def measured(findings: Findings, digest: str) -> Measured:
    """What a trial found, as figures."""
    stage = findings.stage("quantization")
    tensors = stage.tensors if stage else ()
    errors = {t.name: stage.unordered(t.name).relative_rms for t in tensors} if stage else {}
    return Measured(
        digest[:12], findings.runs, errors, _figure(findings, errors), findings.decisions
    )


def _figure(findings: Findings, errors: Mapping[str, float]) -> Figure:
    """The decisions where they mean something; else how like the worst output is to float."""
    decisions = findings.decisions
    crowded = isinstance(decisions, DetectionDecisions) and decisions.agreement.crowded
    if not crowded:
        for name, (value, goal) in decision_figures(findings).items():
            return Figure(name, value, goal)
    return Figure(LIKENESS, 1 - max(errors.values(), default=0.0), 1.0)


def ranked(rows: Sequence[Row], chosen: Sequence[Plan]) -> tuple[Row, ...]:
    """Quickest first; ranks, the chosen plans and the fronts filled in."""
    order = sorted(rows, key=lambda row: (row.total_ms, len(row.segments)))
    return tuple(
        replace(
            row,
            rank=rank,
            chosen=any(row.plan is plan for plan in chosen),
            front=row.measured is not None and not any(_beats(other, row) for other in rows),
        )
        for rank, row in enumerate(order, start=1)
    )


def _beats(other: Row, row: Row) -> bool:
    if other.target != row.target or other.measured is None or row.measured is None:
        return False
    left, right = other.measured.figure.value, row.measured.figure.value
    return (left, -other.total_ms) != (right, -row.total_ms) and (
        left >= right and other.total_ms <= row.total_ms
    )
