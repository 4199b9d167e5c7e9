"""report.json: complete, stable, and JSON that anybody can read."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import numpy as np
import pytest

from splitter.report import ReportData, Summary, summarize, to_json
from splitter.report.plain import plain


def refuse(text: str) -> NoReturn:
    raise AssertionError(f"{text} is no JSON")


@pytest.fixture(scope="module")
def document(summary: Summary) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(to_json(summary), parse_constant=refuse)
    return parsed


def test_it_says_which_schema_it_has(document: dict[str, Any]) -> None:
    assert (document["format"], document["schema_version"]) == ("split report", 1)


def test_the_same_data_gives_the_same_text(data: ReportData, summary: Summary) -> None:
    assert to_json(summarize(data)) == to_json(summary)


def test_every_unit_of_the_cpu_has_all_its_reasons(
    data: ReportData, document: dict[str, Any]
) -> None:
    for unit in document["units"]:
        verdict = data.support.npu[unit["unit"]]
        if unit["device"] == "cpu" and not verdict.fits:
            rules = {reason.rule for group in verdict.reasons.values() for reason in group}
            assert {reason["rule"] for reason in unit["reasons"]} == rules


def test_stages_verdict_and_gates_are_there(document: dict[str, Any]) -> None:
    stages = [stage["stage"] for stage in document["verification"]["stages"]]
    assert stages == ["conversion", "quantization", "split"]
    assert document["verdict"]["level"] and document["verdict"]["checks"]
    assert document["verification"]["gates"]["found"] == 0.97


def test_plot_points_are_left_out(document: dict[str, Any]) -> None:
    assert "points" not in json.dumps(document)


def test_numbers_that_json_has_not_are_null() -> None:
    assert plain({"a": float("nan"), "b": (np.inf, np.float32(1.5), np.int64(3))}) == {
        "a": None,
        "b": [None, 1.5, 3],
    }
