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
WORTH_TRYING = 0.2
"""And of at least a fifth of what int8 loses: where that is nearly all, 16 bits are no cure."""


@dataclass(frozen=True, slots=True)
class Wider:
    """option: what to pass. Shares 0..1, with int8 and with 16 bits, of `figure`; goal: in float.

    runs: on which both were measured.
    """

    option: str
    figure: str
    now: float
    then: float
    runs: int
    goal: float = 1.0

    @property
    def gain(self) -> float:
        return self.then - self.now

    @property
    def helps(self) -> bool:
        return self.gain >= max(WORTH_SAYING, WORTH_TRYING * (self.goal - self.now))

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
    figures = decision_figures(now), decision_figures(then)
    gains = [
        Wider(option, name, value, figures[1][name][0], now.runs, goal)
        for name, (value, goal) in figures[0].items()
        if name in figures[1]
    ]
    return max(gains, key=lambda wider: wider.gain, default=None)


def decision_figures(findings: Findings) -> dict[str, tuple[float, float]]:
    """(share, share in float) by name, 0..1, more is better; the most telling figure first."""
    decisions = findings.decisions
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.reference:
        same = decisions.agreement
        found = {"detections found again": (same.found_share, 1.0)}
        if decisions.annotated and decisions.candidate and decisions.reference:
            return {"mAP50-95": (decisions.candidate.ap, decisions.reference.ap)} | found
        return found | {"mean overlap with the float boxes": (same.overlap, 1.0)}
    if isinstance(decisions, Answers):
        return {"answers unchanged": (decisions.agreement, 1.0)}
    stage = findings.stage("quantization")
    tensors = [stage.unordered(tensor.name) for tensor in stage.tensors] if stage else []
    rows = [tensor.rows for tensor in tensors if tensor.rows and tensor.rows.reference]
    if rows:
        shares = [one.found / max(one.reference, one.candidate) for one in rows]
        return {"rows found again": (min(shares), 1.0)}
    errors = [tensor.relative_rms for tensor in tensors]
    return {"likeness of the worst output": (1 - max(errors), 1.0)} if errors else {}
