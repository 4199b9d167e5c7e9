"""The plans of a graph: covering, ordered, by the wishes of the user and their refusals."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Graph, Unit, Value
from splitter.partition import plan
from splitter.plan import Plan
from splitter.support import judge
from splitter.targets import load_target


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
    **wishes: tuple[str, ...],
) -> tuple[Plan, ...]:
    target = load_target(name)
    support = judge(graph, target, trust="proxy")
    return plan(graph, support, target, max_segments=max_segments, **wishes)


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


def test_a_cut_may_be_followed_by_more_segments_when_they_are_allowed() -> None:
    first = plans(ISLAND, cut=("t2",), npu=("join",), max_segments=3)[0]
    assert [segment.device for segment in first.segments] == ["npu", "cpu", "npu"]
    assert first.segments[0].units == ("a", "b")
    assert first.device("join") == "npu"


def test_pins_that_no_number_of_segments_allows_are_refused() -> None:
    with pytest.raises(SplitterError, match="no plan of at most 3 segments"):
        plans(ISLAND, npu=("b", "c"), cpu=("a",), max_segments=3)
