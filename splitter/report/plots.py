"""Small plots as SVG: float against integer, the error's histogram, detections on an image.

Decides scales and ticks. Made by hand because a plotting package would be larger than this tool.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from math import ceil, floor, log10

import numpy as np
from PIL import Image

from splitter.graph import Array
from splitter.report import words
from splitter.report.svg import Svg
from splitter.verify.detections import Detections, Example
from splitter.verify.tensors import TensorError

SIDE = 205.0
LEFT, BOTTOM, TOP = 46.0, 34.0, 22.0
BINS = 41
PICTURE = 260.0


def draw_scatter(error: TensorError, title: str, *, left: str, below: str) -> str:
    """candidate over reference with the line on which both are equal."""
    svg = Svg(LEFT + SIDE + 12)
    points = error.points
    low, high = _bounds(points)
    svg.label(LEFT, 14, title, kind="small bold")
    _axes(svg, (low, high), (low, high), left=left, below=below)
    svg.line(LEFT, TOP + SIDE, LEFT + SIDE, TOP, kind="ideal")
    scale = SIDE / (high - low)
    for reference, candidate in points:
        x, y = LEFT + (reference - low) * scale, TOP + SIDE - (candidate - low) * scale
        svg.dot(x, y, 1.6, kind="point")
    return svg.text(TOP + SIDE + BOTTOM, "plot", f"{title}: {left} over {below}")


def draw_histogram(error: TensorError, title: str) -> str:
    """How the differences are distributed, counted from the points kept of the tensor."""
    svg = Svg(LEFT + SIDE + 12)
    differences = error.points[:, 1] - error.points[:, 0] if len(error.points) else np.zeros(1)
    reach = float(np.quantile(np.abs(differences), 0.998)) or 1e-9
    counts, edges = np.histogram(np.clip(differences, -reach, reach), BINS, (-reach, reach))
    top = max(1, int(counts.max()))
    svg.label(LEFT, 14, title, kind="small bold")
    _axes(svg, (-reach, reach), (0, top), left="elements", below="integer minus float")
    step = SIDE / BINS
    for index, count in enumerate(counts):
        height = SIDE * int(count) / top
        span = f"{edges[index]:.3g} to {edges[index + 1]:.3g}: {int(count)}"
        x = LEFT + index * step + 0.5
        svg.box(x, TOP + SIDE - height, step - 1, height, kind="bar", title=span)
    return svg.text(TOP + SIDE + BOTTOM, "plot", f"{title}: histogram")


def draw_example(
    picture: Array, example: Example, *, size: tuple[float, float], names: Sequence[str]
) -> str:
    """One image with both sides' detections. size: width and height the boxes are in."""
    svg = Svg(PICTURE)
    height = PICTURE * picture.shape[0] / picture.shape[1]
    svg.image(0, 0, PICTURE, height, _data_uri(picture))
    scale = (PICTURE / size[0], height / size[1])
    left = {pair.left for pair in example.pairs}
    right = {pair.right for pair in example.pairs}
    _boxes(svg, example.reference, left, "float", scale, names)
    _boxes(svg, example.candidate, right, "integer", scale, names)
    lost, extra = len(example.reference) - len(left), len(example.candidate) - len(right)
    text = f"image {example.index}: {len(left)} of {len(example.reference)} found again"
    text += f", {lost} lost" if lost else ""
    text += f", {extra} extra" if extra else ""
    svg.label(0, height + 15, text, kind="small")
    return svg.text(height + 22, "example", text)


def _boxes(
    svg: Svg,
    found: Detections,
    paired: set[int],
    side: str,
    scale: tuple[float, float],
    names: Sequence[str],
) -> None:
    for row in range(len(found)):
        x0, y0, x1, y1 = (float(v) for v in found.boxes[row])
        label = int(found.classes[row])
        name = names[label] if label < len(names) else f"class {label}"
        title = f"{side}: {name} {found.scores[row]:.2f}"
        alone = "" if row in paired else " alone"
        box = (x0 * scale[0], y0 * scale[1], (x1 - x0) * scale[0], (y1 - y0) * scale[1])
        svg.box(*box, kind=f"found {side}{alone}", title=title)
        if alone or side == "float":
            svg.label(box[0] + 2, max(9.0, box[1] - 3), name, kind=f"tiny on-image{alone}")


def _data_uri(picture: Array) -> str:
    image = Image.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture)
    stream = BytesIO()
    if max(picture.shape[:2]) <= 160:
        image.save(stream, "PNG", optimize=False)
        kind = "png"
    else:
        image.save(stream, "JPEG", quality=85)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"


def _bounds(points: Array) -> tuple[float, float]:
    """One range for both axes with a little air; never empty."""
    if not len(points):
        return (-1.0, 1.0)
    low, high = float(points.min()), float(points.max())
    air = 0.04 * (high - low) or max(1e-6, abs(low) * 0.1)
    return low - air, high + air


def _axes(
    svg: Svg,
    across: tuple[float, float],
    up: tuple[float, float],
    *,
    left: str,
    below: str,
) -> None:
    svg.box(LEFT, TOP, SIDE, SIDE, kind="frame")
    for value in _ticks(*across):
        x = LEFT + (value - across[0]) / (across[1] - across[0]) * SIDE
        svg.line(x, TOP, x, TOP + SIDE, kind="grid")
        svg.label(x, TOP + SIDE + 13, _tick(value), kind="tiny middle dim")
    for value in _ticks(*up):
        y = TOP + SIDE - (value - up[0]) / (up[1] - up[0]) * SIDE
        svg.line(LEFT, y, LEFT + SIDE, y, kind="grid")
        svg.label(LEFT - 5, y + 3, _tick(value), kind="tiny end dim")
    svg.label(LEFT + SIDE / 2, TOP + SIDE + 28, below, kind="tiny middle")
    svg.label(10, TOP + SIDE / 2, left, kind="tiny middle", turn=-90)


def _ticks(low: float, high: float) -> list[float]:
    """Round values, four to eight of them."""
    raw = (high - low) / 5
    power = 10.0 ** floor(log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _tick(value: float) -> str:
    return words.big(value) if abs(value) >= 1e4 else f"{value:.4g}"
