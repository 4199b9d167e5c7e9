"""Runs the cases of a bench, each in a process of its own, within time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.corpus.cases import Case

ROOT = Path(__file__).resolve().parents[1]
TRACE = 25
"""Last lines of a crash that are kept."""

Row = dict[str, Any]


class CaseFailed(Exception):
    """A case ended without a result. row: status (timeout or crashed), reason, trace."""

    def __init__(self, row: Row) -> None:
        super().__init__(row["reason"])
        self.row = row


def result_of(words: Sequence[str], *, seconds: float, gigabytes: float) -> Any:
    """What `python -m WORDS` prints as JSON in its last line. Raises CaseFailed."""
    limit = int(gigabytes * 2**30)

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    try:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=ROOT,
            preexec_fn=bounded,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CaseFailed({"status": "timeout", "reason": f"over {seconds:.0f} s"}) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = f"status {done.returncode}: {lines[-1] if lines else ''}"
        trace = "\n".join(lines[-TRACE:])
        raise CaseFailed({"status": "crashed", "reason": reason, "trace": trace})
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(words: Sequence[str], case: Case, *, seconds: float, gigabytes: float) -> list[Row]:
    """The rows of a case, one a target; when it fails one row without a target says why."""
    try:
        found: list[Row] = result_of(words, seconds=seconds, gigabytes=gigabytes)
    except CaseFailed as failure:
        kept = {key: failure.row[key] for key in ("status", "reason")}
        return [{"name": case.name, "target": "", **kept}]
    return found


def resumed(
    path: Path | None, cases: Iterable[Case], make: Callable[[Case], list[Row]]
) -> list[Row]:
    """The rows of all cases; those in the file are not made again, new ones are put there."""
    made: list[Row] = []
    if path and path.is_file():
        made = json.loads(path.read_text())
    known = {row["name"] for row in made}
    for case in cases:
        if case.name in known:
            continue
        made += make(case)
        if path:
            path.write_text(json.dumps(made, indent=0))
    return made
