"""An explanation as text and as JSON. Decides the words, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from splitter.diagnostics import Cause, Reason
from splitter.explain.kinds import Basis, Kind, cannot_write
from splitter.explain.ways import Way
from splitter.plan import Plan
from splitter.rules.check import LISTED
from splitter.rules.schema import Target

NAMES, VALUES = 4, 6
"""Nodes of a kind, and actual values of a rule, that the text names; JSON has all."""

WIDE = 100
"""Characters of a limit in the text."""


@dataclass(frozen=True, slots=True)
class Told:
    """A kind with its ways onto the NPU.

    gain_ms: what the plan gains if these units alone were taken; loss_ms: what it loses by them if
    everything else were taken; None where that was not planned.
    """

    kind: Kind
    ways: tuple[Way, ...] = ()
    gain_ms: float | None = None
    loss_ms: float | None = None

    @property
    def cost_ms(self) -> float:
        """What it costs that these units are where they are: their own time, or more where the
        plan loses more by it."""
        if self.kind.device == "npu":
            return 0.0
        return max(self.kind.cpu_ms, self.gain_ms or 0.0, self.loss_ms or 0.0)


@dataclass(frozen=True)
class Explained:
    """plan: what `split` would make, with `assumed` taken; without: the same without them.

    more_parts: a quicker plan of more segments. all_taken: the plan if nothing were refused.
    no_form: operators that no TFLite operator can do; with what follows from them left_to_onnx
    operators are in the ONNX part behind the plan.
    """

    target: Target
    plan: Plan
    told: tuple[Told, ...]
    more_parts: Plan | None = None
    all_taken: Plan | None = None
    assumed: tuple[str, ...] = ()
    without: Plan | None = None
    no_form: tuple[Cause, ...] = ()
    left_to_onnx: int = 0

    @property
    def gain_ms(self) -> float:
        """Of what was assumed."""
        return 0.0 if self.without is None else self.without.cost.total_ms - self.plan.cost.total_ms

    def to_text(self) -> str:
        sources: dict[str, int] = {}
        refused = [one for one in self.told if not one.kind.fits]
        waiting = [one for one in self.told if one.kind.fits and one.kind.device == "cpu"]
        there = [one for one in self.told if one.kind.device == "npu"]
        lines = [*self._head()]
        if refused:
            lines += ["", "NOT TAKEN BY THE NPU, most expensive first"]
            lines += [line for one in refused for line in _told(one, sources)]
        if waiting:
            lines += ["", "TAKEN BY THE NPU, BUT ON THE CPU IN THIS PLAN, most expensive first"]
            lines += [line for same in _by_way(waiting) for line in _waiting(same)]
        if there:
            lines += ["", "ON THE NPU"]
            lines += [line for one in there for line in _told(one, sources)]
        if self.no_form:
            lines += ["", f"IN THE ONNX PART: {self.left_to_onnx} operators, because of"]
            lines += [f"  {one.op} {' + '.join(one.nodes)}: {one.why}" for one in self.no_form]
        if sources:
            lines += ["", f"sources ({self.target.file})"]
            lines += [f"[{number}] {text}" for text, number in sources.items()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target.name,
            "tool": self.target.tool.name,
            "version": self.target.version,
            "rules": self.target.file,
            "plan": plan_json(self.plan),
            "more_parts": plan_json(self.more_parts),
            "all_taken": plan_json(self.all_taken),
            "assumed": list(self.assumed),
            "without_assumption": plan_json(self.without),
            "gain_ms": self.gain_ms,
            "no_tflite_form": [asdict(one) for one in self.no_form],
            "operators_left_to_onnx": self.left_to_onnx,
            "kinds": [_told_json(one) for one in self.told],
        }

    def _head(self) -> Iterator[str]:
        tool = self.target.tool.name
        if self.target.has_npu:
            yield f"{self.target.title}, rules for {tool} {self.target.version}"
        else:
            yield f"{self.target.title}: there is no NPU, everything is on the CPU"
        yield f"plan: {planned(self.plan)}"
        if self.without is not None:
            yield f"taken on your word: {', '.join(self.assumed)}; without: {planned(self.without)}"
            parts = f"{len(self.without.segments)} to {len(self.plan.segments)} parts"
            yield f"gain: {self.gain_ms:.2f} ms, {parts}"
        if self.more_parts is not None:
            count = len(self.more_parts.segments)
            yield f"with --max-segments {count}: {planned(self.more_parts)}"
        if self.all_taken is not None:
            yield f"if the NPU took every operator: {planned(self.all_taken)}"
        if self.target.has_npu and not self.told:
            yield "nothing is on the CPU"
        yield "times are estimates by the figures of the rule file"


def planned(plan: Plan) -> str:
    places = " | ".join(f"{s.device.upper()} {len(s.units)}" for s in plan.segments)
    return f"{places} operators, {plan.cost.total_ms:.2f} ms"


def plan_json(plan: Plan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {
        "name": plan.name,
        "segments": [{"device": s.device, "operators": len(s.units)} for s in plan.segments],
        "total_ms": plan.cost.total_ms,
    }


def _told_json(one: Told) -> dict[str, Any]:
    kind = one.kind
    return {
        "operator": kind.op,
        "device": kind.device,
        "fits": kind.fits,
        "cpu_ms": kind.cpu_ms,
        "npu_ms": kind.npu_ms,
        "cost_ms": one.cost_ms,
        "gain_ms_if_taken_alone": one.gain_ms,
        "loss_ms_if_all_else_were_taken": one.loss_ms,
        "after": list(kind.after),
        "rests_on": [asdict(basis) for basis in kind.rests_on],
        "ways": [asdict(way) for way in one.ways],
        "units": [
            {
                "name": placed.unit.name,
                "nodes": list(placed.unit.nodes),
                "cpu_ms": placed.cpu_ms,
                "npu_ms": placed.npu_ms,
                "attempts": {
                    tried: [asdict(reason) for reason in why]
                    for tried, why in placed.attempts.items()
                },
            }
            for placed in kind.placed
        ],
    }


def _by_way(waiting: Sequence[Told]) -> list[list[Told]]:
    """Kinds that wait for the same, together; most expensive first, as those in a group are."""
    groups: dict[tuple[str, ...], list[Told]] = {}
    for one in waiting:
        groups.setdefault(tuple(way.text for way in one.ways), []).append(one)
    return sorted(groups.values(), key=lambda same: -sum(one.kind.cpu_ms for one in same))


def _waiting(same: Sequence[Told]) -> Iterator[str]:
    """The ways first, once; then every kind."""
    yield ""
    yield from (f"-> {way.text}" for way in same[0].ways)
    for one in same:
        yield from _named(one.kind)


def _named(kind: Kind) -> Iterator[str]:
    there = "" if kind.npu_ms is None else f", {kind.npu_ms:.2f} ms on the NPU"
    yield f"{kind.op}: {_count(kind)}, {kind.cpu_ms:.2f} ms on the CPU{there}"
    yield f"  {_some(kind.nodes, NAMES)}"


def _told(one: Told, sources: dict[str, int]) -> Iterator[str]:
    kind = one.kind
    yield ""
    yield from _named(kind)
    for tried, why in kind.attempts().items():
        if cannot_write(why):
            yield f"  {tried} does not apply: {'; '.join(dict.fromkeys(r.actual for r in why))}"
            continue
        yield f"  tried {tried}:"
        yield from (f"    {line}" for line in _reasons(why, sources))
    if kind.device == "npu" and kind.rests_on:
        yield f"  by {', '.join(_basis(basis, sources) for basis in kind.rests_on)}"
    for way in one.ways:
        yield f"  -> {way.text}{f' (by {way.by})' if way.by else ''}"
    if one.gain_ms is not None:
        alone, last = _ms(one.gain_ms), _ms(one.loss_ms)
        yield f"  -> if taken: {alone} less alone, {last} less once all else is taken"


def _basis(basis: Basis, sources: dict[str, int]) -> str:
    return f"{basis.operator} ({basis.confidence} {_mark(basis.source, sources)})"


def _reasons(why: Sequence[Reason], sources: dict[str, int]) -> Iterator[str]:
    """A line a rule, with every actual value."""
    for rule, limit in dict.fromkeys((reason.rule, reason.limit) for reason in why):
        same = [reason for reason in why if (reason.rule, reason.limit) == (rule, limit)]
        actual = _some(list(dict.fromkeys(reason.actual for reason in same)), VALUES)
        basis = f"({same[0].confidence} {_mark(same[0].source, sources)})"
        if limit == LISTED:
            yield f"{rule} is {actual} {basis}"
        else:
            yield f"{rule} is {actual}; taken: {_short(limit)} {basis}"


def _mark(source: str, sources: dict[str, int]) -> str:
    return f"[{sources.setdefault(source, len(sources) + 1)}]"


def _ms(ms: float | None) -> str:
    return f"{max(ms or 0.0, 0.0):.2f} ms"


def _short(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[: WIDE - 4]} ..."


def _count(kind: Kind) -> str:
    return f"{len(kind.placed)} operator{'s' if len(kind.placed) > 1 else ''}"


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
