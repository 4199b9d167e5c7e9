"""The report on the terminal: one short table, a few lines, and whether it may be trusted.

Decides what is left out: everything stands in report.html. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splitter.report import words
from splitter.report.facts import (
    decision_facts,
    more_parts,
    onnx_facts,
    precision_fact,
    stage_facts,
    width_facts,
)
from splitter.report.page import printed
from splitter.report.placement import PlacementGroup, shortened_grounds
from splitter.report.summary import PartRow, Summary

DEVICE_STYLE = {"npu": "green", "cpu": "yellow"}
LEVEL_STYLE = {
    "trusted": "bold green",
    "trusted with reservations": "bold yellow",
    "NOT trusted": "bold red",
}
GROUPS = 6
TENSORS = 6


def to_text(summary: Summary, *, color: bool = False, width: int = 100) -> str:
    """The whole report for a terminal of `width` columns, ANSI colors only with `color`."""
    return printed(_blocks(summary, width), color=color, width=width)


def _blocks(summary: Summary, width: int) -> Iterator[RenderableType]:
    yield Text(f"{summary.model} for {summary.target_title}", style="bold")
    if summary.random:
        warning = " CALIBRATED WITH RANDOM NUMBERS: no figure below means anything "
        yield Text(warning, style="bold white on red")
    yield ""
    yield _parts(summary)
    yield ""
    yield from _boundary(summary, width)
    yield from _cpu(summary)
    yield _figures(summary)
    yield ""
    yield Text(summary.line, style=LEVEL_STYLE[summary.level])
    wider = summary.comparison.wider
    if wider and wider.helps:
        yield Text(f"Better {wider}", style="cyan")


def _parts(summary: Summary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name, left in (("part", True), ("on", True), ("operators", False), ("MACs", False)):
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for name in ("share", "weights", "estimated"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in summary.parts:
        table.add_row(*_part_cells(part), style=DEVICE_STYLE[part.device])
    behind = summary.onnx_part
    if behind:
        cells = (behind.file, "CPU", f"{behind.operators:,}", "", "", words.big(behind.bytes, "B"))
        table.add_row(*cells, "unknown", style=DEVICE_STYLE["cpu"])
    return table


def _part_cells(part: PartRow) -> tuple[str, ...]:
    return (
        part.file,
        part.device.upper(),
        f"{part.operators:,}",
        words.big(part.macs),
        words.percent(part.mac_share),
        words.big(part.constant_bytes, "B"),
        words.milliseconds(part.ms),
    )


def _boundary(summary: Summary, width: int) -> Iterator[RenderableType]:
    rows = summary.boundary
    if not rows:
        return
    total = words.big(summary.boundary_bytes, "B")
    yield f"Handed from part to part: {words.counted(len(rows), 'tensor')}, {total}"
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for column in range(3):
        table.add_column(no_wrap=True, justify="right" if column == 2 else "left")
    for row in rows[:TENSORS]:
        name = words.shortened(row.name, max(20, width - 45))
        table.add_row(
            "  " + name, f"{row.dtype} {words.shape(row.shape)}", words.big(row.bytes, "B")
        )
    yield table
    if len(rows) > TENSORS:
        yield f"  and {len(rows) - TENSORS} more"
    yield ""


def _cpu(summary: Summary) -> Iterator[RenderableType]:
    refused = [group for group in summary.cpu_groups if group.grounds]
    others = [group for group in summary.cpu_groups if not group.grounds]
    if refused:
        yield f"Kept off the NPU by the rules of {summary.target}, most time first:"
        yield _refused(refused[:GROUPS])
        if len(refused) > GROUPS:
            yield f"  and {_total(refused[GROUPS:])} more; report.html has all reasons"
    for why in dict.fromkeys(group.why for group in others):
        yield f"{_total([group for group in others if group.why == why])} on the CPU: {why}."
    yield ""


def _refused(groups: Sequence[PlacementGroup]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    for group in groups:
        grounds = shortened_grounds(group.grounds)
        table.add_row(f"  {group.op} x {len(group.units)}", words.milliseconds(group.ms), grounds)
    return table


def _total(groups: Sequence[PlacementGroup]) -> str:
    units = words.counted(sum(len(group.units) for group in groups), "unit")
    return f"{units} ({words.milliseconds(sum(group.ms for group in groups))})"


def _figures(summary: Summary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for name, text in _figure_rows(summary):
        table.add_row(name, text)
    return table


def _figure_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.parts:
        yield from _integer_rows(summary)
    else:
        yield "time", "unknown: nothing runs as TFLite; glue/run.py --bench measures it"
    for fact in stage_facts(summary):
        yield fact
    yield from onnx_facts(summary)
    for fact in decision_facts(summary.comparison):
        yield fact
    for note in summary.notes:
        yield "note", note


def _integer_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Time, precision and rules of the TFLite parts."""
    best = summary.candidates[0]
    others = [row for row in summary.candidates[1:] if row.segments <= best.segments]
    beside = "".join(f"; {row.name}: {words.milliseconds(row.total_ms)}" for row in others)
    without = ", without the ONNX part" if summary.onnx_part else ""
    estimate = f"{words.milliseconds(best.total_ms)} estimated, not measured{without}{beside}"
    yield "time", estimate
    for line in more_parts(summary):
        yield "more parts", line
    yield "precision", precision_fact(summary)
    yield from width_facts(summary)
    npu = sum(p.device == "npu" for p in summary.placements)
    if npu:
        share = f"{summary.proxies} of {words.counted(npu, 'unit')} on the NPU"
        yield "rules", f"{share} rest on rules of a sibling NPU (proxies)"
