"""The figures of a rule file's latency section as costs of one unit of work, and back.

A figure is named by its address under [latency], "npu.efficiency" or "cpu.classes.matrix". Its cost
is in milliseconds: of a call, an operator or a tensor for the fixed ones, of a MAC, an element or a
byte for the others. Decides the names and the conversion; what fits is `fit`'s matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from splitter.rules.schema import Figure, NpuFigures, Target

FIXED = ("operator", "invoke", "transfer_fixed")
"""Their value is a cost in milliseconds already."""

RATES = ("elements", "memory", "transfer")
"""Their value is 1e6 units of work in a millisecond (G elements/s, GB/s)."""


def costs(target: Target) -> dict[str, float]:
    """Every figure that times can tell, as its cost."""
    latency = target.latency
    found: dict[str, float] = {}
    if latency.npu is not None:
        for name in (*FIXED, *RATES, "efficiency", "depthwise_efficiency"):
            found[f"npu.{name}"] = _exchange(name, latency.npu)(getattr(latency.npu, name).value)
    for name, figure in latency.npu_classes.items():
        found[f"npu_classes.{name}"] = figure.value * 1e-6
    found["cpu.operator"] = latency.cpu.operator.value
    for name, figure in latency.cpu.classes.items():
        found[f"cpu.classes.{name}"] = figure.value * 1e-6
    return found


def value_of(address: str, cost: float, target: Target) -> float:
    """The figure's value in its own unit."""
    table, _, name = address.rpartition(".")
    if table == "npu" and target.latency.npu is not None:
        return _exchange(name, target.latency.npu)(cost)
    return cost if address == "cpu.operator" else cost * 1e6


def figure_at(target: Target, address: str) -> Figure:
    """The figure as the rule file has it."""
    table, _, name = address.rpartition(".")
    latency = target.latency
    tables: Mapping[str, object] = {
        "npu_classes": latency.npu_classes,
        "cpu.classes": latency.cpu.classes,
    }
    if table in tables:
        found = tables[table]
        assert isinstance(found, Mapping)
        figure = found[name]
    else:
        figure = getattr(latency.npu if table == "npu" else latency.cpu, name)
    if not isinstance(figure, Figure):
        raise KeyError(address)
    return figure


def _exchange(name: str, npu: NpuFigures) -> Callable[[float], float]:
    """Value to cost and cost to value: each is its own inverse."""
    if name in FIXED:
        return lambda number: number
    if name in RATES:
        return lambda number: 1 / (number * 1e6)
    return lambda number: 1 / (npu.peak.value * number * 1e6)
