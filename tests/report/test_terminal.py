"""The terminal: short, plain without color, the verdict in sight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from splitter.report import Summary, to_text
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
