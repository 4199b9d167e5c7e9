"""What people see of a run: the terminal, report.json, report.html, all from one summary.

`summarize` counts everything up once; `to_text` and `report_files` only show it.
"""

from splitter.report.data import ReportData
from splitter.report.files import report_files
from splitter.report.plain import to_json
from splitter.report.summary import Summary, summarize
from splitter.report.terminal import to_text

__all__ = ["ReportData", "Summary", "report_files", "summarize", "to_json", "to_text"]
