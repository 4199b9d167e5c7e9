"""What 16-bit activations outside the NPU would gain over int8, measured on the same samples.

Decides whether to say so. The pipeline runs both models; this only weighs what came out.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitter.verify.classification import Answers
from splitter.verify.compare import Findings
from splitter.verify.decisions import DetectionDecisions

WORTH_SAYING = 0.005
"""A gain of at least half a point is told; the gates are at 2 and 3 points."""


@dataclass(frozen=True, slots=True)
class Wider:
    """option: what to pass. Shares 0..1, with int8 and with 16 bits; `figure` names them."""

    option: str
    figure: str
    now: float
    then: float
    runs: int

    @property
    def gain(self) -> float:
        return self.then - self.now

    @property
    def helps(self) -> bool:
        return self.gain >= WORTH_SAYING

    def __str__(self) -> str:
        runs = f"{self.runs} run" + ("" if self.runs == 1 else "s")
        return (
            f"with {self.option}: {self.figure} {100 * self.then:.1f} % instead of "
            f"{100 * self.now:.1f} % ({100 * self.gain:+.1f} points, {runs})"
        )


def weigh_wider(now: Findings, then: Findings, *, option: str = "--int16 auto") -> Wider | None:
    """The decision figure that gains most, else the error of the worst output; None when unlike.

    now, then: int8 and 16-bit findings on the same samples, both against the original.
    """
    figures = _figures(now), _figures(then)
    gains = [
        Wider(option, name, value, figures[1][name], now.runs)
        for name, value in figures[0].items()
        if name in figures[1]
    ]
    return max(gains, key=lambda wider: wider.gain, default=None)


def _figures(findings: Findings) -> dict[str, float]:
    decisions = findings.decisions
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.reference:
        same = decisions.agreement
        found = {"detections found again": same.found_share}
        if decisions.candidate:
            return {"mAP50-95": decisions.candidate.ap} | found
        return found | {"mean overlap with the float boxes": same.overlap}
    if isinstance(decisions, Answers):
        return {"answers unchanged": decisions.agreement}
    stage = findings.stage("quantization")
    errors = [stage.unordered(t.name).relative_rms for t in stage.tensors] if stage else []
    return {"likeness of the worst output": 1 - max(errors)} if errors else {}
