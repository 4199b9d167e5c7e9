"""Which units the NPU takes, by which lowering, or ALL the reasons why not.

Decides verdicts from the target's rules and the facts of the operators; knows no operator itself.
Where a unit is put is `partition`'s decision. Rules are checked here on float fragments as if they
were INT8 already, and again on finished files, there with their quantization parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from splitter.diagnostics import Reason
from splitter.graph import Graph, Unit
from splitter.lower import refuse_unknown
from splitter.ops import OPS
from splitter.ops.registry import Lowering, fragment
from splitter.plan import Support, Verdict
from splitter.rules.check import broken_rules
from splitter.rules.dialect.judge import judge_nodes, nodes_of_units
from splitter.rules.schema import Target
from splitter.tflite.facts import fact
from splitter.tflite.parameters import LATER
from splitter.tflite.types import LiteGraph, Operator
from splitter.tflite.view import BIAS_SLOT, UNKNOWN, View

CANNOT_WRITE = "splitter.ops"
"""The source of a reason that is about this tool: a lowering has no form of a unit."""


def judge(
    graph: Graph, target: Target, *, trust: str, assumed: Collection[str] = frozenset()
) -> Support:
    """Verdicts for every unit on both devices.

    trust: the least confidence a rule must have to put an operator on the NPU: vendor, field,
    proxy or inferred. Limits hold whatever their confidence; they can only refuse.
    assumed: operators of the rules' dialect, or of units, that are taken whatever the rules say.
    Raises SplitterError for units that no lowering can write, all of them at once.
    """
    refuse_unknown(graph)
    npu = npu_verdicts(graph, graph.units, target, trust=trust, assumed=assumed)
    cpu = {unit.name: _cpu(graph, unit) for unit in graph.units}
    return Support(npu=npu, cpu=cpu)


def npu_verdicts(
    graph: Graph,
    units: Iterable[Unit],
    target: Target,
    *,
    trust: str,
    assumed: Collection[str] = frozenset(),
) -> dict[str, Verdict]:
    """What `judge` says of some units on the NPU."""
    if target.dialect == "onnx":
        found = _by_nodes(graph, target, trust, assumed)
        npu = {unit.name: found[unit.name] for unit in units}
    else:
        npu = {unit.name: _npu(graph, unit, target, trust, assumed) for unit in units}
    if target.has_npu and target.latency.npu is None:
        return {name: _without_figures(verdict, target) for name, verdict in npu.items()}
    return npu


def _without_figures(verdict: Verdict, target: Target) -> Verdict:
    """A rule file without figures of its NPU can put nothing there."""
    if not verdict.fits:
        return verdict
    reason = Reason("latency.npu", "figures of the NPU", "none", "", "exact", target.file)
    return Verdict("", {verdict.lowering: (reason,)})


def _by_nodes(
    graph: Graph, target: Target, trust: str, assumed: Collection[str]
) -> dict[str, Verdict]:
    """Verdicts of units by the ONNX nodes they stand for; reasons are by node."""
    if graph.origin is None:
        raise ValueError("rules about ONNX need the graph's origin")
    reasons = judge_nodes(graph.origin, target, trust=trust, assumed=assumed)
    nodes = nodes_of_units(graph, graph.origin)
    found: dict[str, Verdict] = {}
    for unit in graph.units:
        against = {f"{n.op} {n.name}": reasons[n.name] for n in nodes[unit.name]}
        refused = {name: why for name, why in against.items() if why and unit.op not in assumed}
        rules = [target.operators.get(node.op) for node in nodes[unit.name]]
        proxies = sum(rule is not None and rule.confidence == "proxy" for rule in rules)
        lowering = "" if refused else _cpu(graph, unit).lowering
        found[unit.name] = Verdict(lowering, refused, proxies)
    return found


def check_lite(
    graph: LiteGraph, target: Target, *, trust: str
) -> list[tuple[Operator, tuple[Reason, ...]]]:
    """The operators of a file that break a rule, each with all its reasons.

    None for a target whose compiler does not read TFLite.
    """
    if target.dialect != "tflite":
        return []
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
    operators = tuple(
        _integer_form(graph, op)
        for op in graph.operators
        if op.code not in ("QUANTIZE", "DEQUANTIZE")
    )
    return replace(graph, tensors=tensors, operators=operators)


def _integer_form(graph: LiteGraph, op: Operator) -> Operator:
    """A CAST of integers to float is QUANTIZE once floats are int8."""
    made = graph.tensors[op.outputs[0]] if op.outputs else None
    if op.code != "CAST" or made is None or made.dtype != "float32":
        return op
    return op if graph.tensors[op.inputs[0]].dtype == "float32" else replace(op, code="QUANTIZE")


def lowering_of(unit: Unit, name: str) -> Lowering:
    return next(lowering for lowering in OPS[unit.op].lowerings if lowering.name == name)


def _npu(graph: Graph, unit: Unit, target: Target, trust: str, assumed: Collection[str]) -> Verdict:
    """By the first lowering that fits; by one with an assumed operator before others."""
    reasons: dict[str, tuple[Reason, ...]] = {}
    first: Verdict | None = None
    for lowering in _ordered(unit, target):
        refused = lowering.applies(graph, unit)
        if refused:
            reasons[lowering.name] = (_inapplicable(unit, lowering, refused),)
            continue
        part = as_int8(fragment(graph, unit, lowering))
        needs_word = unit.op in assumed or any(op.code in assumed for op in part.operators)
        found = () if unit.op in assumed else _part_reasons(part, target, trust, assumed)
        if not found:
            verdict = Verdict(lowering.name, proxies=_proxies(part, target))
            if needs_word or not assumed:
                return verdict
            first = first or verdict
        else:
            reasons[lowering.name] = found
    return first or Verdict("", reasons)


def _part_reasons(
    part: LiteGraph, target: Target, trust: str, assumed: Collection[str]
) -> tuple[Reason, ...]:
    """All reasons against a fragment, equal ones once. Constants and nothing at all always fit."""
    if not part.operators or (not part.inputs and target.has_npu):
        return ()
    checked = check_lite(part, target, trust=trust)
    found = (reason for op, reasons in checked if op.code not in assumed for reason in reasons)
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
        source=CANNOT_WRITE,
        confidence="exact",
        file="this tool",
    )


def _proxies(part: LiteGraph, target: Target) -> int:
    """Operators that are accepted on the word of a sibling NPU."""
    rules = (target.operators.get(op.code) for op in part.operators)
    return sum(1 for rule in rules if rule is not None and rule.confidence == "proxy")


def _broken(graph: LiteGraph, op: Operator, target: Target, trust: str) -> Iterator[Reason]:
    view = View(graph, op)

    def read(name: str) -> object:
        """A demand on quantization parameters cannot be broken while there are none."""
        value = fact(view, name)
        return UNKNOWN if value is None and name not in LATER else value

    yield from broken_rules(op.code, target, trust, read)
