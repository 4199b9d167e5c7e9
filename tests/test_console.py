"""Lines end where the terminal does; names stay whole, and files get lines as they are."""

from __future__ import annotations

import pytest

from splitter.console import wrapped

LINE = "  tried gather, which the target does not take: /a/name/that/is/longer/than/the/terminal"


def test_a_long_line_goes_on_deeper_in_and_loses_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    lines = wrapped(f"short\n{LINE}\n").split("\n")
    assert lines[0] == "short" and lines[-1] == ""
    assert lines[1].startswith("  tried") and lines[2].startswith("    ")
    assert " ".join(lines).split() == ["short", *LINE.split()]
    assert [line for line in lines if len(line) > 30] == [f"    {LINE.split()[-1]}"]


def test_no_line_is_broken_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert wrapped(LINE * 20) == LINE * 20
