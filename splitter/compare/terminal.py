"""The comparison on the terminal: a ranked table, and what separates the first from the second.

Decides which columns there are. Everything else stands in compare.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from splitter.compare.rows import Row
from splitter.compare.study import Study
from splitter.compare.telling import apart, basis, reading
from splitter.report import words
from splitter.report.page import printed

NARROWEST = 18
"""Letters of a candidate's name, at least."""

SPARED = ("pass", "passed", "parts", "CPU", "NPU", "frames/s")
"""Figures that a narrow terminal goes without, in this order; a number cut short is none."""


def to_text(study: Study, *, color: bool = False, width: int = 100) -> str:
    """The comparison for a terminal of `width` columns, ANSI colors only with `color`."""
    return printed(_blocks(study, width), color=color, width=width)


def _blocks(study: Study, width: int) -> Iterator[RenderableType]:
    titles = ", ".join(target.title for target in study.targets)
    yield Text(f"{study.model.path.name} for {titles}: {len(study.rows)} candidates", style="bold")
    if study.random:
        warning = " CALIBRATED WITH RANDOM NUMBERS: no error below means anything "
        yield Text(warning, style="bold white on red")
    yield ""
    table, spared = _table(study, width)
    yield table
    if spared:
        yield Text(f"Too narrow for {', '.join(spared)}: see compare.html.", style="dim")
    yield ""
    for line in (*reading(study), "", *apart(study), "", *basis(study)):
        yield Text(line)


def _table(study: Study, width: int) -> tuple[Table, Sequence[str]]:
    """The table, and the columns that found no room."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    several = len(study.targets) > 1
    edge = ("", "", *(["target"] if several else []))
    for place, name in enumerate((*edge, "candidate")):
        table.add_column(name, justify="left" if place else "right", no_wrap=True)
    lines = [values(row, study) for row in study.rows]
    heads = [(str(row.rank), mark(row), *([row.target] if several else [])) for row in study.rows]
    room = width - sum(map(_widest, zip(edge, *heads, strict=True))) - 1
    texts = zip(columns(study), *lines, strict=True)
    wide = {column[0]: _widest(column) for column in texts}
    spared = _spared(wide, room - NARROWEST)
    kept = [place for place, name in enumerate(wide) if name not in spared]
    for name in wide:
        if name not in spared:
            table.add_column(name, justify="right", no_wrap=True)
    left = max(NARROWEST, room - sum(wide[name] for name in wide if name not in spared))
    for row, head, line in zip(study.rows, heads, lines, strict=True):
        cells = (*head, title(row, left), *(line[place] for place in kept))
        table.add_row(*cells, style="bold" if row.chosen else "")
    return table, spared


def _widest(texts: Iterable[str]) -> int:
    """Columns that these take in a table, with the gap behind them."""
    return max(map(len, texts)) + 1


def _spared(wide: Mapping[str, int], room: int) -> Sequence[str]:
    """The columns to leave out, so that the others fit into the room."""
    spared: list[str] = []
    for name in SPARED:
        if sum(wide.values()) - sum(wide[one] for one in spared) <= room:
            break
        spared.append(name)
    return [name for name in wide if name in spared]


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
