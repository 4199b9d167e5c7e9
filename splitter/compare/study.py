"""`split compare`, stage by stage: candidates for each target, one calibration, what was measured.

Decides nothing itself: which plans is `partition.catalogue`'s, what is shared `integers`'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from splitter.calibration import Division
from splitter.calibration.take import read_samples
from splitter.compare.chunks import Memory
from splitter.compare.integers import Workshop
from splitter.compare.options import CompareOptions
from splitter.compare.rows import LIKENESS, Row, Sheet, measured, ranked
from splitter.compare.trial import Trial, Yardstick, try_out
from splitter.graph import Graph
from splitter.lower import refuse_unknown
from splitter.model import Model
from splitter.normalize import fixed_outputs
from splitter.partition.catalogue import Catalogue, Entry, catalogue
from splitter.partition.costs import unit_macs
from splitter.pipeline import class_names
from splitter.plan import Segment
from splitter.progress import Progress
from splitter.reference import OnnxRunner
from splitter.rules.schema import Target
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.source import read_source
from splitter.trips import require_within
from splitter.verify import find_task

SHORT = 11
"""Letters of a figure's name that fit over a column."""


@dataclass(frozen=True)
class Study:
    """What came out. samples: None when nothing was measured. clip: how ranges were clipped.

    left: operators that stay ONNX, behind every candidate alike.
    """

    model: Model
    targets: tuple[Target, ...]
    graph: Graph
    rows: tuple[Row, ...]
    sheets: Mapping[str, Sheet]
    samples: Division | None
    clip: str = ""
    left: int = 0

    @property
    def random(self) -> bool:
        return self.samples is not None and self.samples.calibration.random

    @property
    def figure_name(self) -> str:
        """The figure that tells how good a candidate is, "" when nothing was measured."""
        return next((row.measured.figure.name for row in self.rows if row.measured), "")

    @property
    def head(self) -> str:
        """The figure's name where there is little room."""
        return self.figure_name if len(self.figure_name) <= SHORT else "figure"

    @property
    def decides(self) -> bool:
        """Whether the figure says more than the error of the worst output."""
        return self.figure_name not in ("", LIKENESS)

    @property
    def goal(self) -> float | None:
        """The same figure of the float model."""
        return next((row.measured.figure.goal for row in self.rows if row.measured), None)


@dataclass(frozen=True)
class _Asked:
    """A candidate of a target."""

    sheet: Sheet
    entry: Entry


def investigate(options: CompareOptions, progress: Progress) -> Study:
    """Compare the candidates of every target. Raises SplitterError; writes nothing."""
    job = options.job
    targets = tuple(load_target(name) for name in dict.fromkeys(options.targets))
    source = read_source(job, progress)
    original, model, remainder = source.original, source.model, source.remainder
    with source.refusing():
        graph = source.graph()
        refuse_unknown(graph)
    samples = None
    if job.calibration:
        progress.stage("samples")
        samples = read_samples(job, model.inputs)
        require_within(source.bounds, samples, model.inputs)
    progress.stage("candidates")
    left = remainder.operators if remainder else 0
    asked, chosen, sheets = [], [], {}
    for target in targets:
        sheet, found = _candidates(graph, target, options, original.makers)
        sheets[target.name] = sheet
        asked += [_Asked(sheet, entry) for entry in found.entries]
        chosen.append(found.entries[0].plan)
    if samples is None:
        rows = [one.sheet.row(one.entry, None, None) for one in asked]
        return Study(original, targets, graph, ranked(rows, chosen), sheets, None, left=left)
    progress.stage("calibrate")
    workshop = Workshop(
        graph,
        [one.entry.plan for one in asked],
        samples.calibration.batches(model.inputs),
        flags=source.bounds.flags,
        threads=job.threads,
    )
    clip = workshop.choose_clip(targets[0])
    progress.stage("float")
    task = job.task or ("none" if left else "")
    yardstick = _yardstick(original, model, samples, task=task, threads=job.threads)
    progress.stage("measure")
    rows = _measure(asked, workshop, yardstick, threads=job.threads, progress=progress)
    return Study(original, targets, graph, ranked(rows, chosen), sheets, samples, clip, left)


def _candidates(
    graph: Graph, target: Target, options: CompareOptions, makers: Mapping[str, str]
) -> tuple[Sheet, Catalogue]:
    job = options.job
    support = judge(graph, target, trust=job.trust)
    found = catalogue(
        graph,
        support,
        target,
        npu=job.npu,
        cpu=job.cpu,
        cuts=options.cuts,
        max_segments=job.max_segments,
        count=options.candidates,
        makers=makers,
    )
    return Sheet(target, graph, found.unit_ms, unit_macs(graph, support)), found


def _yardstick(
    original: Model, model: Model, samples: Division, *, task: str, threads: int
) -> Yardstick:
    """The float model's outputs on the samples to verify on."""
    validation = samples.validation.batches(model.inputs)
    names = [value.name for value in model.outputs]
    reference = OnnxRunner(original.proto, names, threads=threads)
    found = find_task(fixed_outputs(model), asked=task, classes=len(class_names(samples)))
    expected = [reference.run(sample) for sample in validation]
    return Yardstick(model.outputs, found, validation, expected, samples.validation)


def _measure(
    asked: Sequence[_Asked],
    workshop: Workshop,
    yardstick: Yardstick,
    *,
    threads: int,
    progress: Progress,
) -> list[Row]:
    """Every candidate, `threads` of them at a time; equal integer models with equal parts once."""
    done: dict[tuple[str, tuple[Segment, ...]], Trial] = {}
    memory = Memory()

    def one(candidate: _Asked) -> Row:
        made = workshop.integers(candidate.entry.plan, candidate.sheet.target)
        key = made.digest, candidate.entry.plan.segments
        trial = done.get(key) or try_out(made, yardstick, memory)
        done[key] = trial
        found = measured(trial.findings, made.digest)
        return candidate.sheet.row(candidate.entry, found, trial)

    rows = []
    with ThreadPoolExecutor(threads) as pool:
        for row in pool.map(one, asked):
            rows.append(row)
            progress.step(len(rows), len(asked))
    return rows
