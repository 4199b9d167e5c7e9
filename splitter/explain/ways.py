"""What would move units onto the NPU: another version, another trust, a smaller input, a rule.

Decides how reasons become ways out, the least first. A way by version or trust is told only after
the rules were read that way and took the unit; what a way gains is planned, by `whatif`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from splitter.diagnostics import Reason
from splitter.explain.kinds import Kind, cannot_write
from splitter.graph import Graph
from splitter.rules.check import LISTED
from splitter.rules.schema import TRUSTS, Limit, Target
from splitter.rules.support import npu_verdicts

SIZES = frozenset(
    (
        *("rows", "elements", "plane", "max_dimension", "outer_product", "input_w", "input_h"),
        *("largest_reduced", "reduced_elements", "columns", "depth", "repeated", "leading"),
        *("n", "h", "w", "hw", "wc", "hc", "nc", "nh", "nw", "chw"),
    )
)
"""Facts that follow the resolution of the model's input."""

PROBED = ("vela", "neutron-converter")
"""Tools that `split rules probe` can call."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way onto the NPU. by: the lowering it is about, "" for all of the unit."""

    kind: Literal["version", "trust", "resolution", "rule", "rules", "segments", "plan"]
    text: str
    by: str = ""


def ways(
    graph: Graph, target: Target, kind: Kind, *, trust: str, assumed: frozenset[str]
) -> tuple[Way, ...]:
    """What would put units that do not fit on the NPU, the least first."""
    found: list[Way] = []
    unit = kind.placed[0].unit
    for reading, level, way in _other_readings(target, trust):
        verdicts = npu_verdicts(graph, [unit], reading, trust=level, assumed=assumed)
        if verdicts[unit.name].fits and not any(one.kind == way.kind for one in found):
            found.append(way)
    return (*found, *_by_rules(kind, target))


def _other_readings(target: Target, trust: str) -> Iterator[tuple[Target, str, Way]]:
    """The same rules read for other versions of the tool, the next newer first, then the next
    older, and with less trust."""
    known = target.tool.versions
    here = known.index(target.version) if target.version in known else len(known) - 1
    for version in (*known[here + 1 :], *reversed(known[:here])):
        text = f"{target.tool.name} {version} takes it: --target {target.called}@{version}"
        yield target.at(version), trust, Way("version", text)
    for level in TRUSTS[TRUSTS.index(trust) + 1 :]:
        text = f"on rules of confidence {level}: --trust {level}"
        yield target, level, Way("trust", text)


def _by_rules(kind: Kind, target: Target) -> Iterator[Way]:
    attempts = {by: why for by, why in kind.attempts().items() if not cannot_write(why)}
    if target.dialect == "onnx":
        attempts = {"": tuple(dict.fromkeys(r for why in attempts.values() for r in why))}
    ranked = sorted(attempts.items(), key=lambda item: len(_rules(item[1])))
    for by, why in ranked:
        rules = _rules(why)
        if not rules:
            continue
        if all(_is_size(reason, target) for reason in why):
            yield Way("resolution", f"a smaller input: {_smaller(why, target)}", by)
        elif len(rules) == 1:
            yield Way("rule", f"one rule away: {_one(why, target)}", by)
        else:
            yield Way("rules", f"{len(rules)} rules away: {', '.join(rules)}", by)


def _is_size(reason: Reason, target: Target) -> bool:
    limit = _limit(reason, target)
    size = reason.rule.rpartition(".")[2] in SIZES and reason.actual.isdecimal()
    return size and limit is not None and limit.max is not None


def _one(why: Sequence[Reason], target: Target) -> str:
    """The one rule, what would satisfy it, and who could tell when nobody has said."""
    reason = why[0]
    if reason.rule.endswith(".support") and reason.actual == "unknown":
        probe = " (split rules probe)" if target.tool.name in PROBED else ""
        return f"{reason.rule}, which nobody has said; its compiler knows{probe}"
    return reason.rule if reason.limit == LISTED else f"{reason.rule}, taken: {reason.limit}"


def _rules(why: Sequence[Reason]) -> list[str]:
    return list(dict.fromkeys(reason.rule for reason in why))


def _smaller(why: Sequence[Reason], target: Target) -> str:
    """Each rule with the share of the largest value that it takes."""
    words = []
    for rule in _rules(why):
        reasons = [reason for reason in why if reason.rule == rule]
        largest = max(int(reason.actual) for reason in reasons)
        limit = _limit(reasons[0], target)
        if limit is not None and limit.max is not None:
            words.append(f"{rule} {largest} to {limit.max} ({limit.max / largest:.2f} of it)")
    return ", ".join(words)


def _limit(reason: Reason, target: Target) -> Limit | None:
    """The limit that a reason came from."""
    limits = target.limits(reason.rule.partition(".")[0])
    same = (one for rule, one in limits if rule == reason.rule and str(one) == reason.limit)
    return next(same, None)
