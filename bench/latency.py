"""`python -m bench.latency`: estimates beside published times, and how far they are off unseen.

The figures of the rule files that are marked "fitted by bench/latency.py" come from here (--write).
Each published time is also estimated with figures fitted to all the others of its target, which is
the honest error of the estimate.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.networks import NETWORKS
from bench.published import CHECKS, PUBLISHED, Check, Published
from splitter.latency import FREE, NpuWork, graph_ms, invoke_ms, npu_work
from splitter.refit.figures import costs, figure_at, value_of
from splitter.refit.fit import Fit, Point, fit
from splitter.refit.points import npu_point
from splitter.refit.rulefile import with_latency
from splitter.rules.schema import NpuFigures, Target
from splitter.rules.targets import load_target, rule_file

START = {"efficiency": 0.5, "depthwise_efficiency": 0.1, "elements": 4.0, "invoke": 0.2}
"""Where the fit starts, whatever the rule file says; in the figures' units."""

FITTED = tuple(START)
NOISE = 0.1
"""Relative error that the form of the estimate leaves in a whole network."""

TAIL = 12.0
"""Milliseconds of a series' decoding on the CPU, where the fit starts."""

SOURCES = {"imx95": "S2, S5, S10"}
OTHERWISE = "Z1"


@cache
def works(network: str, target: str) -> tuple[NpuWork, ...]:
    """What every operator of a network asks of the NPU."""
    npu = load_target(target).latency.npu
    assert npu is not None
    graph = NETWORKS[network]()
    return tuple(npu_work(graph, op, npu) for op in graph.operators if op.code not in FREE)


def point_of(one: Published, target: Target) -> Point:
    """A published time as a point to fit to."""
    point = npu_point(one.network, list(works(one.network, one.target)), target, one.ms)
    fixed = {**point.fixed, f"tail.{one.tail}": 1} if one.tail else point.fixed
    return Point(point.label, point.ms, fixed, point.keys, point.work, point.traffic)


def fit_to(points: Sequence[Published], target: Target) -> Fit:
    """Figures fitted to published times; those not in FITTED stay, since times hardly tell them.

    No efficiency exceeds 1.
    """
    start = {f"npu.{name}": value_of(f"npu.{name}", value, target) for name, value in START.items()}
    tails = {f"tail.{one.tail}": TAIL for one in points if one.tail}
    known = costs(target) | start | tails
    free = {f"npu.{name}" for name in FITTED} | {name for name in known if "tail." in name}
    whole = {f"npu.{name}": value_of(f"npu.{name}", 1.0, target) for name in FITTED[:2]}
    made = [point_of(one, target) for one in points]
    return fit(made, known, noise=NOISE, free=free, least=whole)


def estimate(one: Published, target: Target, found: Fit) -> float:
    """Milliseconds by the fitted figures."""
    point, known = point_of(one, target), {**costs(target), **found.costs}
    memory = known["npu.memory"]
    whole = sum(count * known.get(name, TAIL) for name, count in point.fixed.items())
    rows = zip(point.keys, point.work, point.traffic, strict=True)
    return whole + sum(max(work * known[key], moved * memory) for key, work, moved in rows)


def unseen(points: Sequence[Published], target: Target) -> list[float]:
    """Each time as figures fitted to all the others say it."""
    return [
        estimate(one, target, fit_to([*points[:i], *points[i + 1 :]], target))
        for i, one in enumerate(points)
    ]


def with_figures(target: Target, found: Fit, error: float, count: int) -> Target:
    """The target with the fitted figures, and what they rest on."""
    npu = target.latency.npu
    assert npu is not None
    note = (
        f"fitted by bench/latency.py to {count} published times of convolutional networks, no "
        f"transformer among them; median error on those left out {error:.0%}"
    )
    new = {}
    for name in FITTED:
        value = float(f"{value_of(f'npu.{name}', found.costs[f'npu.{name}'], target):.3g}")
        source = SOURCES.get(target.name, OTHERWISE)
        update = {"value": value, "source": source, "confidence": "inferred", "note": note}
        new[name] = figure_at(target, f"npu.{name}").model_copy(update=update)
    latency = target.latency.model_copy(update={"npu": NpuFigures(**{**dict(npu), **new})})
    return target.model_copy(update={"latency": latency})


def show(name: str, console: Console, *, write: bool) -> list[float]:
    """The table of a target; the errors on what was left out. write: the rule file, too."""
    target = load_target(name)
    points = [one for one in PUBLISHED if one.target == name]
    found, blind = fit_to(points, target), unseen(points, target)
    errors = [abs(ms / one.ms - 1) for ms, one in zip(blind, points, strict=True)]
    table = Table(title=f"{name}, ms: published, fitted, and estimated without having seen it")
    for column in ("network", "published", "fitted", "left out", "error left out", "source"):
        table.add_column(column)
    for one, ms in zip(points, blind, strict=True):
        cells = [f"{number:.2f}" for number in (one.ms, estimate(one, target, found), ms)]
        table.add_row(one.network, *cells, f"{ms / one.ms - 1:+.0%}", one.source)
    console.print(table)
    new = with_figures(target, found, median(errors), len(points))
    figures = ", ".join(f"{n} {figure_at(new, f'npu.{n}').value:.3g}" for n in FITTED)
    tails = "".join(f", {n} {ms:.1f} ms" for n, ms in found.costs.items() if n.startswith("tail."))
    console.print(f"{name}: median error on those left out {median(errors):.0%}; {figures}{tails}")
    if write:
        path = rule_file(target)
        path.write_text(with_latency(path.read_text(), target, new.latency, {}))
    return errors


def checked(one: Check) -> str:
    """A published time that nothing is fitted to, beside the rule file's estimate."""
    target = load_target(one.target)
    ms = graph_ms(NETWORKS[one.network](), one.device, target)
    ms += invoke_ms(target) if one.device == "npu" else 0.0
    what = f"{one.target} {one.device.upper()} {one.network}: {one.ms} ms"
    return f"{what}, estimated {ms:.2f} ({ms / one.ms - 1:+.0%}); {one.source}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the figures to the rule files")
    wanted = parser.parse_args()
    console = Console(width=110)
    errors: list[float] = []
    for name in dict.fromkeys(one.target for one in PUBLISHED):
        errors += show(name, console, write=wanted.write)
    console.print(f"all targets: median error on {len(errors)} times left out {median(errors):.0%}")
    console.print("fitted to nothing here:")
    for one in CHECKS:
        console.print(f"  {checked(one)}", highlight=False)


if __name__ == "__main__":
    main()
