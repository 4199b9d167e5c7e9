"""The comparison on the terminal: a ranked table, and what separates the first from the second.

Decides which columns there are. Everything else stands in compare.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from splitter.compare.rows import Row
from splitter.compare.study import Study
from splitter.compare.telling import apart, basis, reading
from splitter.report import words

NARROWEST, EDGE, TARGET = 18, 9, 12
"""Columns: of the shortest name, of rank and mark, of a target's name."""


def to_text(study: Study, *, color: bool = False, width: int = 100) -> str:
    """The comparison for a terminal of `width` columns, ANSI colors only with `color`."""
    stream = StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    for block in _blocks(study, width):
        console.print(block)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _blocks(study: Study, width: int) -> Iterator[RenderableType]:
    titles = ", ".join(target.title for target in study.targets)
    yield Text(f"{study.model.path.name} for {titles}: {len(study.rows)} candidates", style="bold")
    if study.random:
        warning = " CALIBRATED WITH RANDOM NUMBERS: no error below means anything "
        yield Text(warning, style="bold white on red")
    yield ""
    yield _table(study, width)
    yield ""
    for line in (*reading(study), "", *apart(study), "", *basis(study)):
        yield Text(line)


def _table(study: Study, width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    several = len(study.targets) > 1
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    if several:
        table.add_column("target", no_wrap=True)
    table.add_column("candidate", no_wrap=True)
    for name in columns(study):
        table.add_column(name, justify="right", no_wrap=True)
    lines = [values(row, study) for row in study.rows]
    fixed = [max(map(len, column)) + 1 for column in zip(columns(study), *lines, strict=True)]
    room = max(NARROWEST, width - sum(fixed) - EDGE - (TARGET if several else 0))
    for row, line in zip(study.rows, lines, strict=True):
        cells = [str(row.rank), mark(row), *([row.target] if several else [])]
        table.add_row(*cells, title(row, room), *line, style="bold" if row.chosen else "")
    return table


def title(row: Row, room: int) -> str:
    """The name in so many columns; of a cut the end tells most."""
    if row.kind in ("block", "cut") or len(row.name) <= room:
        return words.shortened(row.name, room)
    return row.name[: room - 1] + "…"


def columns(study: Study) -> Sequence[str]:
    """Heads of the figures of a row; times in ms."""
    always = ("parts", "on NPU", "passed", "NPU", "pass", "CPU", "total", "frames/s")
    if study.samples is None:
        return always
    return (*always, "error", *([study.head] if study.decides else []))


def mark(row: Row) -> str:
    """`*` the plan that `split` carries out, `+` on the Pareto front."""
    return ("*" if row.chosen else "") + ("+" if row.front else "")


def values(row: Row, study: Study) -> tuple[str, ...]:
    """The figures of a row, as many as `columns`."""
    cost = row.cost
    estimated = (
        str(len(row.segments)),
        words.percent(row.npu_share),
        words.big(row.boundary_bytes, "B"),
        f"{cost.npu_ms + cost.invoke_ms:.2f}",
        f"{cost.transfer_ms:.2f}",
        f"{cost.cpu_ms:.2f}",
        f"{row.total_ms:.2f}",
        f"{row.frames:,.0f}" if row.frames >= 100 else f"{row.frames:.3g}",
    )
    if row.measured is None:
        return estimated
    figure = words.percent(row.measured.figure.value)
    return (*estimated, words.error(row.measured.worst), *([figure] if study.decides else []))
