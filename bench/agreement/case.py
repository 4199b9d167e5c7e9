"""One graph for all targets, in a process of its own; the rows are a line of JSON on stdout.

`python -m bench.agreement.case PATH KIND VELA TARGET...`. Where the compiler ends on a whole file
it is asked again with the kinds of operators that the rules refuse there kept from it, then with
these operators cut out of the file (what Vela calls no valid TFLite it does not even place on the
CPU); what it was not asked is not compared.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

from bench.agreement.integer_files import Prepared, integer_file, prepared
from bench.agreement.layers import Compiled, compiled
from bench.corpus.cases import Case, Kind
from splitter.carve import without
from splitter.diagnostics import Reason, SplitterError
from splitter.latency import npu_work
from splitter.rules.schema import Target
from splitter.rules.support import check_lite
from splitter.rules.targets import load_target
from splitter.tflite.types import LiteGraph, Operator
from splitter.tflite.write import write

Refused = Mapping[tuple[str, ...], tuple[Reason, ...]]


@dataclass(frozen=True)
class Difference:
    """An operator that one of the two takes and the other does not."""

    code: str
    tensor: str
    ours: bool
    ours_why: str
    theirs_why: str


@dataclass
class Row:
    """What became of one graph for one target.

    compared: operators of which both have an opinion. left_out: kinds that were kept from the
    compiler so that it ends well, with the number of operators. failed: the compiler's last words
    on the whole file. works: of each operator that both put on the NPU, latency.NpuWork as a list.
    their_ms, their_classes: Vela's estimate, whole and by class of kernel.
    """

    name: str
    target: str
    status: str = "done"
    reason: str = ""
    operators: int = 0
    compared: int = 0
    on_cpu: int = 0
    differences: list[Difference] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    failed: str = ""
    their_ms: float | None = None
    their_classes: dict[str, float] = field(default_factory=dict)
    works: list[tuple[object, ...]] = field(default_factory=list)


def compare(name: str, ready: Prepared, target: Target, program: str) -> Row:
    """The row of one target."""
    row = Row(name, target.name)
    try:
        graph = integer_file(ready, target)
    except SplitterError as error:
        row.status, row.reason = "refused", " ".join(str(error).split())[:200]
        return row
    row.operators = len(graph.operators)
    refused = {op.outputs: why for op, why in check_lite(graph, target, trust="inferred")}
    answer = compiled(write(graph), target, program)
    unasked: frozenset[str] = frozenset()
    if answer.placement.failed:
        row.failed = answer.placement.failed
        codes = sorted({op.code for op in graph.operators if op.outputs in refused})
        unasked = frozenset(op.outputs[0] for op in graph.operators if op.code in codes)
        answer = compiled(write(graph), target, program, without=codes) if codes else answer
        if answer.placement.failed and refused:
            unasked = frozenset(outputs[0] for outputs in refused)
            gone = {i for i, op in enumerate(graph.operators) if op.outputs in refused}
            answer = compiled(write(without(graph, gone)), target, program)
        left = (op.code for op in graph.operators if op.outputs[0] in unasked)
        row.left_out = dict(Counter(left))
    if answer.placement.failed:
        row.status, row.reason = "compiler", answer.placement.failed
        return row
    asked = [op for op in graph.operators if op.outputs[0] not in unasked]
    _fill(row, graph, asked, refused, answer, target)
    return row


def _fill(
    row: Row,
    graph: LiteGraph,
    asked: Sequence[Operator],
    refused: Refused,
    answer: Compiled,
    target: Target,
) -> None:
    npu = target.latency.npu
    if npu is None:
        raise ValueError(f"{target.name} has no NPU")
    row.their_ms, row.their_classes = answer.placement.npu_ms, dict(answer.ms)
    for op in asked:
        row.compared += 1
        ours, theirs = op.outputs not in refused, answer.placement.takes(op.outputs)
        row.on_cpu += not theirs
        if ours != theirs:
            mine = "; ".join(str(reason) for reason in refused.get(op.outputs, ()))
            said = answer.placement.why.get(op.outputs[0], "")
            row.differences.append(Difference(op.code, op.outputs[0], ours, mine, said))
        elif ours:
            row.works.append((op.code, *astuple(npu_work(graph, op, npu))))


def main() -> None:
    path, kind, program, *targets = sys.argv[1:]
    kinds: dict[str, Kind] = {"zoo": "zoo", "trained": "trained", "models": "models"}
    case = Case(Path(path).stem, kinds[kind], Path(path))
    try:
        ready = prepared(case)
    except SplitterError as error:
        said = " ".join(str(error).split())[:200]
        rows = [Row(case.name, target, "refused", said) for target in targets]
    else:
        rows = [compare(case.name, ready, load_target(name), program) for name in targets]
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
