"""Arm's Vela, the compiler for Ethos-U: how it is called and what its answer means.

Written for ethos-u-vela 5.2.0, whose compiler core prints for every operator it leaves on the CPU
"Warning (supported operators) operator: CODE, ofm: 'TENSOR'" and the reason, and writes the network
with custom operators "ethos-u"; read by the older core's warnings too (3.10.0: "CODE 'TENSOR' is
not supported on the NPU. Placing on CPU instead").
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from splitter.compilers.command import no_version, run, version_text
from splitter.compilers.placement import Placement, read_placement

MARKER = "ethos-u"

REFUSAL = "could not run on NPU"
"""What 5.2.0 ends with when an operator that it rewrites itself is then not taken."""

_WARNING = re.compile(r"operator: \S+, ofm: '(.*)'\nReason: (.*)")
_OLD_WARNING = re.compile(
    r"Warning: (?:Unsupported TensorFlow Lite semantics for )?\S+ '(.*)'"
    r"(?: is not supported on the NPU)?\. Placing on CPU instead\n((?: .*\n)*)"
)
_OPTIONS = ("--accelerator-config", "--system-config", "--memory-mode", "--config")


@dataclass(frozen=True)
class Vela:
    """command: the program and its options, like ("vela", "--accelerator-config",
    "ethos-u85-256"); without options Vela compiles for an Ethos-U55-256."""

    command: Sequence[str]

    @property
    def name(self) -> str:
        return "ethos-u-vela"

    def version(self) -> str:
        said = version_text(self.command[0])
        words = said.split()
        if not words or not re.fullmatch(r"\d+(\.\w+)*", words[-1]):
            raise no_version(self.command[0], said)
        return words[-1]

    def ignoring(self, codes: Sequence[str]) -> Vela:
        """The same, with these kinds of operators left to the CPU from the start."""
        return Vela((*self.command, "--ignore-ops", ",".join(codes)) if codes else self.command)

    def place(self, model: bytes) -> Placement:
        with tempfile.TemporaryDirectory(prefix="vela-") as name:
            folder = Path(name)
            (folder / "model.tflite").write_bytes(model)
            options = ["--output-dir", str(folder), str(folder / "model.tflite")]
            ran = run([*self.command, *options], folder=folder)
            converted = folder / "model_vela.tflite"
            if ran.status or not converted.is_file():
                return Placement(failed=ran.last_words, refused=REFUSAL in ran.last_words)
            return read_placement(
                converted.read_bytes(), MARKER, why=reasons(ran.output), npu_ms=estimate(folder)
            )


def accelerator(command: str) -> tuple[str, ...]:
    """The options of a rule file's command that say which NPU is compiled for."""
    words = command.split()
    pairs = pairwise(words)
    return tuple(word for option, value in pairs if option in _OPTIONS for word in (option, value))


def reasons(log: str) -> dict[str, str]:
    """Tensor -> why the operator that writes it stays on the CPU, from Vela's log."""
    found = {name: why.strip() for name, why in _WARNING.findall(log)}
    for name, why in _OLD_WARNING.findall(log):
        found[name] = " ".join(line.strip(" -") for line in why.splitlines())
    return found


def estimate(folder: Path) -> float | None:
    """Milliseconds of one inference that Vela estimates for the operators on the NPU."""
    for path in sorted(folder.glob("model_summary_*.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                seconds = row.get("inference_time", "")
                return float(seconds) * 1e3 if seconds else None
    return None
