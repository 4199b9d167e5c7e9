"""Writes the chosen lowering of every unit, in float, and tidies what the seams leave behind.

Tidying never crosses units that sit on different devices, since it only merges RESHAPE chains and
drops RESHAPEs that change nothing; the choice of lowerings is the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from splitter.diagnostics import Cause, Unsupported
from splitter.graph import Graph, Unit
from splitter.ops import OPS
from splitter.ops.registry import Emitter
from splitter.tflite.types import LiteGraph, Operator, Tensor

CALCULATING = frozenset(("Add", "Sub", "Mul", "Div", "Mod", "Pow"))
"""Operators that calculate with a constant; where it only bounds, the nearest number serves."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A lowering that is not exact: its stated bound on the absolute error, and how many use it."""

    op: str
    lowering: str
    error: float
    units: int


def lower(graph: Graph, lowerings: Mapping[str, str]) -> LiteGraph:
    """The whole graph in float TFLite operators; `lowerings` names the lowering of each unit.

    Raises SplitterError listing every operator that has no lowering at all.
    """
    refuse_unknown(graph)
    emitter = Emitter(graph)
    for name in graph.inputs:
        emitter.value(name)
    for unit in graph.units:
        table = {lowering.name: lowering for lowering in OPS[unit.op].lowerings}
        emitter.emit_unit(unit, table[lowerings[unit.name]])
    for name in graph.outputs:
        emitter.value(name)
    whole = LiteGraph(graph.inputs, graph.outputs, emitter.tensors, tuple(emitter.operators))
    return drop_unused(merge_reshapes(_opened(whole)))


def _opened(graph: LiteGraph) -> LiteGraph:
    """What is joined of values with as many rows as the data decides has as many."""
    tensors = dict(graph.tensors)
    for op in graph.operators:
        if op.code == "CONCATENATION" and any(tensors[name].open for name in op.inputs):
            tensors[op.outputs[0]] = replace(tensors[op.outputs[0]], open=True)
    return replace(graph, tensors=tensors)


def rewrites(graph: Graph, planned: Mapping[str, str]) -> tuple[Rewrite, ...]:
    """The lowerings with a stated error that a plan uses."""
    counts: dict[tuple[str, str, float], int] = {}
    for unit in graph.units:
        for lowering in OPS[unit.op].lowerings:
            if lowering.name == planned[unit.name] and lowering.error:
                key = (unit.op, lowering.name, lowering.error)
                counts[key] = counts.get(key, 0) + 1
    return tuple(Rewrite(*key, units=count) for key, count in counts.items())


def refuse_unknown(graph: Graph) -> None:
    """One error that names every unit without a lowering, with the reasons."""
    causes = []
    for unit in graph.units:
        nodes = unit.nodes or (unit.name,)
        if unit.op not in OPS:
            causes.append(Cause(unit.op, nodes, "no lowering"))
            continue
        reasons = [lowering.applies(graph, unit) for lowering in OPS[unit.op].lowerings]
        wide = _too_wide(graph, unit)
        if wide or all(reasons):
            why = wide or "; ".join(dict.fromkeys(map(str, reasons)))
            causes.append(Cause(unit.op, nodes, why))
    if causes:
        raise Unsupported(causes)


def _too_wide(graph: Graph, unit: Unit) -> str:
    """Why an operator would calculate with another number: parts hold 32 bits."""
    limit = np.iinfo(np.int32)
    for name in unit.inputs if unit.op in CALCULATING else ():
        data = graph.constants.get(name)
        if data is None or not data.size or data.dtype.kind not in "iu":
            continue
        beyond = [value for value in (int(data.min()), int(data.max())) if not
                  limit.min <= value <= limit.max]  # fmt: skip
        if beyond:
            return f"{beyond[0]} in {name} does not fit the 32 bits that integers have in TFLite"
    return ""


def merge_reshapes(graph: LiteGraph) -> LiteGraph:
    """RESHAPE of a RESHAPE reads the first one's input."""
    operators: list[Operator] = []
    source: dict[str, str] = {}
    for op in graph.operators:
        if op.code == "RESHAPE" and op.inputs[0] in source:
            op = replace(op, inputs=(source[op.inputs[0]], *op.inputs[1:]))
        if op.code == "RESHAPE":
            source[op.outputs[0]] = op.inputs[0]
        operators.append(op)
    return drop_noop_reshapes(replace(graph, operators=tuple(operators)))


def drop_noop_reshapes(graph: LiteGraph) -> LiteGraph:
    """A RESHAPE to the shape it has is left out, unless it makes a model output."""
    alias: dict[str, str] = {}
    operators: list[Operator] = []
    kept = {*graph.outputs, *(n for op in graph.operators if op.whole for n in op.whole.reads)}
    for op in graph.operators:
        op = replace(op, inputs=tuple(alias.get(name, name) for name in op.inputs))
        same = graph.tensors[op.inputs[0]].shape == graph.tensors[op.outputs[0]].shape
        if op.code == "RESHAPE" and same and op.outputs[0] not in kept:
            alias[op.outputs[0]] = op.inputs[0]
            continue
        operators.append(op)
    return replace(graph, operators=tuple(operators))


def drop_unused(graph: LiteGraph) -> LiteGraph:
    """Operators and tensors that no output needs."""
    needed = set(graph.outputs)
    kept: list[Operator] = []
    for op in reversed(graph.operators):
        if needed & set(op.outputs):
            needed.update(name for name in op.inputs if name)
            needed.update(filter(None, op.whole.reads if op.whole else ()))
            kept.append(op)
    used = needed | {name for op in kept for name in op.outputs} | set(graph.inputs)
    tensors: dict[str, Tensor] = {n: t for n, t in graph.tensors.items() if n in used}
    return replace(graph, tensors=tensors, operators=tuple(reversed(kept)))
