"""An explanation as text and as JSON. Decides the words, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from splitter.explain import Kind, npu_units
from splitter.plan import Plan
from splitter.rulefile import Target

NAMES = 4
"""Nodes of a kind that are named."""


@dataclass(frozen=True)
class Explained:
    """before: the plan with the rules as they are; after: with `assumed` taken, None without."""

    target: Target
    before: Plan
    kinds: tuple[Kind, ...]
    assumed: tuple[str, ...] = ()
    after: Plan | None = None

    @property
    def gain_ms(self) -> float:
        return 0.0 if self.after is None else self.before.cost.total_ms - self.after.cost.total_ms

    def to_text(self) -> str:
        return "\n".join([*self._head(), *(line for k in self.kinds for line in _kind(k))])

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target.name,
            "version": self.target.version,
            "plan": _plan(self.before),
            "assumed": list(self.assumed),
            "plan_assumed": None if self.after is None else _plan(self.after),
            "gain_ms": self.gain_ms,
            "on_the_cpu": [asdict(kind) for kind in self.kinds],
        }

    def _head(self) -> Iterator[str]:
        yield f"{self.target.title}, rules for {self.target.tool.name} {self.target.version}"
        yield f"plan: {_planned(self.before)}"
        if self.after is not None:
            yield f"if {', '.join(self.assumed)} were taken: {_planned(self.after)}"
            yield f"gain: {self.gain_ms:.2f} ms (estimated)"
        total = sum(kind.ms for kind in self.kinds)
        count = sum(len(kind.units) for kind in self.kinds)
        yield f"{count} operators explained, {total:.2f} ms on the CPU (estimated)"


def _planned(plan: Plan) -> str:
    places = " | ".join(f"{s.device.upper()} {len(s.units)}" for s in plan.segments)
    return f"{places} operators, {plan.cost.total_ms:.2f} ms (estimated)"


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "segments": [{"device": s.device, "units": len(s.units)} for s in plan.segments],
        "npu_units": npu_units(plan),
        "total_ms": plan.cost.total_ms,
    }


def _kind(kind: Kind) -> Iterator[str]:
    yield ""
    yield (
        f"{kind.op}: {len(kind.units)} on the CPU, {kind.ms:.2f} ms"
        if not kind.fits
        else (f"{kind.op}: {len(kind.units)}, {kind.ms:.2f} ms on the CPU, would fit the NPU")
    )
    yield f"  {_named(kind.nodes or kind.units)}"
    for tried, reasons in kind.attempts.items():
        yield f"  tried {tried}:"
        yield from (f"    {reason}" for reason in reasons)
    yield from (f"  -> {move}" for move in kind.moves)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more
