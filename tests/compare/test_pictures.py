"""The pictures: every candidate once and inside the frame, the chosen one marked, long bars cut."""

from __future__ import annotations

import re

import pytest

from splitter.compare.pictures import HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_bars, draw_pareto
from splitter.compare.rows import Figure, Measured, Row, SegmentRow, ranked
from splitter.plan import Cost, Plan, Segment


def candidates(*points: tuple[float, float]) -> tuple[Row, ...]:
    """Rows of (estimated ms, figure), the second one chosen."""
    rows = []
    for index, (ms, figure) in enumerate(points):
        cost = Cost(0.3 * ms, 0.6 * ms, 0.06 * ms, 0.04 * ms)
        plan = Plan(f"plan {index}", (Segment("npu", (f"u{index}",)),), {}, cost)
        rows.append(
            Row(
                rank=0,
                target="imx95",
                name=plan.name,
                kind="planner",
                options=(),
                chosen=False,
                segments=(SegmentRow("npu", 1, 5, 0.3 * ms), SegmentRow("cpu", 1, 5, 0.6 * ms)),
                npu_share=0.5,
                boundary=("t",),
                boundary_bytes=100,
                cost=cost,
                measured=Measured(str(index), 8, {"y": 0.1}, Figure("mAP", figure, 0.9), None),
                plan=plan,
            )
        )
    return ranked(rows, [rows[1].plan])


@pytest.mark.parametrize(
    "points",
    [
        ((3.0, 0.8), (5.0, 0.85), (36.0, 0.7), (3.01, 0.8)),
        ((1.0, 0.5), (1.0, 0.5)),
        ((0.002, 0.9), (900.0, 0.1), (5.0, 0.9)),
    ],
)
def test_every_candidate_is_a_point_inside_the_frame(
    points: tuple[tuple[float, float], ...],
) -> None:
    drawn = draw_pareto(candidates(*points), figure="mAP", goal=0.9)
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4.5"', drawn)
    assert len(dots) == len(points)
    for x, y in dots:
        assert LEFT <= float(x) <= WIDTH - RIGHT and TOP <= float(y) <= HEIGHT
    assert drawn.count('class="ring"') == 1
    assert "float 90.0 %" in drawn


def test_points_that_lie_together_share_a_label() -> None:
    drawn = draw_pareto(
        candidates((3.0, 0.8), (5.0, 0.85), (3.001, 0.8), (36.0, 0.7)), figure="mAP", goal=None
    )
    assert ">1, 2</text>" in drawn


def test_the_front_is_joined_and_what_is_beaten_is_not_on_it() -> None:
    rows = candidates((3.0, 0.8), (5.0, 0.85), (6.0, 0.82), (36.0, 0.7))
    assert [row.front for row in rows] == [True, True, False, False]
    (path,) = re.findall(
        r'<path d="([^"]+)" class="front"', draw_pareto(rows, figure="", goal=None)
    )
    assert path.count("V") == 1


def test_without_measurements_there_is_no_picture_of_accuracy() -> None:
    assert draw_pareto((), figure="", goal=None) == ""


def test_bars_hold_the_parts_in_order_and_long_ones_are_cut_off_and_say_so() -> None:
    drawn = draw_bars(candidates((3.0, 0.8), (5.0, 0.85), (900.0, 0.7)))
    assert drawn.count('class="gap"') == 1 and "900 ms" in drawn
    for x, width in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn):
        assert float(x) + float(width) <= WIDTH
    looks = re.findall(r'class="piece ([\w-]+)"', drawn)
    assert looks[:4] == ["npu-heavy", "cpu-heavy", "passing", "calls"]
