"""Numbers as people read them."""

from __future__ import annotations

import pytest

from splitter.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999_600, "1.00 MB"),
        (1234, "1.23 kB"),
        (15_600_000_000, "15.6 GB"),
    ],
)
def test_big_numbers_have_three_figures(value: float, text: str) -> None:
    assert words.big(value, "B") == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 ms"), (0.0004, "<0.001 ms"), (0.02, "0.02 ms"), (149.3, "149 ms")]
)
def test_times_are_short(value: float, text: str) -> None:
    assert words.milliseconds(value) == text


def test_long_names_keep_their_end() -> None:
    assert words.shortened("/a/very/long/name/Add", 9) == "…name/Add"


def test_counts_have_their_plural() -> None:
    assert (words.counted(1, "unit"), words.counted(1200, "unit")) == ("1 unit", "1,200 units")
