"""A graph as an integer TFLite file for a target, by the tool's own stages.

Every unit that fits the NPU is written by its NPU lowering, wherever a plan would put it: what a
vendor's compiler that cuts freely would be given. One sample: ranges matter little here.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.corpus.cases import Arrays, Case, bindings, records
from bench.corpus.measure import axis_names, restored
from bench.corpus.samples import invented
from splitter.equalize import equalize
from splitter.graph import Graph, Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.quantize import calibrate, quantize
from splitter.quantize.demands import demands_of
from splitter.rules.schema import Target
from splitter.rules.support import judge
from splitter.tflite.types import LiteGraph


@dataclass(frozen=True)
class Prepared:
    """What targets share: the graph before any verdict, and one sample by input name."""

    graph: Graph
    sample: Arrays


def prepared(case: Case) -> Prepared:
    """Raises SplitterError where the tool refuses the graph."""
    stored = records(case)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        model = load(restored(case, Path(folder)))
    shapes = bindings(case, model.inputs, axis_names(model), stored)
    graph = equalize(layout(normalize(model, shapes=shapes)))
    static = [Value(v.name, shapes.get(v.name, v.shape), v.dtype) for v in model.inputs]
    return Prepared(graph, stored[0].inputs if stored else invented(static, 1)[0])


def integer_file(ready: Prepared, target: Target, *, trust: str = "inferred") -> LiteGraph:
    """The whole graph in integers. Raises SplitterError where it cannot be written."""
    graph = ready.graph
    support = judge(graph, target, trust=trust)
    npu = frozenset(name for name, verdict in support.npu.items() if verdict.fits)
    lowerings = {
        name: (support.npu if name in npu else support.cpu)[name].lowering
        for name in (unit.name for unit in graph.units)
    }
    lite = lower(graph, lowerings)
    ranges = calibrate(lite, [ready.sample], threads=1)
    return quantize(lite, ranges, npu=npu, demands=demands_of(target))
