"""What the trained models decide, and whether the integer model decides the same."""

from __future__ import annotations

from collections.abc import Sequence

from bench.corpus.cases import Arrays, Record
from bench.corpus.samples import variants


def samples(
    name: str, stored: Sequence[Record], many: int, few: int
) -> tuple[list[Arrays], list[Record]]:
    """Inputs to calibrate on, runs to verify on (the recorded ones first)."""
    more = variants(stored, many + few)
    calibration = [*(r.inputs for r in stored), *more[few:]][:many]
    return calibration, [*stored, *map(Record, more[:few])][:few]


def compare(
    name: str, inputs: Sequence[Arrays], expected: Sequence[Arrays], actual: Sequence[Arrays]
) -> dict[str, tuple[int, int]]:
    """(agree, total) by question; empty where nothing is known of the model."""
    return {}
