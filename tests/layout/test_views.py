"""Views: any chain of reshapes and transposes, in any stored order, is at most one Transpose."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.layout.views import (
    MAX_RANK,
    Steps,
    View,
    group,
    perm_for,
    pieces,
    source_groups,
    steps,
    stored,
)

Shape = tuple[int, ...]
lengths = st.sampled_from([1, 2, 3, 4, 6])


def apply(array: np.ndarray, plan: Steps) -> np.ndarray:
    if plan.before is not None:
        array = array.reshape(plan.before)
    if plan.perm is not None:
        array = array.transpose(plan.perm)
    return array if plan.after is None else array.reshape(plan.after)


@st.composite
def chains(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, View | None]:
    """(source, target, view): a source, what a random chain makes of it, and the chain's view."""
    shape = tuple(draw(st.lists(lengths, min_size=1, max_size=4)))
    source = np.arange(prod(shape)).reshape(shape)
    target, view = source, View.of(shape)
    for _ in range(draw(st.integers(0, 4))):
        following: View | None
        if draw(st.booleans()):
            perm = tuple(draw(st.permutations(range(target.ndim))))
            following = view.transposed(target.shape, perm)
            target = target.transpose(perm)
        else:
            rest, parts = target.size, []
            while rest > 1 and len(parts) < 4:
                factor = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
                parts.append(factor)
                rest //= factor
            target = target.reshape((*parts, rest))
            following = view.reshaped(target.shape)
        if following is None:
            return source, target, None
        view = following
    return source, target, view


@settings(max_examples=400, deadline=None)
@given(chains(), st.data())
def test_the_steps_compute_what_the_chain_computes(
    chain: tuple[np.ndarray, np.ndarray, View | None], data: st.DataObject
) -> None:
    source, target, view = chain
    fine = view.reshaped(target.shape) if view is not None else None
    if fine is None:
        return
    before = tuple(data.draw(st.permutations(range(source.ndim))))
    after = tuple(data.draw(st.permutations(range(target.ndim))))
    have = stored(source_groups(fine, source.shape), before)
    want = stored(group(fine, target.shape), after)
    start, end = source.transpose(before), target.transpose(after)
    plan = steps(fine.sizes, have, want, start.shape, end.shape)
    made = apply(start, plan)
    assert made.shape == end.shape and np.array_equal(made, end)
    if np.array_equal(start.reshape(-1), end.reshape(-1)):
        assert plan.perm is None


def test_a_transpose_that_moves_only_ones_is_none() -> None:
    view = View.of((1, 5, 1, 7)).transposed((1, 5, 1, 7), (2, 1, 3, 0))
    assert view is not None and view.order == (0, 1)


def test_lengths_without_common_factors_have_no_view() -> None:
    view = View.of((2, 3)).transposed((2, 3), (1, 0))
    assert view is not None and view.reshaped((2, 3)) is None


def test_splitting_heads_needs_one_transpose_of_rank_four() -> None:
    view = View.of((1, 65, 96)).reshaped((1, 65, 3, 32))
    assert view is not None
    view = view.transposed((1, 65, 3, 32), (0, 2, 1, 3))
    assert view is not None
    have, want = stored(source_groups(view, (1, 65, 96)), (0, 1, 2)), view.order
    plan = steps(view.sizes, have, want, (1, 65, 96), (1, 3, 65, 32))
    assert plan == Steps((1, 65, 3, 32), (0, 2, 1, 3), None)


def test_a_window_partition_stays_within_rank_four() -> None:
    view = View.of((1, 16, 16, 96)).reshaped((2, 8, 2, 8, 96))
    assert view is not None
    view = view.transposed((2, 8, 2, 8, 96), (0, 2, 1, 3, 4))
    view = view.reshaped((4, 64, 96)) if view is not None else None
    assert view is not None
    have = stored(source_groups(view, (1, 16, 16, 96)), (0, 1, 2, 3))
    plan = steps(view.sizes, have, view.order, (1, 16, 16, 96), (4, 64, 96))
    assert plan.perm is not None and len(plan.perm) <= MAX_RANK


def test_axes_of_length_one_follow_the_given_order() -> None:
    groups = [(), (0,), (), (1,)]
    assert perm_for(groups, (0, 1), like=(0, 2, 3, 1)) == (0, 1, 2, 3)
    assert perm_for(groups, (1, 0), like=(0, 2, 3, 1)) == (0, 2, 3, 1)
    assert perm_for([(0, 1), (2,)], (0, 2, 1)) is None


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_transpose_of_many_axes_is_several_of_few(data: st.DataObject) -> None:
    perm = tuple(data.draw(st.permutations(range(data.draw(st.integers(2, 9))))))
    shape = tuple(data.draw(st.sampled_from([2, 3])) for _ in perm)
    source = np.arange(prod(shape))
    moved = source
    for lengths_before, part in pieces(shape, perm):
        assert len(part) <= MAX_RANK
        moved = moved.reshape(lengths_before).transpose(part).reshape(-1)
    assert np.array_equal(moved, source.reshape(shape).transpose(perm).reshape(-1))
