"""What the names given to `--int16` mean on a graph."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Graph, Unit, Value
from splitter.plan import Cost, Plan, Segment
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.width import find_tensors, free_inputs, off_the_npu, require_wide

SHAPE = (1, 4)
LITE = LiteGraph(
    inputs=("x", "extra"),
    outputs=("scores", "order", "copy"),
    tensors={
        name: Tensor(name, SHAPE, "int32" if name == "order" else "float32")
        for name in ("x", "extra", "features", "copy", "inner", "scores", "order")
    },
    operators=(
        Operator("RELU", ("x",), ("features",), unit="backbone"),
        Operator("RESHAPE", ("features",), ("copy",), unit="view"),
        Operator("ADD", ("features", "extra"), ("inner",), unit="head"),
        Operator("RELU", ("inner",), ("scores",), unit="head"),
        Operator("ARG_MAX", ("scores",), ("order",), unit="sort"),
    ),
)
UNITS = ("backbone", "view", "head", "sort")
GRAPH = Graph(
    LITE.inputs,
    LITE.outputs,
    {name: Value(name, SHAPE, "float32") for name in LITE.tensors},
    {},
    tuple(Unit(u, u, (), (), nodes=(f"/{u}/one", f"/{u}/two")) for u in UNITS),
)
NODES = {"inside_the_head": "/head/one", "folded": "/gone"}


def plan(npu: tuple[str, ...] = ("backbone",)) -> Plan:
    cpu = tuple(unit for unit in UNITS if unit not in npu)
    groups = (("npu", npu), ("cpu", cpu))
    segments = tuple(Segment(device, units) for device, units in groups if units)  # type: ignore[arg-type]
    return Plan("", segments, {}, Cost(0, 0, 0, 0))


def find(*names: str) -> dict[str, frozenset[str]]:
    return find_tensors(names, GRAPH, LITE, plan(), nodes=NODES)


def problem(*names: str) -> str:
    with pytest.raises(SplitterError) as caught:
        find(*names)
    assert caught.value.where == "--int16"
    return str(caught.value)


def test_nothing_asked_is_nothing_found_and_auto_is_no_name() -> None:
    assert find() == {}
    assert find("auto") == {}


def test_a_tensor_is_itself() -> None:
    assert find("scores") == {"scores": frozenset(["scores"])}


def test_a_unit_an_onnx_node_and_an_onnx_value_stand_for_all_that_the_unit_writes() -> None:
    for name in ("head", "/head/two", "inside_the_head"):
        assert find(name) == {name: frozenset(["inner", "scores"])}


def test_an_input_that_only_the_cpu_reads_may_be_named() -> None:
    assert find("extra") == {"extra": frozenset(["extra"])}
    assert free_inputs(LITE, plan()) == ("extra",)


def test_an_unknown_name_offers_the_nearest_ones() -> None:
    assert "did you mean" in problem("score") and "scores" in problem("score")


def test_values_on_the_npu_are_refused_with_the_reason_and_the_way_out() -> None:
    for name in ("features", "backbone", "/backbone/one"):
        assert "takes INT8 only; --cpu backbone moves it" in problem(name)
    assert "x is an input of an NPU part" in problem("x")
    assert "copy only moves what the NPU computes" in problem("copy")


def test_indices_and_folded_values_are_refused() -> None:
    assert "no scale" in problem("sort")
    assert "no longer computed" in problem("folded")


def test_all_mistakes_are_told_at_once() -> None:
    told = problem("score", "features", "sort")
    assert all(name in told for name in ("score is no value", "features is", "sort holds"))


def test_off_the_npu_is_what_the_cpu_computes_without_what_it_only_moves() -> None:
    assert off_the_npu(LITE, plan()) == {"extra", "inner", "scores"}
    everything = {"x", "extra", "features", "copy", "inner", "scores"}
    assert off_the_npu(LITE, plan(())) == everything


def test_a_name_without_effect_in_the_integer_graph_is_an_error() -> None:
    wide = Tensor("scores", SHAPE, "int16", None, Quantization((1.0,), (0,)))
    integer = LiteGraph((), (), {"scores": wide}, ())
    require_wide(integer, {"head": ("inner", "scores")})
    with pytest.raises(SplitterError, match="head cannot have 16 bits"):
        require_wide(integer, {"head": ("inner",)})
