"""Estimated milliseconds of every unit on either device, each by the lowering it would have there.

Decides nothing: verdicts are `support`'s, the estimate `latency`'s. Equal units are estimated once.
"""

from __future__ import annotations

from collections.abc import Hashable

from splitter.graph import Graph, Unit
from splitter.latency import graph_ms
from splitter.ops.registry import fragment
from splitter.ops.signature import signature
from splitter.plan import Device, Support
from splitter.rules.dialect.judge import nodes_of_units
from splitter.rules.schema import Target
from splitter.rules.support import as_int8, lowering_of
from splitter.tflite.facts import macs


def unit_costs(
    graph: Graph, support: Support, target: Target
) -> tuple[tuple[float | None, ...], tuple[float, ...]]:
    """(on the NPU, None where a unit does not fit; on the CPU), in the order of the units."""
    known: dict[Hashable, float] = {}

    def ms(unit: Unit, lowering: str, device: Device, alike: Hashable) -> float:
        key = (alike, lowering, device)
        if key not in known:
            part = fragment(graph, unit, lowering_of(unit, lowering))
            known[key] = graph_ms(as_int8(part), device, target)
        return known[key]

    absent = _in_no_node(graph) if target.dialect == "onnx" else frozenset()
    inside: list[float | None] = []
    outside: list[float] = []
    for unit in graph.units:
        alike = signature(graph, unit)
        outside.append(ms(unit, support.cpu[unit.name].lowering, "cpu", alike))
        verdict = support.npu[unit.name]
        fits = verdict.fits and target.has_npu
        if fits and unit.name in absent:
            inside.append(0.0)
        else:
            inside.append(ms(unit, verdict.lowering, "npu", alike) if fits else None)
    return tuple(inside), tuple(outside)


def _in_no_node(graph: Graph) -> frozenset[str]:
    """Units that layout added: a part that is cut out of the ONNX file has no such operator."""
    if graph.origin is None:
        return frozenset()
    nodes = nodes_of_units(graph, graph.origin)
    return frozenset(name for name, found in nodes.items() if not found)


def unit_macs(graph: Graph, support: Support) -> dict[str, tuple[int, int]]:
    """Multiply-accumulates by unit: as lowered for the NPU (0 where it is not), for the CPU."""
    known: dict[Hashable, int] = {}

    def count(unit: Unit, lowering: str, alike: Hashable) -> int:
        key = (alike, lowering)
        if lowering and key not in known:
            part = fragment(graph, unit, lowering_of(unit, lowering))
            known[key] = sum(macs(part, op) for op in part.operators)
        return known[key] if lowering else 0

    found = {}
    for unit in graph.units:
        alike = signature(graph, unit)
        npu, cpu = (side[unit.name].lowering for side in (support.npu, support.cpu))
        found[unit.name] = count(unit, npu, alike), count(unit, cpu, alike)
    return found
