"""The comparison in words: how to read it, what separates the first from the second, its basis.

Decides the sentences. Which plans and figures is the rows' matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from splitter.compare.rows import Row, Sheet
from splitter.compare.study import Study
from splitter.report import words

KINDS = 4
"""Kinds of operators that a sentence names."""


def reading(study: Study) -> Iterator[str]:
    """What the marks and columns mean."""
    front = "; + no other is both quicker and as good" if study.samples else ""
    yield f"* what `split` carries out{front}. Times are estimates of the rule files, not measured."
    best, chosen = study.rows[0], next(row for row in study.rows if row.chosen)
    if not best.chosen and best.target == chosen.target and best.options:
        yield (
            f"{' '.join(best.options)}: an estimated {best.total_ms:.2f} ms "
            f"instead of {chosen.total_ms:.2f} ms"
        )


def apart(study: Study) -> Iterator[str]:
    """What separates the first from the second."""
    if len(study.rows) < 2:
        return
    first, second = study.rows[:2]
    gain = second.total_ms - first.total_ms
    yield (
        f"The first, {named(first, study)}, is {words.milliseconds(gain)} quicker than the second, "
        f"{named(second, study)}:"
    )
    if first.target == second.target:
        yield from _moved(first, second, study.sheets[first.target])
    yield f"  {_costs(first, second)}"
    if first.measured and second.measured:
        yield f"  {_accuracy(first, second)}"


def named(row: Row, study: Study) -> str:
    """A candidate in a sentence."""
    return f"{row.name} ({row.target})" if len(study.targets) > 1 else row.name


def _moved(first: Row, second: Row, sheet: Sheet) -> Iterator[str]:
    """Units that are on another device, with what that costs and saves."""
    places = [{u: s.device for s in row.plan.segments for u in s.units} for row in (first, second)]
    units = [unit.name for unit in sheet.graph.units]
    for device, other in (("npu", "cpu"), ("cpu", "npu")):
        moved = [u for u in units if places[0][u] == device and places[1][u] == other]
        if not moved:
            continue
        npu = sum(sheet.unit_ms[unit][0] or 0.0 for unit in moved)
        cpu = sum(sheet.unit_ms[unit][1] for unit in moved)
        here, there = (npu, cpu) if device == "npu" else (cpu, npu)
        yield (
            f"  {words.counted(len(moved), 'unit')} on the {device.upper()} instead of the "
            f"{other.upper()} ({_kinds(moved, sheet)}): {words.milliseconds(here)} there instead "
            f"of {words.milliseconds(there)}"
        )
    if places[0] == places[1]:
        yield "  every unit is on the same device; the order of the segments differs"


def _kinds(units: Sequence[str], sheet: Sheet) -> str:
    counts = Counter(sheet.graph.unit[unit].op for unit in units)
    shown = ", ".join(f"{op} x {count}" for op, count in counts.most_common(KINDS))
    rest = len(counts) - KINDS
    return shown + (f" and {words.counted(rest, 'kind')} more" if rest > 0 else "")


def _costs(first: Row, second: Row) -> str:
    """The difference by kind of cost."""
    parts = (
        ("NPU", first.cost.npu_ms - second.cost.npu_ms),
        ("CPU", first.cost.cpu_ms - second.cost.cpu_ms),
        ("passing tensors", first.cost.transfer_ms - second.cost.transfer_ms),
        ("calls", first.cost.invoke_ms - second.cost.invoke_ms),
    )
    changes = ", ".join(f"{name} {ms:+.2f} ms" for name, ms in parts if abs(ms) >= 0.005)
    passed = first.boundary_bytes - second.boundary_bytes
    return f"{changes or 'no cost differs by 0.01 ms'}; {passed / 1e3:+.1f} kB passed on"


def _accuracy(first: Row, second: Row) -> str:
    one, other = first.measured, second.measured
    assert one is not None and other is not None
    if one.model == other.model:
        return "one integer model: the same outputs, bit for bit"
    return (
        f"{one.figure.name} {words.percent(one.figure.value)} and "
        f"{words.percent(other.figure.value)} ({words.counted(one.runs, 'run')}); "
        f"worst output off by {words.error(one.worst)} and {words.error(other.worst)}"
    )


def basis(study: Study) -> Iterator[str]:
    """On what the figures rest."""
    yield ("frames/s: frames enter as soon as the busier device is free; copies count for the CPU.")
    if study.samples is None:
        yield (
            "Accuracy was not measured: there was no --calibration, so the order is that of the "
            "estimate alone."
        )
        return
    models = len({row.measured.model for row in study.rows if row.measured})
    calibration = len(study.samples.calibration)
    runs = study.rows[0].measured.runs if study.rows[0].measured else 0
    seen = ", which calibration has seen too" if study.samples.shared else ", not seen before"
    yield (
        f"error: relative RMS of the worst output against float, {words.counted(runs, 'run')}"
        f"{seen}. {words.counted(models, 'integer model')} from one calibration on "
        f"{words.counted(calibration, 'sample')}."
    )
    if study.goal is not None:
        yield f"{study.figure_name} of the float model: {words.percent(study.goal)}."
