"""The report's files in a bundle, by name. Decides the names only."""

from __future__ import annotations

from splitter.report.data import ReportData
from splitter.report.html import to_html
from splitter.report.plain import to_json
from splitter.report.summary import Summary


def report_files(data: ReportData, summary: Summary) -> dict[str, bytes]:
    """report.json and report.html; the same data gives the same bytes."""
    return {
        "report.json": to_json(summary).encode(),
        "report.html": to_html(data, summary).encode(),
    }
