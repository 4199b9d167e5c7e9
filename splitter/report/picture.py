"""The graph with its segments as one SVG: blocks top to bottom, units inside left to right.

Decides places and lines. Colors are CSS variables of the page, so light and dark share the picture.
Every unit is a box whose title (shown on hover) says what it is, where it sits and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from splitter.graph import Graph, Value
from splitter.report import words
from splitter.report.blocks import Block, group_blocks
from splitter.report.data import ReportData
from splitter.report.placement import Placement
from splitter.report.summary import BoundaryRow, PartRow, Summary
from splitter.report.svg import Svg

WIDTH = 1080.0
MARGIN = 110.0
"""Room on the right for the lines that pass over blocks."""
PAD = 12.0
DOT = "  \u00b7  "
SHORT = {
    "FullyConnected": "FC",
    "MatMul": "MatM",
    "LayerNormalization": "LN",
    "RMSNormalization": "RMS",
    "GroupNormalization": "GN",
    "InstanceNormalization": "IN",
    "Transpose": "Tran",
    "Reshape": "Resh",
    "Softmax": "Soft",
    "Concat": "Cat",
    "Add": "+",
    "Sub": "−",
    "Mul": "×",
    "Div": "÷",
    "Sigmoid": "Sigm",
    "GridSample": "Grid",
    "GatherElements": "GathE",
    "GatherND": "GathN",
    "ReduceMean": "Mean",
    "ReduceMax": "Max",
    "ReduceSum": "Sum",
}


@dataclass(frozen=True, slots=True)
class Size:
    """Boxes of a block: full, or small for a repeated one."""

    width: float
    height: float
    gap_x: float
    gap_y: float
    text: bool

    @property
    def column(self) -> float:
        return self.width + self.gap_x

    @property
    def lane(self) -> float:
        return self.height + self.gap_y


FULL = Size(33.0, 16.0, 9.0, 6.0, text=True)
SMALL = Size(13.0, 8.0, 4.0, 3.0, text=False)


@dataclass(frozen=True, slots=True)
class Placed:
    """A drawn block: top and bottom edge, and the middle of every unit's box."""

    top: float
    bottom: float
    centers: Mapping[str, tuple[float, float]]


def draw_graph(data: ReportData, summary: Summary) -> str:
    """The picture as SVG text."""
    segments = [
        [p for p in summary.placements if p.unit in set(segment.units)]
        for segment in data.plan.segments
    ]
    blocks = group_blocks(segments)
    svg = Svg(WIDTH)
    y = _values(svg, 8.0, "model inputs", [data.graph.values[n] for n in data.graph.inputs])
    placed: list[Placed] = []
    for index, segment in enumerate(data.plan.segments):
        if index:
            y = _handover(svg, y, [row for row in summary.boundary if index in row.readers])
        mine = [block for block in blocks if block.segment == index]
        y = _panel(svg, y, mine, _part_of(segment.units, summary), data.graph, blocks, placed)
    y = _values(svg, y + 22, "model outputs", [data.graph.values[n] for n in data.graph.outputs])
    _links(svg, blocks, placed, data.graph)
    return svg.text(y + 8, "graph", "The model's units and the device each one runs on")


def _part_of(units: Sequence[str], summary: Summary) -> PartRow | None:
    held = set(units)
    index = next((p.part for p in summary.placements if p.unit in held and p.part >= 0), -1)
    return summary.parts[index] if index >= 0 else None


def _values(svg: Svg, y: float, title: str, values: Sequence[Value]) -> float:
    """Inputs or outputs as one line of pills; returns the y below."""
    x = PAD
    for value in values:
        label = f"{words.shortened(value.name, 40)}  {value.dtype} {words.shape(value.shape)}"
        width = 16 + 6.1 * len(label)
        svg.box(x, y, width, 22, kind="value", radius=11, title=f"{title}: {value.name}")
        svg.label(x + width / 2, y + 15, label, kind="small middle")
        x += width + 10
    return y + 22


def _handover(svg: Svg, y: float, rows: Sequence[BoundaryRow]) -> float:
    """The border between two parts with every tensor that crosses it."""
    total = words.big(sum(row.bytes for row in rows), "B")
    svg.label(
        PAD, y + 24, f"{words.counted(len(rows), 'tensor')} handed over, {total}", kind="bold"
    )
    y += 32
    for row in rows:
        svg.arrow(PAD + 14, y + 3, PAD + 14, y + 18, kind="crossing")
        text = f"{row.dtype} {words.shape(row.shape)}{DOT}{words.big(row.bytes, 'B')}"
        title = f"{row.name}\n{text}\nscale {row.scale}, zero point {row.zero_point}"
        svg.label(PAD + 30, y + 15, words.shortened(row.name, 90), kind="small", title=title)
        svg.label(WIDTH - MARGIN, y + 15, text, kind="small end")
        y += 21
    return y + 8


def _panel(
    svg: Svg,
    y: float,
    blocks: Sequence[Block],
    part: PartRow | None,
    graph: Graph,
    every: Sequence[Block],
    placed: list[Placed],
) -> float:
    """One segment: a tinted panel with its blocks; returns the y below."""
    top = y + 14
    device = blocks[0].device
    slot = svg.reserve()
    count = sum(len(block.units) for block in blocks)
    heading = [device.upper(), words.counted(count, "unit")]
    if part:
        heading = [
            part.file,
            device.upper(),
            words.counted(part.units, "unit"),
            words.counted(part.operators, "operator"),
            f"{words.percent(part.mac_share)} of the MACs",
            f"{words.milliseconds(part.ms)} estimated",
        ]
    svg.label(PAD + 10, top + 20, DOT.join(heading), kind=f"bold {device}-text")
    y = top + 30
    for block in blocks:
        copy = every[block.repeats].title if block.repeats >= 0 else ""
        drawn = _block(svg, y, block, copy, graph)
        placed.append(drawn)
        y = drawn.bottom + 10
    svg.fill(slot, PAD - 6, top, WIDTH - MARGIN - PAD + 18, y - top, kind=f"panel {device}-panel")
    return y


def _block(svg: Svg, y: float, block: Block, copy: str, graph: Graph) -> Placed:
    size = SMALL if copy else FULL
    left, right = PAD + 6, WIDTH - MARGIN
    places, rows = _arrange(block, graph, size, right - left - 2 * PAD)
    slot = svg.reserve()
    like = [f"like {copy}"] if copy else []
    heading = DOT.join([block.title, words.counted(len(block.units), "unit"), *like])
    work = [words.big(block.macs, "MAC")] if block.macs else []
    cost = DOT.join([*work, words.milliseconds(block.ms)])
    svg.label(left + PAD, y + 15, heading, kind="small")
    svg.label(right - PAD, y + 15, cost, kind="small end dim")
    origin_x, origin_y = left + PAD, y + 23
    centers = {
        name: (origin_x + px + size.width / 2, origin_y + py + size.height / 2)
        for name, (px, py) in places.items()
    }
    for source, target, value in _inner_edges(block, graph):
        _inner_line(svg, centers[source], centers[target], size, value)
    for unit in block.units:
        px, py = places[unit.unit]
        _unit(svg, origin_x + px, origin_y + py, unit, size)
    bottom = origin_y + rows + 8
    svg.fill(slot, left, y, right - left, bottom - y, kind="block")
    return Placed(y, bottom, centers)


def _arrange(
    block: Block, graph: Graph, size: Size, width: float
) -> tuple[dict[str, tuple[float, float]], float]:
    """Column by depth, lane beside its first input's lane, rows wrapped; and the height needed."""
    inside = {unit.unit for unit in block.units}
    depth: dict[str, int] = {}
    lane: dict[str, int] = {}
    taken: set[tuple[int, int]] = set()
    for unit in block.units:
        sources = [s for s in _sources(unit.unit, graph) if s in inside and s in depth]
        depth[unit.unit] = max((depth[s] + 1 for s in sources), default=0)
        wanted = lane[sources[0]] if sources else 0
        lane[unit.unit] = _free_lane(taken, depth[unit.unit], wanted)
        taken.add((depth[unit.unit], lane[unit.unit]))
    columns = max(1, int(width // size.column))
    return _wrapped(depth, lane, columns, size)


def _wrapped(
    depth: Mapping[str, int], lane: Mapping[str, int], columns: int, size: Size
) -> tuple[dict[str, tuple[float, float]], float]:
    """Rows of at most `columns`; in each row the lanes that are not used are closed up."""
    places: dict[str, tuple[float, float]] = {}
    top = 0.0
    for row in range(max(depth.values()) // columns + 1):
        names = [name for name in depth if depth[name] // columns == row]
        used = sorted({lane[name] for name in names})
        for name in names:
            x = depth[name] % columns * size.column
            places[name] = (x, top + used.index(lane[name]) * size.lane)
        top += len(used) * size.lane + size.gap_y
    return places, top - size.gap_y


def _free_lane(taken: set[tuple[int, int]], column: int, wanted: int) -> int:
    lane = wanted
    while (column, lane) in taken:
        lane += 1
    return lane


def _sources(name: str, graph: Graph) -> Iterator[str]:
    """The units that make a unit's inputs."""
    for value in graph.unit[name].inputs:
        producer = graph.producers.get(value)
        if producer is not None:
            yield producer.name


def _inner_edges(block: Block, graph: Graph) -> Iterator[tuple[str, str, str]]:
    inside = {unit.unit for unit in block.units}
    for unit in block.units:
        for value in dict.fromkeys(graph.unit[unit.unit].inputs):
            producer = graph.producers.get(value)
            if producer is not None and producer.name in inside:
                yield producer.name, unit.unit, value


def _inner_line(
    svg: Svg, start: tuple[float, float], end: tuple[float, float], size: Size, value: str
) -> None:
    x0, x1 = start[0] + size.width / 2, end[0] - size.width / 2
    if x1 < x0:  # wrapped into the next row: a stub on both sides
        svg.line(x0, start[1], x0 + size.gap_x, start[1], kind="wire dashed")
        svg.line(x1 - size.gap_x, end[1], x1, end[1], kind="wire dashed")
        return
    bend = min(10.0, (x1 - x0) / 2)
    svg.path(
        f"M{x0:.1f} {start[1]:.1f}C{x0 + bend:.1f} {start[1]:.1f} {x1 - bend:.1f} {end[1]:.1f} "
        f"{x1:.1f} {end[1]:.1f}",
        kind="wire",
    )


def _unit(svg: Svg, x: float, y: float, unit: Placement, size: Size) -> None:
    weight = "heavy" if unit.macs else "light" if unit.operators else "none"
    kind = f"unit {unit.device}-{weight}"
    if unit.reasons:
        kind += " refused"
    svg.box(x, y, size.width, size.height, kind=kind, radius=3, title=unit_title(unit))
    if size.text:
        label = SHORT.get(unit.op, unit.op[:5])
        ink = " on-heavy" if weight == "heavy" else ""
        svg.label(x + size.width / 2, y + size.height / 2 + 3.2, label, kind=f"tiny middle{ink}")


def unit_title(unit: Placement) -> str:
    """What hovering over a unit shows."""
    lines = [f"{unit.op}  {unit.unit}", f"on the {unit.device.upper()}"]
    if unit.operators:
        codes = ", ".join(unit.operators[:8]) + (" …" if len(unit.operators) > 8 else "")
        cost = f"{words.milliseconds(unit.ms)}, {words.big(unit.macs, 'MAC')}"
        lines += [f"{codes} ({unit.lowering})", cost]
    else:
        lines.append("needs no operator")
    if unit.nodes and unit.nodes != (unit.unit,):
        lines.append("ONNX nodes: " + ", ".join(unit.nodes))
    lines += [str(reason) for reason in unit.reasons]
    if unit.why and not unit.reasons:
        lines.append(f"why: {unit.why}")
    if unit.proxies:
        lines.append("accepted on rules of a sibling NPU (proxy)")
    return "\n".join(lines)


def _links(svg: Svg, blocks: Sequence[Block], placed: Sequence[Placed], graph: Graph) -> None:
    """Lines between blocks: straight to the next one, around on the right over others."""
    home = {unit.unit: index for index, block in enumerate(blocks) for unit in block.units}
    bundles: dict[tuple[int, int], list[str]] = {}
    for source, target, value in graph.edges():
        pair = (home[source], home[target])
        if pair[0] != pair[1]:
            bundles.setdefault(pair, []).append(value)
    right = WIDTH - MARGIN
    for (first, last), values in sorted(bundles.items()):
        crossing = blocks[first].segment != blocks[last].segment
        kind = "crossing" if crossing else "link"
        title = _link_title(blocks[first], blocks[last], dict.fromkeys(values), graph)
        if last == first + 1 and not crossing:
            middle = PAD + (right - PAD) / 2
            svg.arrow(middle, placed[first].bottom, middle, placed[last].top, kind, title=title)
            continue
        start, end = placed[first].bottom - 8, placed[last].top + 8
        reach = right + min(MARGIN - 14, 14 + 7 * abs(last - first))
        svg.path(
            f"M{right:.1f} {start:.1f}C{reach:.1f} {start:.1f} {reach:.1f} {end:.1f} "
            f"{right + 4:.1f} {end:.1f}",
            kind=kind,
            title=title,
            arrow=True,
        )


def _link_title(first: Block, last: Block, values: Iterable[str], graph: Graph) -> str:
    lines = [f"{first.title} to {last.title}"]
    for name in values:
        value = graph.values[name]
        lines.append(f"{name} {value.dtype} {words.shape(value.shape)}")
    return "\n".join(lines)
