"""Plots that hold whatever the numbers are."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from splitter.graph import Array
from splitter.report.plots import draw_example, draw_histogram, draw_scatter
from splitter.verify.detections import Detections, Example, Pair
from splitter.verify.tensors import TensorMeter

SVG = "{http://www.w3.org/2000/svg}"


def drawn(reference: Array, candidate: Array) -> tuple[ElementTree.Element, ElementTree.Element]:
    meter = TensorMeter("y")
    meter.add(reference, candidate)
    error = meter.result()
    scatter = draw_scatter(error, "y", left="integer", below="float")
    return ElementTree.fromstring(scatter), ElementTree.fromstring(draw_histogram(error, "y"))


@pytest.mark.parametrize(
    "reference",
    [np.zeros(0), np.zeros(4), np.full(3, -7.5), np.array([1e-30, 2e-30]), np.array([-1e9, 1e9])],
    ids=["empty", "zero", "constant", "tiny", "huge"],
)
@pytest.mark.parametrize("change", [0.0, 1e-3])
def test_any_range_can_be_drawn(reference: Array, change: float) -> None:
    for picture in drawn(reference, reference + change):
        assert "nan" not in ElementTree.tostring(picture, encoding="unicode")


def test_every_point_is_a_dot_inside_the_frame() -> None:
    x = np.random.default_rng(0).standard_normal(80)
    scatter, histogram = drawn(x, x + 0.1)
    dots = scatter.findall(f"{SVG}circle")
    frame = scatter.find(f"{SVG}rect")
    assert frame is not None and len(dots) == 80
    for dot in dots:
        for axis, start, length in (("cx", "x", "width"), ("cy", "y", "height")):
            offset = float(dot.attrib[axis]) - float(frame.attrib[start])
            assert 0 <= offset <= float(frame.attrib[length])
    counts = [title.text or "" for title in histogram.iter(f"{SVG}title")]
    assert sum(int(text.split(": ")[1]) for text in counts) == 80


@pytest.mark.parametrize("channels", [1, 3])
def test_lost_and_extra_detections_stand_out(channels: int) -> None:
    box = np.array([[1.0, 1, 5, 5]])
    one = Detections(box, np.array([0.9]), np.array([0]))
    other = Detections(box + 3, np.array([0.8]), np.array([1]))
    picture = np.zeros((8, 8, channels), np.uint8)
    apart = draw_example(picture, Example(3, one, other, ()), size=(8, 8), names=("cat",))
    assert "0 of 1 found again, 1 lost, 1 extra" in apart
    assert 'class="found float alone"' in apart and 'class="found integer alone"' in apart
    assert "class 1" in apart
    pair = draw_example(picture, Example(3, one, one, (Pair(0, 0, 1.0),)), size=(8, 8), names=())
    assert "alone" not in pair and "1 of 1 found again" in pair
