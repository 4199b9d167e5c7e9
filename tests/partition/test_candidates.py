"""The plans of a graph: covering, ordered, by the wishes of the user and their refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Graph, Unit, Value
from splitter.layout import layout
from splitter.model import Model
from splitter.normalize import normalize
from splitter.partition import plan
from splitter.plan import Plan
from splitter.rules.support import judge
from splitter.rules.targets import load_target


def chain(*units: tuple[str, str, tuple[str, ...], str]) -> Graph:
    """Units (name, op, inputs, output) over values [1, 64, 64]; input "x", output the last."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(64, 64)).astype(np.float32)
    values = {"x": Value("x", (1, 64, 64), "float32"), "w": Value("w", (64, 64), "float32")}
    made = []
    for name, op, inputs, output in units:
        values[output] = Value(output, (1, 64, 64), "float32")
        made.append(Unit(name, op, inputs, (output,), {"axis": -1}, (f"/{name}/{op}",)))
    return Graph(("x",), (units[-1][3],), values, {"w": weight}, tuple(made))


IMX95 = load_target("imx95")
ISLAND = chain(
    ("a", "FullyConnected", ("x", "w"), "t1"),
    ("b", "FullyConnected", ("t1", "w"), "t2"),
    ("sine", "Sin", ("t2",), "t3"),
    ("c", "FullyConnected", ("t3", "w"), "t4"),
    ("join", "Add", ("t4", "t1"), "y"),
)


def plans(
    graph: Graph,
    name: str = "imx95",
    *,
    max_segments: int | None = None,
    npu_segments: int | None = None,
    **wishes: tuple[str, ...],
) -> tuple[Plan, ...]:
    target = load_target(name)
    support = judge(graph, target, trust="proxy")
    return plan(
        graph, support, target, max_segments=max_segments, npu_segments=npu_segments, **wishes
    )


def test_every_candidate_covers_every_unit_once_and_only_reads_backwards() -> None:
    for candidate in plans(ISLAND):
        placed = [unit for segment in candidate.segments for unit in segment.units]
        assert sorted(placed) == sorted(unit.name for unit in ISLAND.units)
        assert set(candidate.lowerings) == set(placed)
        position = {name: i for i, s in enumerate(candidate.segments) for name in s.units}
        assert all(position[a] <= position[b] for a, b, _ in ISLAND.edges())


def test_what_follows_an_unsupported_unit_is_on_the_cpu_when_two_segments_are_allowed() -> None:
    for candidate in plans(ISLAND, max_segments=2):
        if len(candidate.segments) > 2:
            continue
        assert all(candidate.device(name) == "cpu" for name in ("sine", "c", "join"))


def test_candidates_come_best_first_with_the_cpu_alone_among_them() -> None:
    candidates = plans(ISLAND)
    totals = [candidate.cost.total_ms for candidate in candidates]
    assert totals == sorted(totals)
    assert "all on the CPU" in [candidate.name for candidate in candidates]


def test_a_target_without_npu_has_one_plan() -> None:
    (only,) = plans(ISLAND, "cpu")
    assert [segment.device for segment in only.segments] == ["cpu"]
    assert only.cost.npu_ms == only.cost.transfer_ms == only.cost.invoke_ms == 0.0


def test_lowerings_follow_the_device() -> None:
    graph = chain(
        ("heavy", "FullyConnected", ("x", "w"), "t"),
        ("act", "Gelu", ("t",), "y"),
    )
    here = plans(graph, npu=("act",))[0]
    there = plans(graph, cpu=("act",))[0]
    assert here.lowerings["act"] == "logistic"
    assert there.lowerings["act"] == "gelu"


def test_pins_take_unit_names_and_onnx_node_names() -> None:
    assert plans(ISLAND, cpu=("/b/FullyConnected",))[0].device("b") == "cpu"
    assert plans(ISLAND, npu=("b",))[0].device("a") == "npu"


def test_a_cut_is_the_first_candidate_and_holds_what_feeds_it() -> None:
    first = plans(ISLAND, cut=("t1",))[0]
    assert first.name == "cut at t1"
    assert first.segments[0].units == ("a",)


def test_unknown_names_are_refused_together_with_the_nearest() -> None:
    with pytest.raises(SplitterError) as caught:
        plans(ISLAND, npu=("bb",), cpu=("sin",), cut=("t9",))
    for part in ("--npu bb", "--cpu sin", "did you mean sine", "--cut t9"):
        assert part in str(caught.value)


def test_a_cut_after_an_unsupported_unit_is_refused_with_its_reason() -> None:
    with pytest.raises(SplitterError, match=r"sine \(Sin\).*SIN is not listed"):
        plans(ISLAND, cut=("t4",))


def test_contradicting_pins_are_refused() -> None:
    with pytest.raises(SplitterError, match=r"a \(FullyConnected\): --cpu"):
        plans(ISLAND, npu=("b",), cpu=("a",), max_segments=2)


def test_a_unit_on_the_npu_may_follow_one_on_the_cpu_when_more_segments_are_allowed() -> None:
    first = plans(ISLAND, npu=("b", "c"), cpu=("a",))[0]
    assert [segment.device for segment in first.segments] == ["cpu", "npu", "cpu", "npu"]
    assert first.device("sine") == "cpu"


def test_an_island_is_given_back_to_the_cpu_when_no_further_segment_is_worth_its_call() -> None:
    assert len(plans(ISLAND)[0].segments) <= 2
    assert plans(ISLAND, max_segments=3)[0].cost.total_ms <= plans(ISLAND)[0].cost.total_ms


def test_one_segment_on_the_npu_may_stand_between_two_on_the_cpu() -> None:
    middle = chain(
        ("sine", "Sin", ("x",), "t0"),
        *((f"{i}", "FullyConnected", (f"t{i}", "w"), f"t{i + 1}") for i in range(8)),
        ("cosine", "Cos", ("t8",), "y"),
    )
    assert len(plans(middle, max_segments=2)[0].segments) <= 2
    first = plans(middle, npu_segments=1)[0]
    assert [segment.device for segment in first.segments] == ["cpu", "npu", "cpu"]
    assert len(plans(ISLAND, npu_segments=1, npu=("b",))[0].segments) == 2


def test_units_on_either_side_of_an_island_do_not_fit_one_segment_on_the_npu() -> None:
    with pytest.raises(SplitterError, match=r"1 on the NPU, has every unit.*\n.*--max-segments"):
        plans(ISLAND, npu_segments=1, npu=("b", "c"))
    plans(ISLAND, max_segments=3, npu=("b", "c"))


def test_a_cut_may_be_followed_by_more_segments_when_they_are_allowed() -> None:
    first = plans(ISLAND, cut=("t2",), npu=("join",), max_segments=3)[0]
    assert [segment.device for segment in first.segments] == ["npu", "cpu", "npu"]
    assert first.segments[0].units == ("a", "b")
    assert first.device("join") == "npu"


def test_pins_that_no_number_of_segments_allows_are_refused() -> None:
    with pytest.raises(SplitterError, match="no plan of at most 3 segments"):
        plans(ISLAND, npu=("b", "c"), cpu=("a",), max_segments=3)


FUSED = """
<ir_version: 8, opset_import: ["" : 18]>
chain (float[1,8,16] x) => (float[1,8,16] y)
<float[16,16] w = {0}, float[16] b = {0}, float[1] one = {1.0}, float[1] two = {2.0}>
{
    m = MatMul (x, w)
    sum = Add (m, b)
    table = Add (one, two)
    r = Sigmoid (sum)
    s = Sin (r)
    y = Mul (s, table)
}
"""


def from_onnx(text: str) -> tuple[Graph, dict[str, str]]:
    """The graph of an ONNX text and the node, named node_VALUE, that makes each of its values."""
    proto = onnx.parser.parse_model(text)
    for node in proto.graph.node:
        node.name = f"node_{node.output[0]}"
    for tensor in proto.graph.initializer:
        values = np.resize(np.linspace(-1, 1, 31, dtype=np.float32), tuple(tensor.dims))
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    shape = Value("x", (1, 8, 16), "float32"), Value("y", (1, 8, 16), "float32")
    model = Model(proto, Path("chain.onnx"), "", shape[:1], shape[1:])
    return layout(normalize(model)), model.makers


@pytest.mark.parametrize("name", ["sum", "node_sum", "m", "node_m"])
def test_a_cut_takes_values_and_nodes_of_the_onnx_file(name: str) -> None:
    graph, makers = from_onnx(FUSED)
    support = judge(graph, IMX95, trust="proxy")
    first = plan(graph, support, IMX95, cut=(name,), makers=makers)[0]
    (unit,) = (graph.unit[name] for name in first.segments[0].units)
    assert unit.op == "FullyConnected"
    inside = " (in sum)" if name == "m" else ""
    assert first.name == f"cut at {name}{inside}"


@pytest.mark.parametrize("name", ["r", "node_r"])
def test_pins_take_values_and_nodes_of_the_onnx_file(name: str) -> None:
    graph, makers = from_onnx(FUSED)
    support = judge(graph, IMX95, trust="proxy")
    unit = next(unit for unit in graph.units if "node_r" in unit.nodes)
    first = plan(graph, support, IMX95, cpu=(name,), makers=makers)[0]
    assert first.device(unit.name) == "cpu"
    pinned = plan(graph, support, IMX95, npu=(name,), makers=makers)[0]
    assert pinned.device(unit.name) == "npu"


def test_names_of_what_is_no_longer_computed_or_given_are_told_apart_from_unknown_ones() -> None:
    graph, makers = from_onnx(FUSED)
    support = judge(graph, IMX95, trust="proxy")
    with pytest.raises(SplitterError) as caught:
        plan(graph, support, IMX95, cut=("table", "x"), cpu=("node_q",), makers=makers)
    message = str(caught.value)
    assert "--cut table: no longer computed" in message
    assert "--cut x: an input of the model" in message
    assert "--cpu node_q: no such node, value or unit; did you mean node_" in message
