"""The planner: exact against brute force, wishes and their refusals, fast on large graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.diagnostics import SplitterError
from splitter.graph import Graph, Unit, Value
from splitter.mincut import Passage, Problem, ancestors, best_prefix, passing, possible, prefix_ms
from splitter.partition import plan
from splitter.plan import Plan
from splitter.support import judge
from splitter.targets import load_target

COSTS = st.integers(0, 20).map(float)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Random DAGs of up to 9 units, some impossible inside, tensors read by any later units."""
    size = draw(st.integers(1, 9))
    inside = tuple(draw(st.one_of(st.none(), COSTS)) for _ in range(size))
    outside = tuple(draw(COSTS) for _ in range(size))
    passages = []
    for producer in (None, None, *range(size)):
        later = range(0 if producer is None else producer + 1, size)
        readers = tuple(i for i in later if draw(st.booleans()) and draw(st.booleans()))
        leaves = producer is not None and draw(st.booleans())
        if readers or leaves:
            passages.append(Passage(producer, readers, draw(COSTS), leaves))
    return Problem(inside, outside, tuple(passages))


def closed(problem: Problem) -> list[frozenset[int]]:
    """Every closed prefix, by trying all sets."""
    units = sorted(possible(problem))
    sets = (
        frozenset(chosen)
        for count in range(len(units) + 1)
        for chosen in itertools.combinations(units, count)
    )
    return [chosen for chosen in sets if ancestors(problem, chosen) == chosen]


@settings(max_examples=150, deadline=None)
@given(problems())
def test_min_cut_finds_what_brute_force_finds(problem: Problem) -> None:
    prefix = best_prefix(problem)
    best = min(prefix_ms(problem, chosen) for chosen in closed(problem))
    assert ancestors(problem, prefix) == prefix
    assert prefix_ms(problem, prefix) == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(problems(), st.data())
def test_required_and_barred_units_are_honored_at_least_cost(
    problem: Problem, data: st.DataObject
) -> None:
    units = range(len(problem.outside))
    barred = frozenset(data.draw(st.sets(st.sampled_from(units), max_size=2)))
    able = sorted(possible(problem, barred))
    required = frozenset(data.draw(st.sets(st.sampled_from(able), max_size=2))) if able else ()
    prefix = best_prefix(problem, required=required, barred=barred)
    allowed = [c for c in closed(problem) if set(required) <= c and not c & barred]
    assert prefix in allowed
    assert prefix_ms(problem, prefix) == pytest.approx(
        min(prefix_ms(problem, chosen) for chosen in allowed)
    )


def test_a_tensor_with_many_readers_outside_is_paid_for_once() -> None:
    problem = Problem((0.0, None, None), (10.0, 1.0, 1.0), (Passage(0, (1, 2), 6.0),))
    assert best_prefix(problem) == {0}
    assert prefix_ms(problem, {0}) == 8.0


def test_of_equal_prefixes_the_largest_is_taken() -> None:
    chain = (Passage(0, (1,), 2.0), Passage(1, (2,), 2.0))
    problem = Problem((1.0, 0.0, None), (9.0, 0.0, 1.0), chain)
    assert best_prefix(problem) == {0, 1}


def test_nothing_goes_inside_when_the_passage_costs_more_than_it_saves() -> None:
    problem = Problem((1.0, None), (2.0, 1.0), (Passage(0, (1,), 5.0),))
    assert best_prefix(problem) == frozenset()


def test_ten_thousand_units_are_solved() -> None:
    size = 10_000
    passages = [Passage(None, (0,), 0.5)]
    for i in range(size - 1):
        readers = tuple(j for j in (i + 1, i + 7, i + 40) if j < size and (j == i + 1 or i % 5 < 2))
        passages.append(Passage(i, readers, 0.01 + (i * 37 % 101) / 100))
    inside = tuple(None if i > 9_800 and i % 50 == 0 else 0.01 for i in range(size))
    outside = tuple(0.01 + (i * 53 % 97) / 1000 for i in range(size))
    problem = Problem(inside, outside, (*passages, Passage(size - 1, (), 0.1, True)))
    prefix = best_prefix(problem)
    assert ancestors(problem, prefix) == prefix
    assert len(prefix) > 5_000
    assert passing(problem, prefix)


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


def plans(graph: Graph, name: str = "imx95", **wishes: tuple[str, ...]) -> tuple[Plan, ...]:
    target = load_target(name)
    return plan(graph, judge(graph, target, trust="proxy"), target, **wishes)


def test_every_candidate_covers_every_unit_once_and_only_reads_backwards() -> None:
    for candidate in plans(ISLAND):
        placed = [unit for segment in candidate.segments for unit in segment.units]
        assert sorted(placed) == sorted(unit.name for unit in ISLAND.units)
        assert set(candidate.lowerings) == set(placed)
        position = {name: i for i, s in enumerate(candidate.segments) for name in s.units}
        assert all(position[a] <= position[b] for a, b, _ in ISLAND.edges())


def test_what_follows_an_unsupported_unit_is_on_the_cpu() -> None:
    for candidate in plans(ISLAND):
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
        plans(ISLAND, npu=("b",), cpu=("a",))
