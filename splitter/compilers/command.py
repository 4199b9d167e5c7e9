"""Runs a compiler's command line. Decides its limits of time and memory, what a failure says."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splitter.diagnostics import SplitterError

SECONDS = 600
"""After this a compilation is given up."""

BYTES = 4 << 30
"""Address space of a compiler: Vela 5.2.0 takes all there is for some convolutions (512x1)."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. output: stdout and stderr in one."""

    status: int
    output: str

    @property
    def last_words(self) -> str:
        if self.status < 0:
            return f"ended by signal {-self.status}"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        said = [line for line in lines if not line.startswith(("Warning", "TfLiteReader"))]
        return said[-1][:300] if said else f"status {self.status}, nothing said"


def run(command: Sequence[str], *, folder: Path | None = None) -> Ran:
    """Run to the end. Raises SplitterError when there is no such program."""
    if shutil.which(command[0]) is None:
        raise SplitterError(
            f"no program {command[0]!r}",
            where="--compiler",
            hint="give its path; vela comes with pip install 'onnx-npu-splitter[vela]'",
        )
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            cwd=folder,
            check=False,
            preexec_fn=_limit_memory,
        )
    except subprocess.TimeoutExpired:
        return Ran(1, f"given up after {SECONDS} s")
    return Ran(done.returncode, done.stdout)


def _limit_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = BYTES if hard == resource.RLIM_INFINITY else min(BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
