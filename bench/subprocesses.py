"""Runs one case of a bench in a process of its own, within time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def rows_of(
    words: Sequence[str], head: dict[str, Any], *, seconds: float, gigabytes: float
) -> list[dict[str, Any]]:
    """The rows that `python -m WORDS` prints as JSON in its last line.

    When it ends otherwise: one row with `head`, a status (timeout, crashed) and the reason.
    """
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
        return [{**head, "status": "timeout", "reason": f"over {seconds:.0f} s"}]
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        return [{**head, "status": "crashed", "reason": f"status {done.returncode}: {last}"}]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found
