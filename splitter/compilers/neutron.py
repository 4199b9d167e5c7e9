"""NXP's neutron-converter: how it is called and what its answer means.

Written to its documented command line and log (eIQ Neutron SDK 2.0 to 3.2, as its users quote
them); it was never run here, the SDK is under licence. What it takes becomes custom operators
"NeutronGraph"; the log gives "Operator conversion ratio = a / b", counted after its own rewrites,
so the ratio is not that of the file's operators.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from splitter.compilers.command import no_version, run, version_text
from splitter.compilers.placement import Placement, read_placement

MARKER = "NeutronGraph"

_RATIO = re.compile(r"Operator conversion ratio\s*=\s*(\d+)\s*/\s*(\d+)")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True)
class Neutron:
    """command: the program and its options, like ("neutron-converter", "--target", "imx95");
    without --target it converts for mcxn94x."""

    command: Sequence[str]

    @property
    def name(self) -> str:
        return "neutron-converter"

    def version(self) -> str:
        """Without the build hash that follows the version triple."""
        said = version_text(self.command[0])
        found = _VERSION.search(said)
        if found is None:
            raise no_version(self.command[0], said)
        return found.group()

    def place(self, model: bytes) -> Placement:
        with tempfile.TemporaryDirectory(prefix="neutron-") as name:
            folder = Path(name)
            source, converted = folder / "model.tflite", folder / "model_converted.tflite"
            source.write_bytes(model)
            files = ["--input", str(source), "--output", str(converted)]
            ran = run([*self.command, *files], folder=folder)
            if ran.status or not converted.is_file():
                return Placement(failed=ran.last_words)
            placed = read_placement(converted.read_bytes(), MARKER, why={})
            return replace(placed, ratio=conversion_ratio(ran.output))


def conversion_ratio(log: str) -> tuple[int, int] | None:
    """(converted, all) operators after the converter's rewrites, None when the log has no ratio."""
    found = _RATIO.search(log)
    return None if found is None else (int(found.group(1)), int(found.group(2)))
