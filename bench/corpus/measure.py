"""One graph through the main job, in a process of its own; the result is a line of JSON on stdout.

`python -m bench.corpus.measure PATH KIND TARGET [INT16]`. Runs `splitter.pipeline.run` as the
command line does, then holds float.tflite and the bundle against recorded outputs where there are
some. A refusal is a result; anything else that is raised is a crash and ends the process.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnx

from bench.corpus import decisions
from bench.corpus.cases import Arrays, Case, Kind, Record, bindings, records
from bench.corpus.conditioning import Forcing, perturbed
from bench.corpus.samples import invented, save, variants
from bench.corpus.verdict import FLOAT_LIMIT
from models.build_nano import is_stripped, refill
from splitter.diagnostics import SplitterError
from splitter.equalize import equalize
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.graph import Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import Model, load
from splitter.normalize import normalize
from splitter.options import Options
from splitter.partition import plan
from splitter.pipeline import Result, run
from splitter.quantize.precision import precision
from splitter.reference import OnnxRunner
from splitter.rehearse import FloatModel, as_declared
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.tflite.read import read
from splitter.verify.tensors import TensorMeter

COUNTS: Mapping[Kind, tuple[int, int]] = {"zoo": (8, 1), "trained": (24, 24), "models": (8, 2)}
"""Samples of a kind of graph: to calibrate on, to verify on."""

LARGE, FEW = 60e6, (2, 1)
"""Bytes from which on a graph with random weights gets so few of them."""

Errors = dict[str, float]


@dataclass
class Row:
    """What became of one graph.

    stage, reason: where it ended, and why, when it is refused. float_error, integer_error: relative
    RMS by output, against ONNX Runtime with its own rewrites off; the float one on the recorded
    runs where there are some, on the others `float_more`. split: the parts equal the whole bit for
    bit. samples: calibrated on, verified on. floats: float tensors in the integer file. decisions:
    (agree, total) by question.

    Where float_error is over the limit: forced_error, what is left of it when every decision is the
    reference's; flips, (other decisions, all of them); noise, how far the reference itself moves
    by rounding.

    seconds, cpu_seconds: of the job, on the clock and of the processor (when others use the machine
    too, the second says more). megabytes: peak of the process, the comparison included.
    """

    name: str
    target: str
    status: str = "done"
    stage: str = ""
    reason: str = ""
    float_error: Errors = field(default_factory=dict)
    float_more: Errors = field(default_factory=dict)
    forced_error: Errors = field(default_factory=dict)
    flips: tuple[int, int] = (0, 0)
    noise: Errors = field(default_factory=dict)
    integer_error: Errors = field(default_factory=dict)
    decisions: dict[str, tuple[int, int]] = field(default_factory=dict)
    split: bool | None = None
    samples: tuple[int, int] = (0, 0)
    floats: int = 0
    units: int = 0
    on_npu: int = 0
    operators: int = 0
    bits: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    megabytes: float = 0.0


class Clock:
    """Seconds of each stage, and the stage at work when something is raised."""

    def __init__(self) -> None:
        self.name = ""
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    def stage(self, name: str) -> None:
        now = time.perf_counter()
        if self.name:
            self.seconds[self.name] = round(now - self._started, 2)
        self.name, self._started = name, now

    def step(self, done: int, total: int) -> None:
        pass


def measure(case: Case, target: str, int16: Sequence[str], folder: Path) -> Row:
    """Run the main job on the graph, in `folder`."""
    row = Row(case.name, target)
    clock = Clock()
    stored = records(case)
    path = restored(case, folder)
    try:
        model = load(path)
        shapes = bindings(case, model.inputs, axis_names(model), stored)
        static = [Value(v.name, shapes.get(v.name, v.shape), v.dtype) for v in model.inputs]
        calibration, validation = samples_of(case, static, stored, counts_of(case, path))
        row.samples = len(calibration), len(validation)
        options = Options(
            model=path,
            target=target,
            out=folder / "out",
            calibration=str(save(folder / "calibration.npz", calibration, static)),
            validation=str(save(folder / "validation.npz", [r.inputs for r in validation], static)),
            calibration_samples=len(calibration),
            verify_samples=len(validation),
            shapes=shapes,
            int16=tuple(int16),
            keep_float=True,
            threads=1,
        )
        started, worked = time.perf_counter(), time.process_time()
        result = run(options, clock)
        clock.stage("")
        row.seconds = round(time.perf_counter() - started, 2)
        row.cpu_seconds = round(time.process_time() - worked, 2)
        describe(row, result, options.out)
        compare(row, model, options, validation)
    except SplitterError as error:
        row.status, row.stage, row.reason = "refused", clock.name or "load", str(error)
        if clock.name in ("calibrate", "quantize", "carve", "glue", "verify", "report"):
            float_alone(row, options, model, validation)
    row.stages = clock.seconds
    row.megabytes = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return row


def restored(case: Case, folder: Path) -> Path:
    """The file itself, or a copy with its weights put back."""
    if case.kind != "models":
        return case.path
    proto = onnx.load(case.path)
    if not is_stripped(proto):
        return case.path
    proto = refill(proto)
    onnx.save(proto, folder / case.path.name)
    return folder / case.path.name


def axis_names(model: Model) -> dict[str, tuple[str, ...]]:
    """The names of the free axes of each input."""
    return {
        value.name: tuple(d.dim_param for d in value.type.tensor_type.shape.dim)
        for value in model.proto.graph.input
    }


def counts_of(case: Case, path: Path) -> tuple[int, int]:
    """How many samples the graph gets. path: of the file with its weights."""
    large = case.kind == "models" and path.stat().st_size > LARGE
    return FEW if large else COUNTS[case.kind]


def samples_of(
    case: Case, inputs: Sequence[Value], stored: Sequence[Record], counts: tuple[int, int]
) -> tuple[list[Arrays], list[Record]]:
    """To calibrate on, and to verify on: the recorded runs first."""
    many, few = counts
    if not stored:
        made = invented(inputs, many + few)
        return made[:many], [Record(inputs) for inputs in made[many:]]
    if case.kind == "trained":
        return decisions.samples(case, stored, many, few)
    more = variants(stored, many)
    return [*(r.inputs for r in stored), *more][:many], list(stored)


def describe(row: Row, result: Result, out: Path) -> None:
    """Counts of what was written."""
    whole = read((out / "unsplit.tflite").read_bytes())
    row.operators = len(whole.operators)
    row.floats = sum(t.dtype in ("float32", "float16") for t in whole.tensors.values())
    row.units = sum(len(segment.units) for segment in result.plan.segments)
    npu = [segment for segment in result.plan.segments if segment.device == "npu"]
    row.on_npu = sum(len(segment.units) for segment in npu)
    split = result.comparison.findings.stage("split")
    row.split = split.bit_equal if split else None
    row.bits = round(precision(whole).average, 2)


def compare(row: Row, model: Model, options: Options, validation: Sequence[Record]) -> None:
    """Float file and bundle against ONNX Runtime, output by output, and the decisions."""
    out = options.out
    names = [value.name for value in model.outputs]
    reference = OnnxRunner(model.proto, names, threads=1, optimize=False)
    bundle = Runner(Bundle(out), Settings(threads=1))
    floats = FloatModel(read((out / "float.tflite").read_bytes()))
    outputs = output_values(model, reference, validation[0])
    expected, real, integer = [], [], []
    for record in validation:
        expected.append({**reference.run(record.inputs), **record.outputs})
        real.append(as_declared(floats.run(record.inputs), outputs))
        integer.append(bundle.run(record.inputs).outputs)
    recorded = sum(bool(record.outputs) for record in validation) or len(validation)
    expected_runs = expected[:recorded]
    row.float_error = errors(names, expected_runs, real[:recorded])
    row.float_more = errors(names, expected[recorded:], real[recorded:])
    row.integer_error = errors(names, expected, integer)
    if max(row.float_error.values(), default=0.0) > FLOAT_LIMIT:
        explain(row, model, options, validation[:recorded], expected_runs)
    row.decisions = decisions.compare(row.name, expected, integer)
    if any(node.op_type == "TopK" for node in model.proto.graph.node) and not row.decisions:
        row.decisions = decisions.as_sets(expected, integer)
    row.decisions = row.decisions or decisions.as_rows(expected, integer)


def explain(
    row: Row,
    model: Model,
    options: Options,
    validation: Sequence[Record],
    expected: Sequence[Arrays],
) -> None:
    """Whether decisions or rounding make the float error, and not the conversion."""
    graph = equalize(layout(normalize(model, shapes=options.shapes)))
    support = judge(graph, load_target("cpu"), trust=options.trust)
    lite = lower(graph, {unit: verdict.lowering for unit, verdict in support.cpu.items()})
    names = [value.name for value in model.outputs]
    forcing = Forcing(model.proto, graph, lite)
    made = [forcing.run(record.inputs) for record in validation]
    outputs = output_values(model, OnnxRunner(model.proto, names, threads=1), validation[0])
    row.forced_error = errors(names, expected, [as_declared(one.outputs, outputs) for one in made])
    counts = [count for one in made for count in one.flips.values()]
    row.flips = sum(differ for differ, _ in counts), sum(total for _, total in counts)
    moved = [perturbed(model.proto, names, record.inputs) for record in validation]
    for sides in zip(*moved, strict=True):
        for name, error in errors(names, expected, sides).items():
            row.noise[name] = max(error, row.noise.get(name, 0.0))


def output_values(model: Model, reference: OnnxRunner, record: Record) -> list[Value]:
    """The outputs as ONNX Runtime makes them."""
    made = reference.run(record.inputs)
    return [Value(v.name, made[v.name].shape, made[v.name].dtype.name) for v in model.outputs]


def errors(names: Sequence[str], expected: Sequence[Arrays], actual: Sequence[Arrays]) -> Errors:
    """Relative RMS over all runs; infinite for another shape or a value that is not finite."""
    result = {}
    for name in names:
        meter = TensorMeter(name)
        try:
            for one, other in zip(expected, actual, strict=True):
                meter.add(np.asarray(one[name]), np.asarray(other[name]))
        except ValueError:
            result[name] = float("inf")
            continue
        error = meter.result()
        result[name] = float("inf") if error.not_finite else error.relative_rms
    return result


def float_alone(row: Row, options: Options, model: Model, validation: Sequence[Record]) -> None:
    """What the float file is worth where the integer one is refused."""
    target = load_target(options.target)
    canonical = normalize(model, shapes=options.shapes)
    graph = layout(canonical)
    chosen = plan(graph, judge(graph, target, trust=options.trust), target)[0]
    names = [value.name for value in model.outputs]
    reference = OnnxRunner(model.proto, names, threads=1, optimize=False)
    floats = FloatModel(lower(graph, chosen.lowerings))
    outputs = output_values(model, reference, validation[0])
    expected = [{**reference.run(r.inputs), **r.outputs} for r in validation]
    made = [as_declared(floats.run(r.inputs), outputs) for r in validation]
    row.float_error = errors(names, expected, made)


def main() -> None:
    path, kind, target, *int16 = sys.argv[1:]
    kinds: dict[str, Kind] = {"zoo": "zoo", "trained": "trained", "models": "models"}
    case = Case(Path(path).stem, kinds[kind], Path(path))
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        row = measure(case, target, int16, Path(folder))
    print(json.dumps(asdict(row)))


if __name__ == "__main__":
    main()
