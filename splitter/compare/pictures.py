"""Two pictures of a comparison as SVG: accuracy over latency, and what the time is spent on.

Decides scales and labels. Looks come from the page's CSS classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from splitter.compare.rows import Row
from splitter.report import words
from splitter.report.svg import Svg

WIDTH, HEIGHT = 1060.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 24.0, 16.0, 46.0
SPREAD = 6.0
"""From this ratio of slowest to quickest on, time has a logarithmic scale."""
NAME, BAR, TOTAL = 330.0, 20.0, 84.0
LONGEST = 3.0
"""Bars end at so many times the chosen plan's time; what is longer is cut off and says so."""
LABELED, NEAR = 5, 16.0
"""Ranks that are written beside their points; pixels within which points share a label."""


class _Axis:
    """A scale from values to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool) -> None:
        self._low, self._high = (log10(low), log10(high)) if log else (low, high)
        self._start, self._end, self._log = start, end, log

    def at(self, value: float) -> float:
        place = log10(value) if self._log else value
        share = (place - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Round values."""
        if self._log:
            powers = range(floor(self._low), ceil(self._high) + 1)
            every = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            return [v for v in every if self._low <= log10(v) <= self._high]
        raw = (self._high - self._low) / 6
        power = 10.0 ** floor(log10(raw))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
        first, last = ceil(self._low / step - 1e-9), floor(self._high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def draw_pareto(rows: Sequence[Row], *, figure: str, goal: float | None) -> str:
    """Each measured candidate by its estimated time and its figure; the front is joined."""
    shown = [(row, row.measured.figure.value) for row in rows if row.measured]
    if not shown:
        return ""
    times = [row.total_ms for row, _ in shown]
    heights = [value for _, value in shown] + ([] if goal is None else [goal])
    air = 0.12 * (max(heights) - min(heights)) or 0.01
    log = max(times) > SPREAD * min(times)
    low, high = (min(times) / 1.15, max(times) * 1.15) if log else _padded(times)
    across = _Axis(low, high, LEFT, WIDTH - RIGHT, log=log)
    up = _Axis(min(heights) - air, max(heights) + air, HEIGHT - BOTTOM, TOP, log=False)
    svg = Svg(WIDTH)
    _grid(svg, across, up, below=f"estimated ms a frame{', logarithmic' if log else ''}")
    svg.label(14, (TOP + HEIGHT - BOTTOM) / 2, figure, kind="small middle", turn=-90)
    if goal is not None:
        y = up.at(goal)
        svg.line(LEFT, y, WIDTH - RIGHT, y, kind="ideal")
        svg.label(WIDTH - RIGHT - 4, y - 4, f"float {words.percent(goal)}", kind="tiny end dim")
    _front(svg, [(row, value) for row, value in shown if row.front], across, up)
    spots = [(row, across.at(row.total_ms), up.at(value)) for row, value in shown]
    for row, x, y in sorted(spots, key=lambda spot: spot[0].chosen):
        _point(svg, row, x, y, figure)
    _numbers(svg, [spot for spot in spots if _labeled(spot[0])])
    return svg.text(HEIGHT, "pareto", f"{figure} over estimated time of {len(shown)} candidates")


def _padded(values: Sequence[float]) -> tuple[float, float]:
    air = 0.06 * (max(values) - min(values)) or 0.1 * max(values) or 1.0
    return max(0.0, min(values) - air), max(values) + air


def _grid(svg: Svg, across: _Axis, up: _Axis, *, below: str) -> None:
    svg.box(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, kind="frame")
    for value in across.ticks():
        x = across.at(value)
        svg.line(x, TOP, x, HEIGHT - BOTTOM, kind="grid")
        svg.label(x, HEIGHT - BOTTOM + 15, f"{value:.4g}", kind="small middle dim")
    for value in up.ticks():
        y = up.at(value)
        svg.line(LEFT, y, WIDTH - RIGHT, y, kind="grid")
        svg.label(LEFT - 6, y + 4, words.percent(value), kind="small end dim")
    svg.label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, below, kind="small middle")


def _front(svg: Svg, pairs: Sequence[tuple[Row, float]], across: _Axis, up: _Axis) -> None:
    """Steps along the front: so good, from this time on."""
    x = y = 0.0
    path = ""
    for row, value in sorted(pairs, key=lambda pair: pair[0].total_ms):
        here, there = across.at(row.total_ms), up.at(value)
        path += f"M{here:.1f} {there:.1f}" if not path else f"L{here:.1f} {y:.1f}V{there:.1f}"
        x, y = here, there
    if path and x < WIDTH - RIGHT:
        svg.path(f"{path}H{WIDTH - RIGHT:.1f}", kind="front")


def _point(svg: Svg, row: Row, x: float, y: float, figure: str) -> None:
    measured = row.measured
    assert measured is not None
    said = (
        f"{row.rank}. {row.name}: {words.milliseconds(row.total_ms)}, {figure} "
        f"{words.percent(measured.figure.value)}"
    )
    if row.chosen:
        svg.dot(x, y, 9, kind="ring")
    svg.dot(x, y, 4.5, kind=f"candidate {row.kind}")
    svg.box(x - 8, y - 8, 16, 16, kind="touch", title=said)


def _labeled(row: Row) -> bool:
    return row.rank <= LABELED or row.chosen or row.front


def _numbers(svg: Svg, spots: Sequence[tuple[Row, float, float]]) -> None:
    """Ranks beside the points; points that lie together share a label."""
    groups: list[list[tuple[Row, float, float]]] = []
    for spot in sorted(spots, key=lambda spot: spot[1]):
        near = [g for g in groups if spot[1] - g[-1][1] < NEAR and abs(spot[2] - g[-1][2]) < NEAR]
        (near[0].append(spot) if near else groups.append([spot]))
    for group in groups:
        ranks = ", ".join(str(row.rank) for row, _, _ in group)
        bold = any(row.chosen for row, _, _ in group)
        x, y = group[-1][1] + 9, min(y for _, _, y in group) - 8
        svg.label(x, y, ranks, kind="small bold" if bold else "small")


def draw_bars(rows: Sequence[Row]) -> str:
    """A bar for each candidate: its segments in order, then passing tensors and calls."""
    chosen = next((row for row in rows if row.chosen), rows[0])
    longest = max(row.total_ms for row in rows)
    limit = min(longest, max(LONGEST * chosen.total_ms, 2 * rows[0].total_ms))
    scale = (WIDTH - NAME - TOTAL) / limit
    svg = Svg(WIDTH)
    for index, row in enumerate(rows):
        _bar(svg, row, index * (BAR + 6) + 4, scale, limit)
    says = f"estimated time of {len(rows)} candidates, by what it is spent on"
    return svg.text(len(rows) * (BAR + 6) + 6, "bars", says)


def _bar(svg: Svg, row: Row, y: float, scale: float, limit: float) -> None:
    weight = " bold" if row.chosen else ""
    name = f"{row.rank}. {words.shortened(row.name, 44)}"
    svg.label(NAME - 10, y + 14, name, kind=f"small end{weight}", title=row.name)
    x, right = NAME, NAME + limit * scale
    for kind, ms, said in _pieces(row):
        width = min(ms * scale, right - x)
        if width > 0:
            svg.box(x, y, width, BAR, kind=kind, title=f"{said}: {words.milliseconds(ms)}")
        x += max(width, 0.0)
    total = words.milliseconds(row.total_ms)
    if row.total_ms > limit * 1.0001:
        svg.path(f"M{right - 9:.1f} {y - 1:.1f}l5 {BAR + 2:.1f}h4l-5 -{BAR + 2:.1f}z", kind="gap")
    svg.label(min(x, right) + 6, y + 14, total, kind=f"small{weight}")


def _pieces(row: Row) -> list[tuple[str, float, str]]:
    """(look, ms, words) in the order in which they are drawn."""
    pieces = [
        (
            f"piece {segment.device}-heavy",
            segment.ms,
            f"part {index}, {segment.device.upper()}, {words.counted(segment.units, 'unit')}",
        )
        for index, segment in enumerate(row.segments)
    ]
    pieces.append(("piece passing", row.cost.transfer_ms, "passing tensors"))
    pieces.append(("piece calls", row.cost.invoke_ms, "calls of NPU parts"))
    return pieces
