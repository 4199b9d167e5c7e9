"""`python -m bench.planner [--units N]`: how long planning takes, on networks of many operators.

Three kinds of network: a chain of residual blocks, one whose every hundredth operator the NPU
refuses (many islands to weigh), and one whose tensors are read by several operators far apart.
Processor seconds of one core, so that what runs beside does not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

import numpy as np
from rich.console import Console
from rich.table import Table

from splitter.graph import Graph, Unit, Value
from splitter.partition import plan
from splitter.plan import Plan
from splitter.rules.support import judge
from splitter.rules.targets import load_target

UNITS = 10_000
WIDTH = 64
LIMIT = 5.0
"""Seconds that planning so many operators may take."""


class _Network:
    """A graph of products, additions and sines (which the NPU refuses) over values [1, 64, 64]."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.values = {"x": _value("x"), "w": Value("w", (WIDTH, WIDTH), "float32")}

    def add(self, op: str, *inputs: str) -> str:
        output = f"v{len(self.units)}"
        self.values[output] = _value(output)
        attrs = {"activation": ""} if op != "Sin" else {}
        self.units.append(Unit(f"u{len(self.units)}", op, inputs, (output,), attrs))
        return output

    def graph(self) -> Graph:
        weight = np.random.default_rng(0).normal(size=(WIDTH, WIDTH)).astype(np.float32)
        last = self.units[-1].outputs
        return Graph(("x",), last, self.values, {"w": weight}, tuple(self.units))


def _value(name: str) -> Value:
    return Value(name, (1, WIDTH, WIDTH), "float32")


def residual(count: int) -> Graph:
    """Blocks of three products with an addition around; one sine in the middle."""
    network, at, half = _Network(), "x", count // 2
    while len(network.units) < count:
        inner = at
        for _ in range(3):
            inner = network.add("FullyConnected", inner, "w")
        at = network.add("Add", inner, at)
        if half <= len(network.units) < half + 4:
            at = network.add("Sin", at)
    return network.graph()


def islands(count: int) -> Graph:
    """The same, every hundredth operator a sine."""
    network, at = _Network(), "x"
    while len(network.units) < count:
        inner = network.add("FullyConnected", at, "w")
        at = network.add("Add", inner, at)
        if len(network.units) % 100 >= 98:
            at = network.add("Sin", at)
    return network.graph()


def tangled(count: int) -> Graph:
    """Additions that read values made 1, 7 and 40 operators before, sines now and then."""
    network = _Network()
    made = [network.add("FullyConnected", "x", "w")]
    while len(network.units) < count:
        at = len(made)
        if at % 150 == 0:
            made.append(network.add("Sin", made[-1]))
        elif at % 3:
            made.append(network.add("FullyConnected", made[-1], "w"))
        else:
            made.append(network.add("Add", made[-1], made[max(0, at - (7 if at % 2 else 40))]))
    return network.graph()


NETWORKS: Mapping[str, Callable[[int], Graph]] = {
    "residual": residual,
    "islands": islands,
    "tangled": tangled,
}


def planned(graph: Graph, target_name: str = "imx95") -> tuple[float, tuple[Plan, ...]]:
    """Processor seconds of `plan`, from verdicts to candidates, and what it found."""
    target = load_target(target_name)
    support = judge(graph, target, trust="proxy")
    begin = time.process_time()
    found = plan(graph, support, target, max_segments=5)
    return time.process_time() - begin, found


def main() -> None:
    parser = argparse.ArgumentParser(description="How long planning takes.")
    parser.add_argument("--units", type=int, default=UNITS)
    units = parser.parse_args().units
    table = Table(title=f"Planning at most 5 segments for imx95 (limit for 10,000: {LIMIT:g} s)")
    for column in ("network", "operators", "seconds", "segments", "estimated ms", "all on the CPU"):
        table.add_column(column, justify="left" if column == "network" else "right")
    for name, make in NETWORKS.items():
        graph = make(units)
        seconds, found = planned(graph)
        cpu = next(plan for plan in found if plan.name == "all on the CPU")
        table.add_row(
            name,
            f"{len(graph.units):,}",
            f"{seconds:.2f}",
            str(len(found[0].segments)),
            f"{found[0].cost.total_ms:.1f}",
            f"{cpu.cost.total_ms:.1f}",
        )
    Console(width=100, highlight=False).print(table)


if __name__ == "__main__":
    main()
