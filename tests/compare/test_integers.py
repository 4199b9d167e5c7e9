"""One calibration serves all plans: the integer models are those that a plan's own would give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from splitter.compare.chunks import Machine, Memory, digest_of, ranks
from splitter.compare.integers import Workshop, side_by_side
from splitter.equalize import equalize
from splitter.glue.board.numbers import quantize as quantize_input
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
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.tail import carrier
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Quantization
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


@pytest.fixture(scope="module")
def workshop(graph: Graph, plans: list[Plan]) -> Workshop:
    return Workshop(graph, plans, samples(), threads=2)


def test_the_first_plan_has_the_very_bytes_of_a_calibration_of_its_own(
    graph: Graph, plans: list[Plan], workshop: Workshop
) -> None:
    clip = workshop.choose_clip(TARGET)
    lite = lower(graph, plans[0].lowerings)
    alone = quantize(
        lite,
        calibrate(lite, samples()),
        npu=units_on(plans[0], "npu"),
        demands=demands_of(TARGET),
        clip=CANDIDATES[clip],
    )
    assert write(workshop.integers(plans[0], TARGET).whole) == write(alone)


def test_chunks_compute_the_integers_of_the_whole_and_are_run_once_for_several_plans(
    plans: list[Plan], workshop: Workshop
) -> None:
    memory = Memory()
    sizes = []
    for plan in (plans[0], plans[2], plans[-1]):
        made = workshop.integers(plan, TARGET)
        feeds = {
            name: quantize_input(samples()[0][name], carrier(made.whole.tensors[name]))
            for name in made.whole.inputs
        }
        machine = Machine(made.chunks, memory)
        raw = machine.run(feeds)
        for name, expected in Interpreter(write(made.whole)).run(feeds).items():
            np.testing.assert_array_equal(raw[name], expected, err_msg=f"{plan.name}: {name}")
        sizes.append(len(memory.results))
        cpu = {i for i, s in enumerate(plan.segments) if s.device == "cpu"}
        assert set(machine.cpu_ms) <= cpu and all(ms > 0 for ms in machine.cpu_ms.values())
    assert sizes[1] - sizes[0] <= 1 < sizes[0]


def test_no_unit_has_a_higher_rank_than_one_that_reads_it(graph: Graph, plans: list[Plan]) -> None:
    rank = ranks(plans)
    assert len(set(rank.values())) > 5
    for maker, reader, _ in graph.edges():
        assert rank[maker] <= rank[reader]


def test_a_digest_tells_graphs_apart_by_weights_and_parameters(
    plans: list[Plan], workshop: Workshop
) -> None:
    whole = workshop.integers(plans[0], TARGET).whole
    assert digest_of(whole) == digest_of(workshop.integers(plans[0], TARGET).whole)
    tensor = next(t for t in whole.tensors.values() if t.data is not None and t.data.size > 9)
    assert tensor.data is not None
    other = replace(tensor, data=np.roll(tensor.data, 1))
    scaled = next(t for t in whole.tensors.values() if t.quantization is not None)
    assert scaled.quantization is not None
    double = replace(scaled, quantization=Quantization((2 * scaled.quantization.scale[0],), (0,)))
    for one in (other, double):
        changed = replace(whole, tensors={**whole.tensors, one.name: one})
        assert digest_of(changed) != digest_of(whole)
