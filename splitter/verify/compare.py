"""Comparisons kept apart (conversion, rewrites, quantization, split, board), and the decisions.

Takes the outputs of each run, not the models: whoever runs them passes one `Run` after the other,
and nothing but sums, plot points and decisions is kept. Decides which outputs are compared with
which. Leaves the gates to `verdict`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.graph import Array
from splitter.verify.behind import Behind, BehindError, BehindMeter
from splitter.verify.classification import Answers
from splitter.verify.decisions import Decisions, Judge
from splitter.verify.detections import Example, pair_queries
from splitter.verify.sets import SetJudge
from splitter.verify.tasks import Kind, Task
from splitter.verify.tensors import TensorError, TensorMeter

Outputs = Mapping[str, Array]
StageName = Literal["conversion", "rewrites", "quantization", "split", "board"]
WORDS: dict[StageName, str] = {
    "conversion": "float TFLite, whole, against the ONNX file in ONNX Runtime",
    "rewrites": "float TFLite with the rewrites for the NPU against without",
    "quantization": "integer TFLite, whole, against float",
    "split": "integer parts against the whole",
    "board": "recorded on the board against this computer",
}


@dataclass(frozen=True)
class Run:
    """The outputs of one run by ONNX name. Integer outputs dequantized to the ONNX types.

    original:      ONNX Runtime. May hold values inside the model too (boundary tensors).
    integer_whole: unsplit.tflite; inner values of the same names are compared with the original's.
    integer_parts: the stitched parts; None where they were not run beside the whole.
    float_whole:   float.tflite, in which all lowerings are exact; None when it was not run.
    float_planned: the float graph with the lowerings of the plan, some of them with a stated error;
                   None where they are all exact, or when it was not run.
    wider:         the integer model with 16 bits outside the NPU, where that was tried.
    board:         recorded on the board; None when nothing was recorded.
    tie:           what `ties.near_tie` says of the two float runs.
    behind:        the model's outputs where an ONNX part makes them; the others above are then what
                   the TFLite parts make.
    """

    original: Outputs
    integer_whole: Outputs
    integer_parts: Outputs | None
    float_whole: Outputs | None = None
    float_planned: Outputs | None = None
    wider: Outputs | None = None
    board: Outputs | None = None
    tie: float | None = None
    behind: Behind | None = None


@dataclass(frozen=True)
class StageErrors:
    """One comparison. `aligned`: the detection outputs again, queries paired by nearest box.

    ties: runs left out of the conversion, because the runtimes ranked two scores differently that
    are `gap` apart at most (relative to the largest score); none is left out when all are such.
    """

    stage: StageName
    runs: int
    tensors: tuple[TensorError, ...]
    aligned: tuple[TensorError, ...] = ()
    ties: int = 0
    gap: float = 0.0

    @property
    def words(self) -> str:
        return WORDS[self.stage]

    @property
    def bit_equal(self) -> bool:
        return all(tensor.bit_equal for tensor in self.tensors)

    def unordered(self, name: str) -> TensorError:
        """The error of an output, free of query order where that can be told."""
        every = {t.name: t for t in self.tensors} | {t.name: t for t in self.aligned}
        return every[name]


@dataclass(frozen=True)
class Findings:
    """Everything measured. `boundary`: inner values, integer whole against the original.

    decisions: integer whole against the original; board: recorded against the original.
    handed: integers (indices, counts) and rows in the order of a ranking, where only the ONNX part
    reads them.
    trial: the same with int8 and with 16 bits outside the NPU, over the runs that tried it.
    behind: the outputs of the ONNX part, none where there is no such part.
    """

    task: Task
    runs: int
    stages: tuple[StageErrors, ...]
    decisions: Decisions | None
    boundary: tuple[TensorError, ...] = ()
    board: Decisions | None = None
    trial: tuple[Findings, Findings] | None = field(default=None, repr=False)
    behind: tuple[BehindError, ...] = ()
    handed: frozenset[str] = frozenset()
    examples: tuple[Example, ...] = field(default=(), repr=False, compare=False)

    def stage(self, name: StageName) -> StageErrors | None:
        return next((stage for stage in self.stages if stage.stage == name), None)


def measure(
    runs: Iterable[Run],
    outputs: Sequence[str],
    *,
    task: Task,
    annotations: Mapping[str, Array] | None = None,
    sizes: Array | None = None,
    open_ended: Collection[str] = (),
    asked: str = "",
) -> Findings:
    """Compare run by run. `outputs`: names of the model's own outputs; open_ended: those of them
    that have as many rows as the data decides.

    asked: the task of a model with an ONNX part, whose outputs are read by `sets`; "" finds it.
    annotations: `labels`, or `boxes`, `labels`, `counts`, rows in the order of the runs; sizes:
    width and height of the pictures the boxes belong to, [N, 2]. Raises ValueError when an output
    is missing from a run, SplitterError when the annotations do not fit.
    """
    meters: dict[StageName, _StageMeter] = {}
    ties: list[Run] = []
    boundary: dict[str, TensorMeter] = {}
    judge, board = (Judge(task, annotations or {}, sizes) for _ in range(2))
    trial = tuple(_Arm(outputs, task, annotations or {}, sizes, open_ended) for _ in range(2))
    behind, sets, handed = BehindMeter(), SetJudge(asked), frozenset[str]()
    count = 0
    for run in runs:
        count += 1
        behind.add(run.behind)
        if run.behind is not None:
            sets.add(*run.behind.results, fixed=run.behind.fixed)
            handed = _handed(run, outputs)
        for stage, reference, candidate in _pairs(run) if outputs else ():
            if stage == "conversion" and run.tie is not None:
                ties.append(run)
                continue
            if stage not in meters:
                meters[stage] = _StageMeter(stage, outputs, task, open_ended)
            meters[stage].add(reference, candidate)
        for name in sorted(set(run.original) & set(run.integer_whole) - set(outputs)):
            meter = boundary.setdefault(name, TensorMeter(name))
            meter.add(run.original[name], run.integer_whole[name])
        judge.add(run.original, run.integer_whole)
        if run.board is not None:
            board.add(run.original, run.board)
        if run.wider is not None:
            trial[0].add(run, run.integer_whole)
            trial[1].add(run, run.wider)
    if not count:
        raise SplitterError("there is no sample to verify on", hint="give --validation")
    told = sets.result()
    decisions = told[0] if told else judge.result()
    kind: Kind = "classification" if isinstance(decisions, Answers) else "detection"
    return Findings(
        task=Task(kind, told[1]) if told else task,
        runs=count,
        stages=_stages(meters, ties, _StageMeter("conversion", outputs, task, open_ended)),
        decisions=decisions,
        handed=handed,
        boundary=tuple(meter.result() for meter in boundary.values()),
        board=board.result() if "board" in meters else None,
        trial=(trial[0].result(), trial[1].result()) if trial[0].runs else None,
        behind=behind.result(),
        examples=judge.examples(),
    )


def _handed(run: Run, outputs: Sequence[str]) -> frozenset[str]:
    """Of what the TFLite parts give for the ONNX part alone, what an error says nothing of."""
    if run.behind is None:
        return frozenset()
    only = [name for name in outputs if name not in run.behind.results[0]]
    ranked = run.behind.ranked
    return frozenset(n for n in only if n in ranked or run.original[n].dtype.kind in "iub")


def _stages(
    meters: dict[StageName, _StageMeter], ties: Sequence[Run], spare: _StageMeter
) -> tuple[StageErrors, ...]:
    """The stages in the order of WORDS. When every run is a near tie, they are what there is."""
    if ties and "conversion" not in meters:
        meter = meters["conversion"] = spare
        for run in ties:
            assert run.float_whole is not None
            meter.add(run.original, run.float_whole)
        ties = ()
    made = {stage: meter.result() for stage, meter in meters.items()}
    if ties:
        gap = max(run.tie or 0.0 for run in ties)
        made["conversion"] = replace(made["conversion"], ties=len(ties), gap=gap)
    return tuple(made[stage] for stage in WORDS if stage in made)


def _pairs(run: Run) -> list[tuple[StageName, Outputs, Outputs]]:
    reference = run.original if run.float_whole is None else run.float_whole
    pairs: list[tuple[StageName, Outputs, Outputs]] = []
    if run.float_whole is not None:
        pairs.append(("conversion", run.original, run.float_whole))
        if run.float_planned is not None:
            pairs.append(("rewrites", run.float_whole, run.float_planned))
    pairs.append(("quantization", reference, run.integer_whole))
    if run.integer_parts is not None:
        pairs.append(("split", run.integer_whole, run.integer_parts))
    if run.board is not None:
        pairs.append(("board", run.integer_parts or run.integer_whole, run.board))
    return pairs


class _Arm:
    """One width of the trial: the findings of quantization alone."""

    def __init__(
        self,
        outputs: Sequence[str],
        task: Task,
        annotations: Mapping[str, Array],
        sizes: Array | None,
        open_ended: Collection[str],
    ) -> None:
        self.runs = 0
        self._task = task
        self._meter = _StageMeter("quantization", outputs, task, open_ended)
        self._judge = Judge(task, annotations, sizes)

    def add(self, run: Run, candidate: Outputs) -> None:
        self.runs += 1
        reference = run.original if run.float_whole is None else run.float_whole
        self._meter.add(reference, candidate)
        self._judge.add(run.original, candidate)

    def result(self) -> Findings:
        return Findings(self._task, self.runs, (self._meter.result(),), self._judge.result())


class _StageMeter:
    """The tensors of one comparison, summed up run by run."""

    def __init__(
        self,
        stage: StageName,
        outputs: Sequence[str],
        task: Task,
        open_ended: Collection[str] = (),
    ) -> None:
        self._stage: StageName = stage
        self._task = task
        self._runs = 0
        self._tensors = {n: TensorMeter(n, open_ended=n in open_ended) for n in outputs}
        queries = (task.boxes, task.scores) if task.kind == "detection" else ()
        self._aligned = {name: TensorMeter(name) for name in queries if stage != "split"}

    def add(self, reference: Outputs, candidate: Outputs) -> None:
        missing = [n for n in self._tensors if n not in reference or n not in candidate]
        if missing:
            raise ValueError(f"{self._stage}: no {', '.join(missing)} on both sides")
        self._runs += 1
        for name, meter in self._tensors.items():
            meter.add(reference[name], candidate[name])
        if self._aligned:
            self._add_aligned(reference, candidate)

    def _add_aligned(self, reference: Outputs, candidate: Outputs) -> None:
        names = (self._task.boxes, self._task.scores)
        for row in range(len(reference[names[0]])):
            left = [reference[name][row] for name in names]
            right = [candidate[name][row] for name in names]
            order = pair_queries(left[0], left[1], right[0], right[1])
            for name, one, other in zip(names, left, right, strict=True):
                self._aligned[name].add(one, np.asarray(other[order]))

    def result(self) -> StageErrors:
        return StageErrors(
            self._stage,
            self._runs,
            tuple(meter.result() for meter in self._tensors.values()),
            tuple(meter.result() for meter in self._aligned.values()),
        )
