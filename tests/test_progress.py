"""What a person sees while the stages work."""

from __future__ import annotations

import re

import pytest

from splitter.progress import Silent, Terminal


def test_each_stage_that_ended_has_one_line_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with Terminal() as progress:
        progress.stage("load")
        progress.step(1, 2)
        progress.stage("quantize")
    out, err = capfd.readouterr()
    assert out == ""
    assert re.findall(r"^ *(\w+) +[\d.]+ s", err, re.MULTILINE) == ["load", "quantize"]


def test_a_stage_that_was_interrupted_has_not_ended(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), Terminal() as progress:
        progress.stage("load")
        progress.stage("quantize")
        raise KeyboardInterrupt
    assert re.findall(r"(\w+) +[\d.]+ s", capfd.readouterr().err) == ["load"]


def test_silent_progress_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    progress = Silent()
    progress.stage("load")
    progress.step(1, 2)
    assert capfd.readouterr() == ("", "")
