"""Figures of the NPU that come closest to Vela's times, class by class of kernel.

What Vela spends on each class of kernels in a graph is one measurement for `splitter.refit.fit`,
the same fit that `split calibrate` makes of a board's times. Half of the graphs are fitted alone
too, and the other half estimated with that: the honest error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitter.latency import FREE, NpuWork, npu_work_ms
from splitter.refit.figures import costs, figure_at, value_of
from splitter.refit.fit import Fit, Point, fit
from splitter.refit.points import npu_point
from splitter.rules.schema import Figure, Latency, NpuFigures, Target

Row = Mapping[str, Any]

START = {"efficiency": 0.6, "depthwise_efficiency": 0.1, "elements": 2.0, "operator": 0.001}
"""Where the fit starts, whatever the rule file says; in the figures' units."""

FITTED = tuple(START)
CLASSES = ("matrix", "product", "reduce", "softmax", "transpose", "copy", "lookup", "pool", "prelu")
SOURCE = "V3"
NOTE = "fitted to Vela 5.2's estimate"
NOISE = 0.3
"""Relative error of a class of kernels in one graph that the form of the estimate leaves."""

LEAST = 1e-3
"""Milliseconds under which a class in a graph is not fitted to."""


@dataclass(frozen=True)
class Check:
    """How an estimate does on some graphs: correlation of ranks, median relative error."""

    spearman: float
    error: float
    graphs: int


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of the ranks; ties in order of appearance."""
    ranks = [np.argsort(np.argsort(np.asarray(values))) for values in (first, second)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def timed(rows: Sequence[Row]) -> list[Row]:
    """Models (not the small graphs of a zoo) that Vela gave a time for."""
    return [r for r in rows if r["kind"] != "zoo" and r["status"] == "done" and r["their_ms"]]


def our_ms(row: Row, target: Target) -> float:
    """Our estimate of the operators that both put on the NPU, invocation left out."""
    return sum(npu_work_ms(work, target) for work in _works(row))


def check(rows: Sequence[Row], target: Target) -> Check:
    """The target's figures against Vela's times."""
    chosen = timed(rows)
    ours = [our_ms(row, target) for row in chosen]
    theirs = [float(row["their_ms"]) for row in chosen]
    errors = np.abs(np.array(ours) / np.array(theirs) - 1)
    return Check(spearman(ours, theirs), float(np.median(errors)), len(chosen))


def fitted(rows: Sequence[Row], target: Target) -> Target:
    """The target with the figures that were fitted to Vela's times."""
    chosen = timed(rows)
    start = _with_classes(target)
    points = [point for row in chosen for point in _points(row, start)]
    return _with(start, fit(points, costs(start), noise=NOISE))


def halves(rows: Sequence[Row], target: Target) -> Check:
    """Each half of the graphs, by figures that were fitted to the other half."""
    chosen = sorted(timed(rows), key=lambda row: str(row["name"]))
    ours: list[float] = []
    theirs: list[float] = []
    for seen, unseen in ((chosen[::2], chosen[1::2]), (chosen[1::2], chosen[::2])):
        other = fitted(seen, target)
        ours += [our_ms(row, other) for row in unseen]
        theirs += [float(row["their_ms"]) for row in unseen]
    errors = np.abs(np.array(ours) / np.array(theirs) - 1)
    return Check(spearman(ours, theirs), float(np.median(errors)), len(ours))


def _works(row: Row) -> list[NpuWork]:
    return [NpuWork(*work) for code, *work in row["works"] if code not in FREE]


def _points(row: Row, target: Target) -> Iterator[Point]:
    works: dict[str, list[NpuWork]] = defaultdict(list)
    for work in _works(row):
        works[work.kernel].append(work)
    for kernel, ms in row["their_classes"].items():
        if works[kernel] and ms > LEAST:
            yield npu_point(f"{row['name']} {kernel}", works[kernel], target, ms, calls=0)


def _with_classes(target: Target) -> Target:
    """The target with a figure for every class that is fitted, started from the general ones."""
    old = target.latency.npu
    if old is None:
        raise ValueError(f"{target.name} has no NPU")
    conv = 1 / (old.peak.value * START["efficiency"])
    starts = dict.fromkeys(CLASSES, 1 / START["elements"]) | {"matrix": conv, "product": conv}
    units = {"matrix": "ns/MAC", "product": "ns/MAC"}
    classes = {
        name: Figure(
            value=value,
            unit=units.get(name, "ns/element"),
            source=SOURCE,
            confidence="inferred",
            note=NOTE,
        )
        for name, value in starts.items()
    }
    general = {
        name: getattr(old, name).model_copy(update={"value": value})
        for name, value in START.items()
    }
    update = {"npu": old.model_copy(update=general), "npu_classes": classes}
    latency = target.latency.model_copy(update=update)
    return target.model_copy(update={"latency": latency})


def _with(target: Target, found: Fit) -> Target:
    latency = target.latency
    assert latency.npu is not None

    def figure(address: str) -> Figure:
        old = figure_at(target, address)
        if address not in found.costs:
            return old
        value = float(f"{value_of(address, found.costs[address], target):.3g}")
        update = {"value": value, "source": SOURCE, "confidence": "inferred", "note": NOTE}
        return old.model_copy(update=update)

    npu = {name: figure(f"npu.{name}") for name in FITTED}
    classes = {name: figure(f"npu_classes.{name}") for name in latency.npu_classes}
    update: dict[str, object] = {
        "npu": NpuFigures(**{**dict(latency.npu), **npu}),
        "npu_classes": classes,
    }
    made: Latency = latency.model_copy(update=update)
    return target.model_copy(update={"latency": made})
