"""`split compare`: where to cut, and what is gained, before anything is carried out.

options    what was asked for
integers   the integer models of many plans from one calibration
trial      one of them on samples
study      the stages in order
rows       a candidate as figures, ranked
telling    what they say in words
terminal, html, pictures, plain   what people see
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from splitter.compare.html import to_html
from splitter.compare.options import CompareOptions
from splitter.compare.plain import FORMAT, to_json
from splitter.compare.study import Study, investigate
from splitter.compare.terminal import to_text
from splitter.glue import check_out, write_bundle
from splitter.progress import Progress

__all__ = ["CompareOptions", "Result", "compare"]

PAGE, DATA = "compare.html", "compare.json"


@dataclass(frozen=True)
class Result:
    """What came out."""

    study: Study

    def text(self, *, color: bool = False, width: int = 100) -> str:
        """For the terminal."""
        return to_text(self.study, color=color, width=width)

    def to_json(self) -> str:
        """The text of compare.json."""
        return to_json(self.study).rstrip()


def compare(options: CompareOptions, progress: Progress) -> Result:
    """Compare and write the folder. Raises SplitterError; then nothing was written."""
    out = options.job.out
    check_out(out, former=_former)
    found = investigate(options, progress)
    progress.stage("report")
    files = {PAGE: to_html(found).encode(), DATA: to_json(found).encode()}
    write_bundle(out, files, former=_former)
    return Result(found)


def _former(folder: Path) -> Collection[str]:
    """A former comparison may be replaced."""
    try:
        document = json.loads((folder / DATA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    ours = isinstance(document, dict) and document.get("format") == FORMAT
    return (PAGE, DATA) if ours else ()
