"""The comparison in words: how to read it, what separates the first from the second, its basis.

Decides the sentences. Which plans and figures is the rows' matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from splitter.compare.rows import Row, Sheet
from splitter.compare.study import Study
from splitter.partition.catalogue import EVERYTHING, FIRST_REFUSED
from splitter.report import words
from splitter.verify import Decisions, DetectionDecisions
from splitter.verify.classification import Answers
from splitter.verify.statistics import Share

USUAL = {
    EVERYTHING: f"{EVERYTHING}: whatever the NPU takes is there, in as many parts as that makes",
    FIRST_REFUSED: f"{FIRST_REFUSED}: what the file has before the first operator it refuses",
}
KINDS = 4
"""Kinds of operators that a sentence names."""
LEAST = 0.001
"""Milliseconds that are told as a difference."""
NAME = 48
"""Letters of a unit's name."""


def reading(study: Study) -> Iterator[str]:
    """What the marks and columns mean."""
    front = "; + no other is both quicker and as good" if study.samples else ""
    yield (
        f"* what `split` carries out{front}. Times in ms are estimates of the rule files, not "
        "measured."
    )
    names = {name for row in study.rows for name in (row.name, *row.also)}
    told = [says for name, says in USUAL.items() if name in names]
    if told:
        yield f"{'; '.join(told)}."
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
    much = f"{words.milliseconds(gain)} quicker than" if gain >= LEAST else "as quick as"
    yield f"The first, {named(first, study)}, is {much} the second, {named(second, study)}:"
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
            f"{other.upper()} ({_kinds(moved, sheet)}; {_span(moved)}): "
            f"{words.milliseconds(here)} there instead of {words.milliseconds(there)}"
        )
    if places[0] == places[1]:
        yield "  every unit is on the same device; the order of the segments differs"


def _kinds(units: Sequence[str], sheet: Sheet) -> str:
    counts = Counter(sheet.graph.unit[unit].op for unit in units)
    shown = ", ".join(f"{op} x {count}" for op, count in counts.most_common(KINDS))
    rest = len(counts) - KINDS
    return shown + (f" and {words.counted(rest, 'kind')} more" if rest > 0 else "")


def _span(units: Sequence[str]) -> str:
    """The first and the last, in the order in which they run."""
    first, last = (words.shortened(name, NAME) for name in (units[0], units[-1]))
    return first if len(units) == 1 else f"{first} to {last}"


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
    sign = "-" if passed < 0 else "+"
    handed = f"; {sign}{words.big(abs(passed), 'B')} passed on" if passed else ""
    return f"{changes or 'no cost differs by 0.01 ms'}{handed}"


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
    if study.left:
        yield (
            f"{words.counted(study.left, 'operator')} stay ONNX behind every candidate: in no time "
            "and no error here."
        )
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
    if study.decides and study.goal is not None:
        head = f"{study.head}: " if study.head != study.figure_name else ""
        yield f"{head}{study.figure_name}; of the float model {words.percent(study.goal)}."
    if chance(study):
        yield chance(study)


def chance(study: Study) -> str:
    """How much a figure may differ by chance on so few decisions; "" where none are counted."""
    if not study.decides:
        return ""
    shares = [_share(row.measured.decisions) for row in study.rows if row.chosen and row.measured]
    for share in shares:
        if share is not None and share.total:
            reach = max(share.high - share.share, share.share - share.low)
            return (
                f"On {words.counted(share.total, 'decision')} of the float model, differences "
                f"under about {100 * reach:.1f} points may be chance."
            )
    return ""


def _share(decisions: Decisions | None) -> Share | None:
    if isinstance(decisions, DetectionDecisions):
        return decisions.found
    return decisions.flips if isinstance(decisions, Answers) else None
