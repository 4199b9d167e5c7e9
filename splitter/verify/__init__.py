"""Whether the result may be trusted: tensors, decisions, and one verdict from stated gates.

`verify` is the stage; it takes outputs run by run and gives a frozen `Comparison`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from splitter.graph import Array
from splitter.verify.behind import Behind, BehindError
from splitter.verify.compare import Findings, Outputs, Run, StageErrors, measure
from splitter.verify.decisions import Decisions, DetectionDecisions
from splitter.verify.tasks import Task, find_task
from splitter.verify.tensors import TensorError
from splitter.verify.ties import Ranking, near_tie
from splitter.verify.verdict import GATES, Check, Circumstances, Gates, Verdict, decide
from splitter.verify.wider import Wider, weigh_wider

__all__ = [
    "Behind",
    "BehindError",
    "Check",
    "Circumstances",
    "Comparison",
    "Decisions",
    "DetectionDecisions",
    "Findings",
    "Gates",
    "Outputs",
    "Ranking",
    "Run",
    "StageErrors",
    "Task",
    "TensorError",
    "Verdict",
    "Wider",
    "find_task",
    "measure",
    "near_tie",
    "verify",
    "weigh_wider",
]


@dataclass(frozen=True)
class Comparison:
    """What was measured, on what, and the verdict.

    wider: what 16 bits outside the NPU would gain, where that was tried; untried: why it was not,
    where it might have helped.
    """

    findings: Findings
    circumstances: Circumstances
    verdict: Verdict
    gates: Gates = GATES
    wider: Wider | None = None
    untried: str = ""


def verify(
    runs: Iterable[Run],
    outputs: Sequence[str],
    *,
    task: Task,
    circumstances: Circumstances,
    annotations: Mapping[str, Array] | None = None,
    sizes: Array | None = None,
    gates: Gates = GATES,
    untried: str = "",
    open_ended: Collection[str] = (),
    asked: str = "",
) -> Comparison:
    """Compare the outputs of each run (see `Run`), then judge them by `gates`.

    outputs: names of the model's own outputs. annotations, sizes, open_ended, asked: as in
    `measure`. untried: as in `Comparison`.
    """
    findings = measure(
        runs,
        outputs,
        task=task,
        annotations=annotations,
        sizes=sizes,
        open_ended=open_ended,
        asked=asked,
    )
    verdict = decide(findings, circumstances, gates=gates)
    wider = weigh_wider(*findings.trial) if findings.trial else None
    return Comparison(findings, circumstances, verdict, gates, wider, untried)
