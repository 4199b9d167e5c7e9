"""Which units the NPU takes, by which lowering, or ALL the reasons why not.

Decides verdicts from the target's rules and the facts of the operators; knows no operator itself.
Where a unit is put is `partition`'s decision. Rules are checked here on float fragments as if they
were INT8 already, and again on finished files, there with their quantization parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from splitter.diagnostics import Reason, SplitterError
from splitter.graph import Graph, Unit
from splitter.lower import refuse_unknown
from splitter.ops import OPS
from splitter.ops.registry import Lowering, fragment
from splitter.plan import Support, Verdict
from splitter.rulefile import Condition, Limit, Target, in_versions, trusted
from splitter.tflite.facts import fact
from splitter.tflite.parameters import LATER
from splitter.tflite.types import LiteGraph, Operator
from splitter.tflite.view import BIAS_SLOT, View


def judge(graph: Graph, target: Target, *, trust: str) -> Support:
    """Verdicts for every unit on both devices.

    trust: the least confidence a rule must have to put an operator on the NPU: vendor, field,
    proxy or inferred. Limits hold whatever their confidence; they can only refuse.
    Raises SplitterError for units that no lowering can write, all of them at once.
    """
    refuse_unknown(graph)
    if target.dialect != "tflite":
        raise SplitterError(
            f"rules in the {target.dialect} dialect cannot be used yet", where=target.file
        )
    npu = {unit.name: _npu(graph, unit, target, trust) for unit in graph.units}
    cpu = {unit.name: _cpu(graph, unit) for unit in graph.units}
    return Support(npu=npu, cpu=cpu)


def check_lite(
    graph: LiteGraph, target: Target, *, trust: str
) -> list[tuple[Operator, tuple[Reason, ...]]]:
    """The operators of a file that break a rule, each with all its reasons."""
    checked = ((op, tuple(_broken(graph, op, target, trust))) for op in graph.operators)
    return [(op, reasons) for op, reasons in checked if reasons]


def as_int8(graph: LiteGraph) -> LiteGraph:
    """A float fragment with the types it will have: float32 becomes int8, biases int32.

    Only the types change; constants keep their float data, and there are no parameters yet. What
    only says how a value is quantized (QUANTIZE and DEQUANTIZE of a FakeQuantize) is no operator.
    """
    biases = {
        op.inputs[BIAS_SLOT[op.code]]
        for op in graph.operators
        if op.code in BIAS_SLOT and len(op.inputs) > BIAS_SLOT[op.code]
    }
    tensors = {
        name: replace(tensor, dtype="int32" if name in biases else "int8")
        if tensor.dtype == "float32"
        else tensor
        for name, tensor in graph.tensors.items()
    }
    operators = tuple(op for op in graph.operators if op.code not in ("QUANTIZE", "DEQUANTIZE"))
    return replace(graph, tensors=tensors, operators=operators)


def lowering_of(unit: Unit, name: str) -> Lowering:
    return next(lowering for lowering in OPS[unit.op].lowerings if lowering.name == name)


def _npu(graph: Graph, unit: Unit, target: Target, trust: str) -> Verdict:
    reasons: dict[str, tuple[Reason, ...]] = {}
    for lowering in _ordered(unit, target):
        refused = lowering.applies(graph, unit)
        if refused:
            reasons[lowering.name] = (_inapplicable(unit, lowering, refused),)
            continue
        part = as_int8(fragment(graph, unit, lowering))
        found = _part_reasons(part, target, trust)
        if not found:
            return Verdict(lowering.name, proxies=_proxies(part, target))
        reasons[lowering.name] = found
    return Verdict("", reasons)


def _part_reasons(part: LiteGraph, target: Target, trust: str) -> tuple[Reason, ...]:
    """All reasons against a fragment, equal ones once. Constants and nothing at all always fit."""
    if not part.operators or (not part.inputs and target.has_npu):
        return ()
    found = (reason for _, reasons in check_lite(part, target, trust=trust) for reason in reasons)
    return tuple(dict.fromkeys(found))


def _ordered(unit: Unit, target: Target) -> Sequence[Lowering]:
    lowerings = OPS[unit.op].lowerings
    first = [lowering_of(unit, name) for name in target.preferred.get(unit.op, ())]
    return (*first, *(lowering for lowering in lowerings if lowering not in first))


def _cpu(graph: Graph, unit: Unit) -> Verdict:
    lowerings = OPS[unit.op].lowerings
    return Verdict(next(one.name for one in lowerings if one.applies(graph, unit) is None))


def _inapplicable(unit: Unit, lowering: Lowering, why: str) -> Reason:
    return Reason(
        rule=f"{unit.op}.{lowering.name}",
        limit="units that this lowering can write",
        actual=why,
        source="splitter.ops",
        confidence="exact",
        file="this tool",
    )


def _proxies(part: LiteGraph, target: Target) -> int:
    """Operators that are accepted on the word of a sibling NPU."""
    rules = (target.operators.get(op.code) for op in part.operators)
    return sum(1 for rule in rules if rule is not None and rule.confidence == "proxy")


def _broken(graph: LiteGraph, op: Operator, target: Target, trust: str) -> Iterator[Reason]:
    yield from _not_supported(op, target, trust)
    view = View(graph, op)
    for address, limit in target.limits(op.code):
        if not all(_holds(view, condition) for condition in limit.when):
            continue
        if not _holds(view, limit):
            yield _reason(target, address, limit, fact(view, limit.fact))


def _holds(view: View, condition: Condition) -> bool:
    """A demand on quantization parameters holds as long as there are none."""
    value = fact(view, condition.fact)
    if value is None:
        return condition.fact in LATER
    return condition.holds(value)


def _not_supported(op: Operator, target: Target, trust: str) -> Iterator[Reason]:
    rule = target.operators.get(op.code)
    if rule is None:
        unlisted = target.every.unlisted
        yield Reason(
            rule=op.code,
            limit="the operators of its rule file",
            actual="not listed",
            source=target.source_text(unlisted.source),
            confidence=unlisted.confidence,
            file=target.file,
        )
        return
    claims = (
        (rule.support == "yes", "support", "yes", rule.support),
        (trusted(rule.confidence, trust), "confidence", f"{trust} or better", rule.confidence),
        (
            in_versions(target.version, since=rule.since, until=rule.until),
            "since" if rule.since else "until",
            f"{target.tool.name} from {rule.since or 'the first'} to {rule.until or 'today'}",
            target.version,
        ),
    )
    for fulfilled, key, limit, actual in claims:
        if not fulfilled and (key != "confidence" or rule.support == "yes"):
            yield Reason(
                rule=f"{op.code}.{key}",
                limit=limit,
                actual=actual,
                source=target.source_text(rule.source),
                confidence=rule.confidence,
                file=target.file,
            )


def _reason(target: Target, address: str, limit: Limit, value: object) -> Reason:
    return Reason(
        rule=address,
        limit=str(limit),
        actual=_printed(value),
        source=target.source_text(limit.source),
        confidence=limit.confidence,
        file=target.file,
    )


def _printed(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
