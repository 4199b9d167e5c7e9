"""Runs a compiler's command line. Decides its limits of time and memory, what a failure says."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splitter.diagnostics import SplitterError

SECONDS = 600
"""After this a compilation is given up."""

ANSWER_SECONDS = 120
"""After this a program that was only asked for its version is given up."""

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


def run(command: Sequence[str], *, folder: Path | None = None, seconds: float = SECONDS) -> Ran:
    """Run to the end, in `folder`; a path of the program is taken from where we are.

    Raises SplitterError when there is no such program, or it cannot be started.
    """
    program = shutil.which(command[0])
    if program is None:
        raise SplitterError(
            f"no program {command[0]!r}",
            where="--compiler",
            hint="give its path; vela comes with pip install 'onnx-npu-splitter[vela]'",
        )
    try:
        done = subprocess.run(
            [os.path.abspath(program), *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            cwd=folder,
            check=False,
            preexec_fn=_limit_memory,
        )
    except subprocess.TimeoutExpired:
        return Ran(1, f"given up after {seconds:g} s")
    except OSError as error:
        raise SplitterError(
            f"{command[0]} cannot be started: {error.strerror}",
            where="--compiler",
            hint="give the vendor's program for this computer",
        ) from error
    return Ran(done.returncode, done.stdout)


def version_text(program: str, *, seconds: float = ANSWER_SECONDS) -> str:
    """What a program prints for --version. Raises SplitterError when it does not answer."""
    ran = run([program, "--version"], seconds=seconds)
    if ran.status:
        raise SplitterError(
            f"{program} --version does not answer: {ran.last_words}",
            where="--compiler",
            hint="try it in a shell first",
        )
    return ran.output


def no_version(program: str, said: str) -> SplitterError:
    """The error for a program whose --version prints something else."""
    words = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return SplitterError(
        f"{program} --version does not print a version" + (f" but {words[:60]!r}" if words else ""),
        where="--compiler",
        hint="give the command of the vendor's compiler",
    )


def _limit_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = BYTES if hard == resource.RLIM_INFINITY else min(BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
