"""The terminal: short, plain without color, the verdict in sight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from splitter.plan import Cost
from splitter.report import Summary, to_text
from splitter.report.summary import CandidateRow
from splitter.verify import Wider


def test_parts_reasons_and_the_verdict_are_shown(summary: Summary) -> None:
    text = to_text(summary)
    for part in summary.parts:
        assert part.file in text
    assert "SIN" in text
    assert "equal bit for bit" in text
    assert " ".join(text.split()).endswith(summary.line)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_wider_than_the_terminal(summary: Summary, width: int) -> None:
    assert max(len(line) for line in to_text(summary, width=width).splitlines()) <= width


def test_escape_codes_appear_only_when_color_is_asked_for(summary: Summary) -> None:
    assert "\x1b" not in to_text(summary)
    assert "\x1b" in to_text(summary, color=True)


def test_random_calibration_is_shouted(summary: Summary) -> None:
    assert "RANDOM NUMBERS" in to_text(replace(summary, random=True)).splitlines()[1]


def test_it_fits_on_a_screen(summary: Summary) -> None:
    assert len(to_text(summary).splitlines()) <= 45


def test_a_gain_of_sixteen_bits_is_told(summary: Summary) -> None:
    wider = Wider("--int16 auto", "mAP50-95", 0.80, 0.83, 32, goal=0.84)
    comparison = replace(summary.comparison, wider=wider)
    text = " ".join(to_text(replace(summary, comparison=comparison)).split())
    assert "with --int16 auto: mAP50-95 83.0 % instead of 80.0 % (+3.0 points, 32 runs)" in text
    useless = replace(comparison, wider=replace(wider, then=0.80))
    assert "--int16" not in to_text(replace(summary, comparison=useless))


def test_more_parts_are_told_where_each_saves_its_share(summary: Summary) -> None:
    def row(segments: int, total: float) -> CandidateRow:
        return CandidateRow("x", 1, 1, segments, Cost(total, 0.0, 0.0, 0.0), total)

    several = (row(2, 5.54), row(3, 3.03), row(5, 3.01), row(1, 36.0))
    made = replace(summary, candidates=several)
    assert [one.segments for one in made.more] == [3]
    text = " ".join(to_text(made).split())
    assert "3 parts would take an estimated 3.03 ms instead of 5.54 ms (--max-segments 3)" in text
    assert "more parts" not in to_text(replace(summary, candidates=(row(2, 3.1), row(3, 3.09))))
