"""The report as rows and figures: what the terminal, report.json and report.html all show.

Decides what is counted and how it is named. Leaves looks to the three renderers. Times are the
latency model's for the operators as they were written, not the planner's per-unit guesses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from splitter.latency import operator_ms, transfer_ms
from splitter.lower import Rewrite, rewrites
from splitter.partition import WORTH, passage_ms
from splitter.plan import Cost, Device, Plan
from splitter.report.data import ReportData
from splitter.report.placement import Placement, PlacementGroup, group_cpu, place_units
from splitter.rules.schema import Figure
from splitter.tflite.facts import macs, tensor_bytes
from splitter.tflite.types import Tensor
from splitter.verify import Comparison
from splitter.width import Widening

SCHEMA_VERSION = 1
BITS = {"bool": 8, "int8": 8, "uint8": 8, "int16": 16, "int32": 32, "float32": 32, "int64": 64}
REAL = ("int8", "int16", "uint8", "float32")
"""Types that carry real numbers; the others are indices and masks."""


@dataclass(frozen=True, slots=True)
class PartRow:
    """One file. mac_share 0..1 of the model's; constants in bytes; ms estimated."""

    index: int
    file: str
    sha256: str
    device: Device
    units: int
    operators: int
    macs: int
    mac_share: float
    constant_bytes: int
    ms: float


@dataclass(frozen=True, slots=True)
class OnnxRow:
    """The ONNX part: what it reads of the parts and of the model, and the operators it is for."""

    index: int
    file: str
    sha256: str
    operators: int
    bytes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    unsupported: Mapping[str, int]

    @property
    def reasons(self) -> str:
        """ "NonZero x 3, Loop x 1"."""
        return ", ".join(f"{op} x {count}" for op, count in self.unsupported.items())


@dataclass(frozen=True, slots=True)
class BoundaryRow:
    """A tensor handed from part `source` to parts `readers`, once however many read it."""

    name: str
    source: int
    readers: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    scale: float | None
    zero_point: int | None
    ms: float


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A tensor of the integer graph that is no constant. bits of one element."""

    name: str
    unit: str
    part: int
    shape: tuple[int, ...]
    dtype: str
    bits: int
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True, slots=True)
class Precision:
    """average: bits of a real-valued element, all elements counted; elements by type."""

    average: float
    elements: dict[str, int]
    values: tuple[ValueRow, ...]


@dataclass(frozen=True, slots=True)
class CandidateRow:
    name: str
    npu_units: int
    cpu_units: int
    segments: int
    cost: Cost
    total_ms: float


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A number of the latency model, with what it rests on."""

    name: str
    value: float
    unit: str
    confidence: str
    source: str
    note: str


@dataclass(frozen=True)
class Summary:
    """Everything the renderers need.

    rewrites: lowerings of the plan with a stated error.
    proxies:  units on the NPU on the word of a sibling NPU.
    """

    model: str
    target: str
    target_title: str
    source: Mapping[str, Any]
    rules: Mapping[str, Any]
    tool: Mapping[str, Any]
    options: Mapping[str, Any]
    calibration: Mapping[str, Any]
    random: bool
    line: str
    level: str
    passed: bool
    parts: tuple[PartRow, ...]
    onnx_part: OnnxRow | None
    boundary: tuple[BoundaryRow, ...]
    placements: tuple[Placement, ...]
    cpu_groups: tuple[PlacementGroup, ...]
    precision: Precision
    widening: Widening
    candidates: tuple[CandidateRow, ...]
    figures: tuple[FigureRow, ...]
    rewrites: tuple[Rewrite, ...]
    proxies: int
    float_tensors: int
    comparison: Comparison
    notes: tuple[str, ...]

    @property
    def boundary_bytes(self) -> int:
        return sum(row.bytes for row in self.boundary)

    @property
    def npu_macs_share(self) -> float:
        return sum(part.mac_share for part in self.parts if part.device == "npu")

    @property
    def total_ms(self) -> float:
        return self.candidates[0].total_ms

    @property
    def more(self) -> tuple[CandidateRow, ...]:
        """Candidates of more parts than the plan's, each worth its further parts (`WORTH`)."""
        found = [self.candidates[0]]
        for row in sorted(self.candidates[1:], key=lambda row: (row.segments, row.total_ms)):
            further = row.segments - max(found[-1].segments, 2)
            if further > 0 and row.total_ms < found[-1].total_ms * (1 - WORTH * further):
                found.append(row)
        return tuple(found[1:])


def summarize(data: ReportData) -> Summary:
    """Count everything up. The first candidate is the plan that was carried out."""
    placements = place_units(data)
    verdict = data.comparison.verdict
    npu = [p for p in placements if p.device == "npu"]
    return Summary(
        model=data.manifest.source.name,
        target=data.target.name,
        target_title=data.target.title,
        source=data.manifest.source.model_dump(mode="json"),
        rules=data.manifest.target.model_dump(mode="json"),
        tool=data.manifest.tool.model_dump(mode="json"),
        options=data.manifest.options,
        calibration=data.manifest.calibration.model_dump(mode="json"),
        random=data.manifest.calibration.random,
        line=verdict.line,
        level=verdict.level,
        passed=verdict.passed,
        parts=tuple(_parts(data)),
        onnx_part=_onnx_part(data),
        boundary=tuple(_boundary(data)),
        placements=placements,
        cpu_groups=group_cpu(placements),
        precision=_precision(data),
        widening=data.widening,
        candidates=tuple(_candidate(plan) for plan in data.candidates),
        figures=tuple(_figures(data)),
        rewrites=rewrites(data.graph, data.plan.lowerings),
        proxies=sum(1 for placement in npu if placement.proxies),
        float_tensors=sum(t.dtype.startswith("float") for t in data.whole.tensors.values()),
        comparison=data.comparison,
        notes=data.notes,
    )


def _parts(data: ReportData) -> Iterator[PartRow]:
    total = sum(macs(data.whole, op) for op in data.whole.operators)
    for index, (part, entry) in enumerate(zip(data.parts, data.manifest.parts, strict=True)):
        work = sum(macs(part.graph, op) for op in part.graph.operators)
        constants = [t for t in part.graph.tensors.values() if t.data is not None]
        yield PartRow(
            index=index,
            file=entry.file,
            sha256=entry.sha256,
            device=part.device,
            units=len({op.unit for op in part.graph.operators}),
            operators=len(part.graph.operators),
            macs=work,
            mac_share=work / total if total else 0.0,
            constant_bytes=sum(tensor_bytes(tensor) for tensor in constants),
            ms=sum(
                operator_ms(part.graph, op, part.device, data.target) for op in part.graph.operators
            ),
        )


def _onnx_part(data: ReportData) -> OnnxRow | None:
    entry = data.manifest.remainder
    if entry is None:
        return None
    return OnnxRow(
        index=len(data.parts),
        file=entry.file,
        sha256=entry.sha256,
        operators=entry.operators,
        bytes=data.onnx_bytes,
        inputs=tuple(value.name for value in entry.inputs),
        outputs=tuple(value.name for value in entry.outputs),
        unsupported=Counter(cause.operator for cause in entry.unsupported),
    )


def _boundary(data: ReportData) -> Iterator[BoundaryRow]:
    for index, part in enumerate(data.parts):
        for name in part.graph.outputs:
            later = range(index + 1, len(data.parts))
            readers = tuple(n for n in later if name in data.parts[n].graph.inputs)
            if not readers:
                continue
            tensor = part.graph.tensors[name]
            size = tensor_bytes(tensor)
            yield BoundaryRow(
                name,
                index,
                readers,
                tensor.shape,
                tensor.dtype,
                size,
                *_parameters(tensor),
                passage_ms(data.graph, name, data.target)
                if name in data.graph.values
                else transfer_ms(size, data.target),
            )


def _parameters(tensor: Tensor) -> tuple[float | None, int | None]:
    q = tensor.quantization
    return (q.scale[0], q.zero_point[0]) if q else (None, None)


def _precision(data: ReportData) -> Precision:
    part_of = {
        name: index
        for index, part in reversed(list(enumerate(data.parts)))
        for name in part.graph.tensors
    }
    producers = data.whole.producers
    rows = []
    elements: dict[str, int] = {}
    for name, tensor in data.whole.tensors.items():
        if tensor.data is not None:
            continue
        elements[tensor.dtype] = elements.get(tensor.dtype, 0) + prod(tensor.shape)
        producer = producers.get(name)
        rows.append(
            ValueRow(
                name,
                producer.unit if producer else "",
                part_of.get(name, -1),
                tensor.shape,
                tensor.dtype,
                BITS[tensor.dtype],
                *_parameters(tensor),
            )
        )
    real = {dtype: count for dtype, count in elements.items() if dtype in REAL}
    bits = sum(BITS[dtype] * count for dtype, count in real.items())
    return Precision(
        bits / sum(real.values()) if real else 0.0, dict(sorted(elements.items())), tuple(rows)
    )


def _candidate(plan: Plan) -> CandidateRow:
    counts = {
        device: sum(len(s.units) for s in plan.segments if s.device == device)
        for device in ("npu", "cpu")
    }
    return CandidateRow(
        plan.name,
        counts["npu"],
        counts["cpu"],
        len(plan.segments),
        plan.cost,
        plan.cost.total_ms,
    )


def _figures(data: ReportData) -> Iterator[FigureRow]:
    latency = data.target.latency
    if latency.npu:
        for name in type(latency.npu).model_fields:
            yield _figure(f"NPU {name}", getattr(latency.npu, name), data)
    for name, figure in latency.npu_classes.items():
        yield _figure(f"NPU, class {name}", figure, data)
    yield _figure("CPU cores", latency.cpu.cores, data)
    yield _figure("CPU operator", latency.cpu.operator, data)
    for name, figure in latency.cpu.classes.items():
        yield _figure(f"CPU {name}", figure, data)


def _figure(name: str, figure: Figure, data: ReportData) -> FigureRow:
    return FigureRow(
        name.replace("_", " "),
        figure.value,
        figure.unit,
        figure.confidence,
        data.target.source_text(figure.source),
        figure.note,
    )
