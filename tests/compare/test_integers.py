"""One calibration serves all plans: the integer models are those that a plan's own would give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from splitter.compare.integers import Workshop, side_by_side
from splitter.equalize import equalize
from splitter.graph import Graph
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.partition.catalogue import catalogue
from splitter.plan import Plan
from splitter.quantize import calibrate, quantize
from splitter.quantize.choice import CANDIDATES
from splitter.quantize.demands import demands_of
from splitter.support import judge
from splitter.targets import load_target
from splitter.tflite.write import write
from splitter.width import units_on

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = load_target("imx95")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return equalize(layout(normalize(load(ROOT / "models" / "rf_detr_tiny.onnx"))))


@pytest.fixture(scope="module")
def plans(graph: Graph) -> list[Plan]:
    found = catalogue(graph, judge(graph, TARGET, trust="proxy"), TARGET, count=10)
    return [entry.plan for entry in found.entries]


def samples() -> list[dict[str, np.ndarray]]:
    shape = (1, 3, 128, 128)
    return [{"input": np.random.default_rng(0).normal(size=shape).astype(np.float32)}]


def test_every_lowering_that_a_plan_uses_is_in_the_graph_side_by_side(
    graph: Graph, plans: list[Plan]
) -> None:
    merged, names = side_by_side(graph, plans)
    assert names
    for plan in plans:
        for op in lower(graph, plan.lowerings).operators:
            table = names.get((op.unit, plan.lowerings[op.unit]), {})
            for name in op.outputs:
                assert table.get(name, name) in merged.tensors, name


def test_the_first_plan_has_the_very_bytes_of_a_calibration_of_its_own(
    graph: Graph, plans: list[Plan]
) -> None:
    first = plans[0]
    workshop = Workshop(graph, plans, samples(), threads=2)
    clip = workshop.choose_clip(TARGET)
    lite = lower(graph, first.lowerings)
    alone = quantize(
        lite,
        calibrate(lite, samples()),
        npu=units_on(first, "npu"),
        demands=demands_of(TARGET),
        clip=CANDIDATES[clip],
    )
    assert write(workshop.integers(first, TARGET).whole) == write(alone)
