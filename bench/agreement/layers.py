"""Vela on one file: its placement, and its estimate layer by layer."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from splitter.compilers.command import run
from splitter.compilers.placement import Placement, read_placement
from splitter.compilers.vela import MARKER, estimate, reasons
from splitter.latency import NPU_KERNELS
from splitter.rules.schema import Target
from splitter.tflite.codes import CODES

OPTIONS = ("--accelerator-config", "--system-config", "--memory-mode")
OTHERWISE = {"CONCAT": "CONCATENATION", "MAXPOOL": "MAX_POOL_2D", "AVGPOOL": "AVERAGE_POOL_2D"}
"""Vela's names of operators that are not TFLite's without underscores."""

BYTES = 4 * 2**30
"""Address space of the compiler: it was seen to take all memory of a machine for a convolution."""


@dataclass(frozen=True)
class Compiled:
    """The placement, and milliseconds by class of kernel as in Vela's table of layers."""

    placement: Placement
    ms: Mapping[str, float] = field(default_factory=dict)


def compiled(
    model: bytes, target: Target, program: str, *, without: Sequence[str] = ()
) -> Compiled:
    """Run Vela as the target's command does; `without`: kinds of operators kept from it."""
    ignored = ["--ignore-ops", ",".join(without)] if without else []
    with tempfile.TemporaryDirectory(prefix="vela-") as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(model)
        ran = run(
            [
                *("prlimit", f"--as={BYTES}", program, *accelerator(target.tool.command), *ignored),
                *("--verbose-performance", "--output-dir", name, str(folder / "model.tflite")),
            ],
            folder=folder,
        )
        made = folder / "model_vela.tflite"
        if ran.status or not made.is_file():
            return Compiled(Placement(failed=ran.last_words))
        ms = estimate(folder)
        placement = read_placement(made.read_bytes(), MARKER, why=reasons(ran.output), npu_ms=ms)
        return Compiled(placement, _by_class(folder, ms or 0.0))


def accelerator(command: str) -> tuple[str, ...]:
    """The options of a rule file's command that say which NPU is compiled for."""
    pairs = pairwise(command.split())
    return tuple(word for option, value in pairs if option in OPTIONS for word in (option, value))


def _by_class(folder: Path, total: float) -> dict[str, float]:
    """Milliseconds by class; what a layer takes of all cycles it takes of the time."""
    cycles: dict[str, float] = {}
    for path in sorted(folder.glob("*per-layer.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                kernel = _kernel(row["Original Operator"])
                cycles[kernel] = cycles.get(kernel, 0.0) + float(row["Op Cycles"])
    whole = sum(cycles.values()) or 1.0
    return {kernel: total * share / whole for kernel, share in sorted(cycles.items())}


def _kernel(vela_name: str) -> str:
    plain = vela_name.upper()
    codes = {code.replace("_", ""): code for code in CODES}
    code = OTHERWISE.get(plain) or codes.get(plain) or codes.get(f"{plain}2D", plain)
    return "reshape" if code == "RESHAPE" else NPU_KERNELS.get(code, "elementwise")
