"""What a border costs: bytes alone between TFLite parts, changes of form beside an ONNX part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest

from splitter.graph import Graph, Value
from splitter.latency import transfer_ms
from splitter.layout import layout
from splitter.model import Model
from splitter.normalize import normalize
from splitter.partition import boundary_bytes, passage_ms, plan
from splitter.partition.costs import unit_costs
from splitter.rules.support import judge
from splitter.rules.targets import load_target

PICTURE = """
<ir_version: 8, opset_import: ["" : 18]>
picture (float[1,3,32,32] x) => (float[1,8] y, float[1,8,32,32] z)
<float[8,3,3,3] w = {0}, float[8,8,3,3] v = {0}>
{
    a = Conv <pads = [1,1,1,1]> (x, w)
    b = Conv <pads = [1,1,1,1]> (a, v)
    z = Sin (b)
    m = ReduceMean <keepdims = 0> (b, axes)
    y = Sigmoid (m)
}
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    proto = onnx.parser.parse_model(PICTURE)
    for node in proto.graph.node:
        node.name = f"node_{node.output[0]}"
    for tensor in proto.graph.initializer:
        values = np.resize(np.linspace(-1, 1, 31, dtype=np.float32), tuple(tensor.dims))
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 3]), "axes"))
    inputs = (Value("x", (1, 3, 32, 32), "float32"),)
    outputs = (Value("y", (1, 8), "float32"), Value("z", (1, 8, 32, 32), "float32"))
    return layout(normalize(Model(proto, Path("picture.onnx"), "", inputs, outputs)))


def spatial(graph: Graph) -> str:
    """A value between units that is stored in another order than in the ONNX file."""
    (name, *_) = (n for n in graph.producers if graph.values[n].axes == (0, 2, 3, 1))
    return name


def test_between_tflite_parts_only_bytes_are_paid_for(graph: Graph) -> None:
    target = load_target("imx95")
    for name in (*graph.inputs, *graph.producers):
        assert passage_ms(graph, name, target) == transfer_ms(boundary_bytes(graph, name), target)


@pytest.mark.parametrize("name", ["rk3588", "tidl-am62a"])
def test_beside_an_onnx_part_a_value_changes_its_scale_and_order(graph: Graph, name: str) -> None:
    target = load_target(name)
    moved = spatial(graph)
    elements = graph.values[moved].elements
    classes, each = target.latency.cpu.classes, target.latency.cpu.operator.value
    extra = passage_ms(graph, moved, target) - transfer_ms(elements, target)
    per_element = classes["transpose"].value + classes["elementwise"].value
    assert extra == pytest.approx(2 * each + 1e-6 * elements * per_element)
    flat = next(n for n in graph.producers if graph.values[n].shape == (1, 8) and n != "y")
    extra = passage_ms(graph, flat, target) - transfer_ms(8, target)
    assert extra == pytest.approx(each + 1e-6 * 8 * classes["elementwise"].value)


@pytest.mark.parametrize("name", ["rk3588", "tidl-am62a"])
def test_inputs_and_outputs_of_the_model_change_no_form(graph: Graph, name: str) -> None:
    target = load_target(name)
    for value in ("x", "y"):
        assert passage_ms(graph, value, target) == transfer_ms(boundary_bytes(graph, value), target)


def test_a_plan_pays_for_the_changes_at_its_border(graph: Graph) -> None:
    target = load_target("rk3588")
    cut = plan(graph, judge(graph, target, trust="proxy"), target, cut=(spatial(graph),))[0]
    expected = passage_ms(graph, "x", target) + passage_ms(graph, spatial(graph), target)
    assert cut.cost.transfer_ms == pytest.approx(expected)


def test_what_layout_added_costs_an_onnx_part_nothing(graph: Graph) -> None:
    added = [i for i, unit in enumerate(graph.units) if not unit.nodes]
    assert added
    for name, free in (("rk3588", True), ("imx95", False)):
        target = load_target(name)
        inside, outside = unit_costs(graph, judge(graph, target, trust="proxy"), target)
        for index in added:
            assert (inside[index] == 0.0) == free and outside[index] > 0
