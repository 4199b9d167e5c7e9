"""Measurements in, the target's latency figures fitted to them out, with what changed and why.

Decides which figures are written as measured and which as moved along with the measured ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from splitter.plan import Device
from splitter.refit.figures import costs, figure_at, value_of
from splitter.refit.fit import Fit, Point, fit
from splitter.refit.measurements import BoardRuns, read_measurements
from splitter.refit.points import part_point, transfer_point
from splitter.refit.rulefile import with_latency
from splitter.rules.schema import CpuFigures, Figure, Latency, NpuFigures, Target
from splitter.rules.targets import rule_file

NOISE = 0.05
"""Relative standard deviation of a median that is assumed: boards throttle and share memory."""

TOLD = 0.25
"""A figure counts as measured when the times leave less than this relative spread of it."""


@dataclass(frozen=True)
class Change:
    """A figure that the times moved.

    measured: they tell it; else it moved along with others of its device. spread: relative standard
    deviation of what was fitted.
    """

    address: str
    unit: str
    old: float
    new: float
    measured: bool
    spread: float


@dataclass(frozen=True)
class Residual:
    """A measured time in ms, and what the old and the new figures say of it."""

    label: str
    measured: float
    before: float
    after: float


@dataclass(frozen=True)
class Refit:
    """text: the new rule file, whole. untold: figures that no measured part rests on."""

    target: str
    text: str
    changes: tuple[Change, ...]
    residuals: tuple[Residual, ...]
    untold: tuple[str, ...]

    @property
    def error_before(self) -> float:
        return median(abs(one.before / one.measured - 1) for one in self.residuals)

    @property
    def error_after(self) -> float:
        return median(abs(one.after / one.measured - 1) for one in self.residuals)


def refit(
    target: Target,
    files: Sequence[Path],
    *,
    devices: Collection[Device],
    bundles: Sequence[Path] = (),
) -> Refit:
    """Fit the figures of `devices`. Raises SplitterError for what cannot be used, all at once."""
    runs = read_measurements(files, target, devices=devices, bundles=bundles)
    points = list(_points(runs, target))
    fitted = fit(points, costs(target), noise=NOISE)
    key = next(f"M{n}" for n in range(1, 1000) if f"M{n}" not in target.sources)
    changes = tuple(_changes(fitted, target))
    latency = _latency(target, changes, runs, key, cpu="cpu" in devices)
    source = (
        f"split calibrate: {len(runs.parts)} parts measured on {runs.machine or 'a board'}, "
        f"measurements sha256 {runs.digest[:16]}"
    )
    text = rule_file(target).read_text(encoding="utf-8")
    return Refit(
        target.name,
        with_latency(text, target, latency, {key: source}),
        changes,
        tuple(
            Residual(point.label, point.ms, before, after)
            for point, before, after in zip(points, fitted.before, fitted.after, strict=True)
        ),
        tuple(name for name in costs(target) if _mine(name, devices) and name not in fitted.costs),
    )


def _points(runs: BoardRuns, target: Target) -> list[Point]:
    found = []
    for part in runs.parts:
        label = f"{part.label} on the {part.device.upper()}"
        found.append(part_point(label, part.graph, part.device, target, part.invoke_ms))
        if part.device == "npu" and part.transfer_ms > 0:
            label = f"{part.label}, transfers"
            found.append(transfer_point(label, part.graph, part.transfer_ms))
    return found


def _mine(address: str, devices: Collection[Device]) -> bool:
    return ("cpu" if address.startswith("cpu.") else "npu") in devices


def _changes(fitted: Fit, target: Target) -> list[Change]:
    found = []
    for address, cost in fitted.costs.items():
        old = figure_at(target, address)
        new = float(f"{value_of(address, cost, target):.4g}")
        spread = fitted.spread[address]
        told = spread < TOLD
        if new != old.value:
            found.append(Change(address, old.unit, old.value, new, told, spread))
    return found


def _latency(
    target: Target, changes: Sequence[Change], runs: BoardRuns, key: str, *, cpu: bool
) -> Latency:
    new = {one.address: _figure(target, one, key) for one in changes}
    old = target.latency

    def table(prefix: str, figures: Mapping[str, Figure]) -> dict[str, Figure]:
        return {name: new.get(f"{prefix}.{name}", figure) for name, figure in figures.items()}

    npu = None
    if old.npu is not None:
        npu = NpuFigures(**table("npu", dict(old.npu)))
    cores = old.cpu.cores
    if cpu and runs.threads != cores.value:
        cores = Figure(
            value=runs.threads,
            unit="threads",
            source=key,
            confidence="field",
            note=f"--threads of the measurement; was {cores.value:g} {cores.unit}",
        )
    return Latency(
        npu=npu,
        npu_classes=table("npu_classes", old.npu_classes),
        cpu=CpuFigures(
            cores=cores,
            operator=new.get("cpu.operator", old.cpu.operator),
            classes=table("cpu.classes", old.cpu.classes),
        ),
    )


def _figure(target: Target, change: Change, key: str) -> Figure:
    was = f"was {change.old:.4g} ({figure_at(target, change.address).source})"
    if change.measured:
        note = f"fitted to measured times, +- {change.spread:.0%}; {was}"
    else:
        note = f"moved along with the others, the times hardly tell it; {was}"
    return Figure(
        value=change.new,
        unit=change.unit,
        source=key,
        confidence="field" if change.measured else "inferred",
        note=note,
    )
