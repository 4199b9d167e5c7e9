"""`split explain`: why units are on the CPU, what that costs, and what would move them.

Decides how reasons become ways out; verdicts are `support`'s, places the plan's, times `latency`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from splitter.diagnostics import Reason, SplitterError, nearest
from splitter.graph import Graph, Unit
from splitter.partition.costs import unit_costs
from splitter.plan import Plan, Support
from splitter.rulefile import OperatorRule, Target
from splitter.targets import DIALECTS

SIZES = frozenset(
    (
        *("rows", "elements", "channels", "plane", "max_dimension", "outer_product", "input_w"),
        *("input_h", "largest_reduced", "reduced_elements", "columns", "depth", "repeated"),
        *("n", "c", "h", "w", "hw", "wc", "hc", "nc", "nh", "nw", "chw", "kernel_area"),
    )
)
"""Facts that follow the resolution of the model's input."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Units of one operator on the CPU with the same reasons.

    ms: estimated, on the CPU, all of them. attempts: what was tried (a lowering, or an ONNX node's
    kind) with ALL the reasons against it; empty where the units fit the NPU. moves: what would put
    them there.
    """

    op: str
    units: tuple[str, ...]
    nodes: tuple[str, ...]
    ms: float
    fits: bool
    attempts: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    moves: tuple[str, ...] = ()


def explain(
    graph: Graph, support: Support, target: Target, plan: Plan, *, name: str = ""
) -> tuple[Kind, ...]:
    """Every kind of unit that the plan puts on the CPU, most expensive first.

    name: only this unit, or ONNX node, wherever it sits. Raises SplitterError for an unknown name.
    """
    _, outside = unit_costs(graph, support, target)
    cost = dict(zip((unit.name for unit in graph.units), outside, strict=True))
    table: dict[tuple[object, ...], list[Unit]] = {}
    for unit in _chosen(graph, plan, name):
        attempts = _attempts(support, unit)
        table.setdefault((unit.op, tuple(attempts.items())), []).append(unit)
    kinds = [
        Kind(
            op=units[0].op,
            units=tuple(unit.name for unit in units),
            nodes=tuple(dict.fromkeys(node for unit in units for node in unit.nodes)),
            ms=sum(cost[unit.name] for unit in units),
            fits=support.npu[units[0].name].fits,
            attempts=_attempts(support, units[0]),
            moves=tuple(_moves(support, units[0], target)),
        )
        for units in table.values()
    ]
    return tuple(sorted(kinds, key=lambda kind: (-kind.ms, kind.op, kind.units)))


def assume(target: Target, operators: Sequence[str]) -> Target:
    """The target as if it took these operators without limits, on the user's word.

    Raises SplitterError for names that its dialect does not have, and for a target whose file has
    no figures of an NPU.
    """
    if target.latency.npu is None:
        raise SplitterError(
            f"{target.name} has no figures of an NPU, so nothing can be gained by it",
            where="--assume",
        )
    dialect = DIALECTS[target.dialect]
    known = {code.casefold(): code for code in dialect.codes()}
    wrong = [name for name in operators if name.casefold() not in known]
    if wrong:
        raise SplitterError(
            f"no such {dialect.name} operator: {', '.join(wrong)}",
            where="--assume",
            hint=nearest(
                wrong[0].upper() if target.dialect == "tflite" else wrong[0], dialect.codes()
            ),
        )
    taken = OperatorRule(support="yes", source="--assume", confidence="vendor")
    more = {known[name.casefold()]: taken for name in operators}
    return target.model_copy(update={"operators": {**target.operators, **more}})


def npu_units(plan: Plan) -> int:
    """Units on the NPU."""
    return sum(len(segment.units) for segment in plan.segments if segment.device == "npu")


def _chosen(graph: Graph, plan: Plan, name: str) -> Iterator[Unit]:
    if not name:
        on_cpu = {
            unit for segment in plan.segments if segment.device == "cpu" for unit in segment.units
        }
        yield from (unit for unit in graph.units if unit.name in on_cpu)
        return
    found = [unit for unit in graph.units if name == unit.name or name in unit.nodes]
    if not found:
        known = [known for unit in graph.units for known in (unit.name, *unit.nodes)]
        raise SplitterError(
            f"no unit or node {name!r}", where="split explain", hint=nearest(name, known)
        )
    yield from found


def _attempts(support: Support, unit: Unit) -> dict[str, tuple[Reason, ...]]:
    """What was tried and why it failed. Of ONNX nodes only the kind: their names differ."""
    reasons = support.npu[unit.name].reasons
    if support.npu[unit.name].fits:
        return {}
    merged: dict[str, tuple[Reason, ...]] = {}
    for tried, why in reasons.items():
        kind = tried.split(" ")[0]
        merged[kind] = tuple(dict.fromkeys((*merged.get(kind, ()), *why)))
    return merged


def _moves(support: Support, unit: Unit, target: Target) -> Iterator[str]:
    """What would put the unit on the NPU, the least first."""
    verdict = support.npu[unit.name]
    if verdict.fits:
        yield f"it fits, by {verdict.lowering}; the plan is quicker with it here (try --npu)"
        return
    attempts = _attempts(support, unit)
    written = {tried: why for tried, why in attempts.items() if not _cannot_write(why)}
    if target.dialect == "onnx":
        written = {"": tuple(dict.fromkeys(r for why in written.values() for r in why))}
    for tried, why in sorted(written.items(), key=lambda item: len(item[1])):
        by = f" (by {tried})" if tried else ""
        rules = dict.fromkeys(_fact(reason) for reason in why)
        if all(fact in SIZES for fact in rules):
            yield f"a smaller input{by}: {_sizes(why)}"
        elif len(why) == 1:
            yield f"one rule away{by}: {_way(why[0], target)}"
        else:
            yield f"{len(why)} rules away{by}: {', '.join(reason.rule for reason in why)}"


def _cannot_write(why: Sequence[Reason]) -> bool:
    return any(reason.source == "splitter.ops" for reason in why)


def _fact(reason: Reason) -> str:
    return reason.rule.rpartition(".")[2]


def _sizes(why: Sequence[Reason]) -> str:
    return "; ".join(f"{reason.rule} is {reason.actual}, taken {reason.limit}" for reason in why)


def _way(reason: Reason, target: Target) -> str:
    """What to do about one reason."""
    fact = _fact(reason)
    if fact == "confidence":
        return f"--trust {reason.confidence} takes it"
    if fact in ("since", "until"):
        fitting = f"--target {target.name}@VERSION with {reason.limit}"
        return f"{fitting} ({', '.join(target.tool.versions)})"
    if "." not in reason.rule or reason.actual in ("no", "unknown"):
        code = reason.rule.partition(".")[0]
        return f"{code} is {reason.actual}; --assume {code} shows what it would gain"
    return f"{reason.rule} is {reason.actual}, taken {reason.limit}"
