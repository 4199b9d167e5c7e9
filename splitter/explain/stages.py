"""The stages that `split explain` needs, from a file to an explanation.

Decides which questions are asked of the planner, and how many: what each kind would gain is planned
for the most expensive ones, fewer in large graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from splitter.explain.kinds import Kind, kinds
from splitter.explain.names import find_units
from splitter.explain.text import Explained, Told
from splitter.explain.ways import Way, ways
from splitter.explain.whatif import read_assumed, refused, taken
from splitter.graph import Graph, Unit
from splitter.options import Options
from splitter.partition import SEGMENTS, plan
from splitter.plan import Plan, Support
from splitter.rules.schema import Target
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.source import read_source

PLANS, UNITS = 10, 5000
"""Kinds whose gain is planned: at most so many, and so many units in all their plans together."""

SHOWN = 4
"""Operators that a text names in a row."""


@dataclass(frozen=True)
class _Asked:
    """A graph with a target and the options of the main job that say what sits where."""

    graph: Graph
    target: Target
    options: Options
    assumed: frozenset[str]
    makers: Mapping[str, str]

    def judged(self, assumed: frozenset[str]) -> Support:
        return judge(self.graph, self.target, trust=self.options.trust, assumed=assumed)

    def plans(self, support: Support, *, look: int = SEGMENTS) -> tuple[Plan, ...]:
        return plan(
            self.graph,
            support,
            self.target,
            npu=self.options.npu,
            cpu=self.options.cpu,
            cut=self.options.cut,
            max_segments=self.options.max_segments,
            look=look,
            makers=self.makers,
        )

    def best(self, support: Support) -> Plan:
        """The one that would be carried out."""
        return self.plans(support, look=0)[0]


def explanation(options: Options, *, node: str = "", assumed: Sequence[str] = ()) -> Explained:
    """Why units are on the CPU, most expensive first.

    options: of the main job; those about samples and output are left alone. node: only what it
    names, wherever it sits. Raises SplitterError for what the user must change.
    """
    target = load_target(options.target)
    words = read_assumed(target, assumed)
    source = read_source(options)
    makers, remainder = source.original.makers, source.remainder
    with source.refusing():
        graph = source.graph()
        asked = _Asked(graph, target, options, words, makers)
        support = asked.judged(words)
    candidates = asked.plans(support)
    before = asked.best(asked.judged(frozenset())) if words else candidates[0]
    chosen = candidates[0]
    units = (
        find_units(graph, node, made_by=makers)
        if node
        else _on_cpu(graph, chosen)
        if target.has_npu
        else ()
    )
    found = kinds(graph, support, target, chosen, units)
    every = _all_taken(asked, support, found)
    told = tuple(_told(asked, support, (chosen, every), found))
    return Explained(
        target=target,
        plan=chosen,
        more_parts=_more_parts(candidates),
        told=tuple(sorted(told, key=lambda one: -one.cost_ms)),
        all_taken=every,
        assumed=tuple(sorted(words)),
        without=before if words else None,
        no_form=() if remainder is None else remainder.causes,
        left_to_onnx=0 if remainder is None else remainder.operators,
    )


def _on_cpu(graph: Graph, chosen: Plan) -> tuple[Unit, ...]:
    names = {name for one in chosen.segments if one.device == "cpu" for name in one.units}
    return tuple(unit for unit in graph.units if unit.name in names)


def _more_parts(candidates: Sequence[Plan]) -> Plan | None:
    """The quickest plan of more segments, if it is quicker."""
    chosen = candidates[0]
    return next(
        (
            one
            for one in candidates[1:]
            if len(one.segments) > len(chosen.segments) and one.cost.total_ms < chosen.cost.total_ms
        ),
        None,
    )


def _told(
    asked: _Asked, support: Support, plans: tuple[Plan, Plan | None], found: Sequence[Kind]
) -> Iterator[Told]:
    """The most expensive ones come first, and what they would gain is planned."""
    left = max(1, min(PLANS, UNITS // max(len(asked.graph.units), 1)))
    for kind in found:
        if kind.device == "npu":
            yield Told(kind)
        elif kind.fits:
            yield Told(kind, (_why_here(kind),))
        else:
            options = asked.options
            out = ways(asked.graph, asked.target, kind, trust=options.trust, assumed=asked.assumed)
            gains = _gains(asked, support, plans, kind) if left > 0 else {}
            left -= 1
            yield Told(kind, out, **gains)


def _gains(
    asked: _Asked, support: Support, plans: tuple[Plan, Plan | None], kind: Kind
) -> dict[str, float]:
    """What the plan gains if these units alone were taken, and loses if they alone were not.

    plans: as it is, and with everything taken.
    """
    now, all_taken = plans
    if all_taken is None:
        return {}
    mine = frozenset(one.unit.name for one in kind.placed)
    rest = refused(asked.graph, support) - mine
    best = all_taken.cost.total_ms

    def ms(units: frozenset[str]) -> float:
        return asked.best(taken(support, units)).cost.total_ms if units else now.cost.total_ms

    alone = ms(mine) if rest else best
    return {"gain_ms": now.cost.total_ms - alone, "loss_ms": ms(rest) - best}


def _why_here(kind: Kind) -> Way:
    if kind.after:
        more = f" and {len(kind.after) - SHOWN} more" if len(kind.after) > SHOWN else ""
        text = f"needs {', '.join(kind.after[:SHOWN])}{more}, which the NPU does not take: only an"
        return Way("segments", f"{text} NPU part behind them can have it")
    return Way("plan", "the plan is quicker with it here; --npu puts it there")


def _all_taken(asked: _Asked, support: Support, found: Sequence[Kind]) -> Plan | None:
    """The plan if nothing were refused; None where nothing is, or nothing can be gained."""
    names = refused(asked.graph, support)
    if not names or asked.target.latency.npu is None or not found:
        return None
    return asked.best(taken(support, names))
