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
from splitter.rulefile import Target
from splitter.support import as_int8, lowering_of


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

    inside: list[float | None] = []
    outside: list[float] = []
    for unit in graph.units:
        alike = signature(graph, unit)
        outside.append(ms(unit, support.cpu[unit.name].lowering, "cpu", alike))
        verdict = support.npu[unit.name]
        fits = verdict.fits and target.has_npu
        inside.append(ms(unit, verdict.lowering, "npu", alike) if fits else None)
    return tuple(inside), tuple(outside)
