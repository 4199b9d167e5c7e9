"""What a comparison was asked for, as data. Decides the defaults, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from splitter.options import Options

CANDIDATES = 20


@dataclass(frozen=True)
class CompareOptions:
    """One call of `split compare`.

    job:        what the main job would be asked for, for the first target: model, samples, trust,
                --npu, --cpu, --max-segments. Its `out` is the folder of the comparison. Without
                calibration nothing is measured.
    targets:    at least one.
    cuts:       each the values at which the first NPU part of one candidate ends.
    candidates: about so many for each target.
    """

    job: Options
    targets: tuple[str, ...]
    cuts: tuple[tuple[str, ...], ...] = ()
    candidates: int = CANDIDATES
