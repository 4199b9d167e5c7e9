"""Intervals and the exact test against known values."""

from __future__ import annotations

from math import comb

import pytest

from splitter.verify.statistics import mcnemar, share_of


def test_wilson_interval_of_the_textbook() -> None:
    share = share_of(15, 148)  # Newcombe 1998, table I, score method
    assert (share.low, share.high) == (
        pytest.approx(0.0624, abs=5e-5),
        pytest.approx(0.1605, abs=5e-5),
    )


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.0, 0.1611), (20, 0.8389, 1.0)])
def test_wilson_interval_stays_in_bounds_at_the_ends(count: int, low: float, high: float) -> None:
    share = share_of(count, 20)
    assert share.low == pytest.approx(low, abs=1e-4)
    assert share.high == pytest.approx(high, abs=1e-4)


def test_nothing_counted_means_nothing_known() -> None:
    share = share_of(0, 0)
    assert (share.low, share.high) == (0.0, 1.0)


@pytest.mark.parametrize(("lost", "gained"), [(235, 191), (9, 2), (0, 6), (3, 3), (1, 0)])
def test_mcnemar_is_the_two_sided_binomial_tail(lost: int, gained: int) -> None:
    total = lost + gained
    tail = sum(
        comb(total, k) for k in range(total + 1) if abs(k - total / 2) >= abs(lost - total / 2)
    )
    assert mcnemar(lost, gained) == pytest.approx(tail / 2**total)


def test_no_change_is_no_evidence() -> None:
    assert mcnemar(0, 0) == 1.0
