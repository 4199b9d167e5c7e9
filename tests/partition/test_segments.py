"""Any number of segments: as good as brute force, and what a placement costs."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from splitter.partition.contract import contract
from splitter.partition.mincut import Passage, Problem, best_prefix, prefix_ms
from splitter.partition.proof import proven
from splitter.partition.segments import best_placements
from splitter.partition.stages import compacted, pinned, segments_of, staged_ms
from tests.partition.problems import least_ms, problems

CALLS = st.sampled_from([0.0, 1.0, 3.0, 8.0])


def found_ms(problem: Problem, invoke: float, most: int) -> float:
    """The cheapest placement as the planner finds it, checked against its own levels."""
    small = contract(problem)
    found = proven(small.problem, invoke, most, best_placements(small.problem, invoke, most))
    for shape, one in found.items():
        levels = small.expanded(one.levels)
        assert shape.segments == segments_of(levels) <= most
        assert all(
            levels[feeder] <= levels[unit]
            for unit, feeders in enumerate(problem.feeders)
            for feeder in feeders
        )
        assert staged_ms(problem, levels, invoke) == pytest.approx(one.ms)
    return min(one.ms for one in found.values())


NPU_FIRST = Problem(
    (None, 0.0, None, None, None, 0.0, None),
    (0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (Passage(1, (5,), 0.0), Passage(5, (), 1.0, True)),
)
"""Best as NPU | CPU, for 0 ms; CPU | NPU costs 1 ms and has the same shape."""


@settings(max_examples=40, deadline=None)
@given(problems(largest=12), CALLS, st.integers(1, 5))
@example(NPU_FIRST, 0.0, 2)
def test_no_placement_is_cheaper_than_the_one_found(
    problem: Problem, invoke: float, most: int
) -> None:
    found = found_ms(problem, invoke, most)
    assert least_ms(problem, invoke, most, bound=found + 1e-6) >= found - 1e-6


@settings(max_examples=80, deadline=None)
@given(problems(largest=7), CALLS, st.integers(1, 4))
def test_joined_units_have_the_same_least_cost(problem: Problem, invoke: float, most: int) -> None:
    small = contract(problem)
    assert sorted(unit for units in small.members for unit in units) == list(
        range(len(problem.outside))
    )
    assert least_ms(small.problem, invoke, most) == pytest.approx(least_ms(problem, invoke, most))


@settings(max_examples=80, deadline=None)
@given(problems())
def test_two_segments_cost_what_a_prefix_costs(problem: Problem) -> None:
    prefix = best_prefix(problem)
    levels = tuple(0 if unit in prefix else 1 for unit in range(len(problem.outside)))
    assert staged_ms(problem, levels, 0.0) == pytest.approx(prefix_ms(problem, prefix))


def test_a_tensor_is_paid_once_however_many_segments_read_it() -> None:
    problem = Problem((1.0,) * 3, (1.0,) * 3, (Passage(0, (1, 2), 6.0),))
    assert staged_ms(problem, (0, 1, 2), 0.0) == 3.0 + 6.0
    assert staged_ms(problem, (1, 2, 4), 0.0) == 3.0 + 6.0
    assert staged_ms(problem, (0, 0, 2), 0.0) == 3.0 + 6.0
    assert staged_ms(problem, (0, 0, 0), 0.0) == 3.0
    assert staged_ms(problem, (1, 1, 3), 0.0) == 3.0


def test_every_call_of_the_npu_is_paid() -> None:
    problem = Problem((1.0, None, 1.0), (9.0, 1.0, 9.0), ())
    assert staged_ms(problem, (0, 1, 2), 5.0) == 3.0 + 10.0
    assert staged_ms(problem, (1, 1, 1), 5.0) == 19.0


def test_what_cannot_be_costs_infinitely_much() -> None:
    problem = Problem((None, 1.0), (1.0, 1.0), ())
    assert staged_ms(problem, (0, 0), 0.0) == inf
    assert staged_ms(pinned(problem, npu=(1,)), (1, 1), 0.0) == inf
    assert staged_ms(pinned(problem, cpu=(1,)), (1, 2), 0.0) == inf


def test_empty_levels_go_and_neighbors_on_one_device_are_one_segment() -> None:
    assert compacted((0, 2, 5)) == (0, 0, 1)
    assert compacted((3, 4, 7)) == (1, 2, 3)
    assert segments_of(compacted((0, 2, 2))) == 1


def test_an_island_is_found_where_both_sides_gain() -> None:
    chain = tuple(Passage(unit, (unit + 1,), 0.5) for unit in range(4))
    problem = Problem((1.0, 1.0, None, 1.0, 1.0), (9.0, 9.0, 1.0, 9.0, 9.0), chain)
    found = best_placements(problem, 0.1, 5)
    best = min(found.values(), key=lambda one: one.ms)
    assert best.levels == (0, 0, 1, 2, 2)
    assert best.ms == pytest.approx(5.0 + 1.0 + 0.2)


def test_ten_thousand_units_are_placed_on_several_segments() -> None:
    size = 10_000
    passages = [Passage(None, (0,), 0.5)]
    for i in range(size - 1):
        readers = tuple(j for j in (i + 1, i + 7, i + 40) if j < size and (j == i + 1 or i % 5 < 2))
        passages.append(Passage(i, readers, 0.01 + (i * 37 % 101) / 100))
    inside = tuple(None if 4_000 < i < 4_200 and i % 50 == 0 else 0.01 for i in range(size))
    outside = tuple(0.02 + (i * 53 % 97) / 100 for i in range(size))
    problem = Problem(inside, outside, (*passages, Passage(size - 1, (), 0.1, True)))
    small = contract(problem)
    found = best_placements(small.problem, 0.1, 5)
    best = min(found.values(), key=lambda one: one.ms)
    assert best.segments > 2
    assert staged_ms(problem, small.expanded(best.levels), 0.1) == pytest.approx(best.ms)
