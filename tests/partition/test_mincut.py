"""Two segments: exact against brute force, wishes heeded, fast on large graphs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.partition.mincut import (
    Passage,
    Problem,
    ancestors,
    best_prefix,
    passing,
    possible,
    prefix_ms,
)
from tests.partition.problems import problems


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
