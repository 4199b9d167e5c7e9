"""How much of a range the integers cover."""

from __future__ import annotations

import numpy as np

from splitter.quantize.clipping import SHRINK, least_squares
from splitter.quantize.ranges import Range


def test_rare_extremes_are_given_up_where_that_keeps_the_bulk_more_exact() -> None:
    values = np.r_[np.linspace(-1, 1, 400_000), 3.0].astype(np.float32)
    low, high = least_squares(Range(-1.0, 3.0, values), False)
    assert high < 3.0 and low <= -0.9
    evenly = np.linspace(-1, 3, 4000).astype(np.float32)
    assert least_squares(Range(-1.0, 3.0, evenly), False) == (-1.0, 3.0)


def test_scores_whose_exponential_rounds_to_0_may_saturate() -> None:
    values = np.linspace(-40, 0, 4000).astype(np.float32)
    low, _ = least_squares(Range(-40.0, 0.0, values), False, np.exp)
    assert low >= -40.0 * min(SHRINK)
