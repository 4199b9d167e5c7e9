"""One graph planned for all targets, in a process of its own; the rows are a line of JSON.

`python -m bench.placements.case PATH KIND TARGET...`. Planning only: nothing is lowered whole,
calibrated or quantized.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.agreement.integer_files import prepared
from bench.corpus.cases import Case, Kind
from splitter.diagnostics import SplitterError
from splitter.graph import Graph
from splitter.ops.registry import fragment
from splitter.partition import boundary_bytes, plan
from splitter.partition.candidates import ALL_CPU
from splitter.plan import Plan, Support
from splitter.rules.schema import Target
from splitter.rules.support import as_int8, judge, lowering_of
from splitter.rules.targets import load_target
from splitter.tflite.facts import macs


@dataclass
class Row:
    """A graph on a target. status: done or refused (reason). macs: of the whole graph.

    npu_macs: share of them in NPU segments. boundary: bytes of the tensors between segments, each
    once. ms: estimated latency of the plan; cpu_ms: of all on the CPU.
    """

    name: str
    target: str
    status: str = "done"
    reason: str = ""
    units: int = 0
    macs: int = 0
    npu_macs: float = 0.0
    segments: str = ""
    boundary: int = 0
    ms: float = 0.0
    cpu_ms: float = 0.0


def planned(name: str, graph: Graph, target: Target) -> Row:
    """The plan that the tool would carry out, any number of segments allowed."""
    row = Row(name, target.name)
    try:
        support = judge(graph, target, trust="proxy")
        candidates = plan(graph, support, target, npu_segments=None)
    except SplitterError as error:
        row.status, row.reason = "refused", " ".join(str(error).split())[:200]
        return row
    chosen = candidates[0]
    everything = next(one for one in candidates if len(one.segments) == 1 and _on_cpu(one))
    work = _macs(graph, support, chosen)
    row.units, row.macs = len(graph.units), sum(work.values())
    inside = {u for segment in chosen.segments if segment.device == "npu" for u in segment.units}
    row.npu_macs = sum(work[unit] for unit in inside) / row.macs if row.macs else 0.0
    row.segments = " | ".join(segment.device.upper() for segment in chosen.segments)
    row.boundary = _boundary(graph, chosen)
    row.ms, row.cpu_ms = round(chosen.cost.total_ms, 3), round(everything.cost.total_ms, 3)
    return row


def _on_cpu(candidate: Plan) -> bool:
    return candidate.name == ALL_CPU or all(one.device == "cpu" for one in candidate.segments)


def _macs(graph: Graph, support: Support, chosen: Plan) -> dict[str, int]:
    """Multiply-accumulates of every unit by the lowering it has on the CPU: the same on all."""
    found = {}
    for unit in graph.units:
        lowering = lowering_of(unit, support.cpu[unit.name].lowering)
        part = as_int8(fragment(graph, unit, lowering))
        found[unit.name] = sum(macs(part, op) for op in part.operators)
    return found


def _boundary(graph: Graph, chosen: Plan) -> int:
    place = {unit: i for i, segment in enumerate(chosen.segments) for unit in segment.units}
    total = 0
    for name, producer in graph.producers.items():
        readers = graph.consumers[name]
        if any(place[reader.name] != place[producer.name] for reader in readers):
            total += boundary_bytes(graph, name)
    return total


def main() -> None:
    path, kind, *targets = sys.argv[1:]
    kinds: dict[str, Kind] = {"trained": "trained", "models": "models"}
    case = Case(Path(path).stem, kinds[kind], Path(path))
    try:
        graph = prepared(case).graph
    except SplitterError as error:
        said = " ".join(str(error).split())[:200]
        rows = [Row(case.name, target, "refused", said) for target in targets]
    else:
        rows = [planned(case.name, graph, load_target(name)) for name in targets]
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
