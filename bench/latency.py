"""`python -m bench.latency`: the estimate for the i.MX95 beside published times, and its fit.

The figures of rules/imx95.toml that are marked "fitted" come from here. Each published time is also
estimated with figures fitted to all the others, which is the honest error of the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.networks import NETWORKS
from splitter.latency import graph_ms, invoke_ms, npu_work
from splitter.rulefile import Target
from splitter.targets import load_target

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Published:
    """A time in ms. `tail`: the series it is from, whose decoding on the CPU is fitted too."""

    network: str
    ms: float
    source: str
    tail: str = ""


PUBLISHED = (
    Published("MobileNetV1", 1.0, "arXiv 2509.14388"),
    Published("MobileNetV2", 0.9, "arXiv 2509.14388"),
    Published("MobileNetV3 minimalistic", 0.8, "arXiv 2509.14388"),
    Published("EfficientNet-Lite0", 1.3, "arXiv 2509.14388"),
    Published("ResNet50 v1", 7.0, "arXiv 2509.14388"),
    Published("YOLOv8n-pose", 13.1, "IMX95_benchmark, NPU part, SDK 3.2.2"),
    Published("YOLOv8n", 24.6, "arXiv 2509.14388", "paper"),
    Published("YOLOv8s", 42.5, "arXiv 2509.14388", "paper"),
    Published("YOLOv8n", 32.1, "kylefoxaustin, SDK 3.1.3", "board"),
    Published("YOLOv8s", 52.3, "kylefoxaustin, SDK 3.1.3", "board"),
    Published("YOLOv8m", 101.5, "kylefoxaustin, SDK 3.1.3", "board"),
    Published("YOLOv8l", 182.5, "kylefoxaustin, SDK 3.1.3", "board"),
    Published("YOLOv8x", 305.8, "kylefoxaustin, SDK 3.1.3", "board"),
)

TAILS = ("", "paper", "board")
FITTED = ("efficiency", "depthwise_efficiency", "elements", "invoke")
START = np.log([0.6, 0.1, 64.0, 0.1, 12.0, 20.0])
"""Logarithms of the fitted figures and of the two tails in ms, where the search starts."""


@cache
def works(network: str) -> Array:
    """(padded MACs, depthwise, elements, DRAM bytes) of every operator of a network."""
    npu = load_target("imx95").latency.npu
    assert npu is not None
    graph = NETWORKS[network]()
    rows = [npu_work(graph, op, npu) for op in graph.operators]
    return np.array([(w.macs, w.depthwise, w.elements, w.dram) for w in rows], dtype=float)


def estimate(figures: Array, points: Sequence[Published], target: Target) -> Array:
    """Milliseconds of each point with other figures than the rule file's, vectorized."""
    npu = target.latency.npu
    assert npu is not None
    efficiency, depthwise, elements, invoke, *tails = np.exp(figures)
    times = []
    for point in points:
        work = works(point.network)
        rate = npu.peak.value * 1e6 * np.where(work[:, 1] > 0, depthwise, efficiency)
        parts = (work[:, 0] / rate, work[:, 2] / (elements * 1e6), work[:, 3] / _bytes_ms(target))
        busy = np.maximum.reduce(parts) + npu.operator.value
        times.append(busy.sum() + invoke + (0.0, *tails)[TAILS.index(point.tail)])
    return np.array(times)


def _bytes_ms(target: Target) -> float:
    npu = target.latency.npu
    assert npu is not None
    return npu.memory.value * 1e6


def fit(points: Sequence[Published], target: Target, *, turns: int = 3000) -> Array:
    """Figures (logarithms) of least squared relative error, by a seeded random descent."""
    measured = np.array([point.ms for point in points])

    def loss(figures: Array) -> float:
        misses = np.log(estimate(figures, points, target) / measured)
        return float((misses**2).sum() + 0.02 * (figures[3] - START[3]) ** 2)

    rng = np.random.default_rng(0)
    best, least, step = START, loss(START), 0.3
    for _ in range(turns):
        trial = best + rng.normal(size=best.size) * step * (rng.random(best.size) < 0.4)
        value = loss(trial)
        if value < least:
            best, least = trial, value
        step = min(step * 1.3, 0.5) if value == least else max(step * 0.995, 0.003)
    return best


def main() -> None:
    target = load_target("imx95")
    fitted = fit(PUBLISHED, target)
    table = Table(title="i.MX95, ms: published, estimated, and estimated without having seen it")
    for column in ("network", "published", "estimate", "left out", "error left out", "source"):
        table.add_column(column)
    errors = []
    for i, point in enumerate(PUBLISHED):
        others = (*PUBLISHED[:i], *PUBLISHED[i + 1 :])
        unseen = float(estimate(fit(others, target), [point], target)[0])
        errors.append(abs(unseen / point.ms - 1))
        tail = float(np.exp(fitted[3 + TAILS.index(point.tail)])) if point.tail else 0.0
        shown = graph_ms(NETWORKS[point.network](), "npu", target) + invoke_ms(target) + tail
        table.add_row(
            point.network,
            f"{point.ms:.1f}",
            f"{shown:.2f}",
            f"{unseen:.2f}",
            f"{unseen / point.ms - 1:+.0%}",
            point.source,
        )
    console = Console(width=110)
    console.print(table)
    console.print(f"median error on those left out: {median(errors):.0%}")
    values = ", ".join(
        f"{name} {value:.3g}" for name, value in zip(FITTED, np.exp(fitted), strict=False)
    )
    tails = ", ".join(f"{name} {np.exp(fitted[4 + i]):.1f}" for i, name in enumerate(TAILS[1:]))
    console.print(f"fitted to all: {values}; decoding on the CPU, ms: {tails}")


if __name__ == "__main__":
    main()
