"""Uncertainty of counted decisions: Wilson's interval and the exact McNemar test."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `total`, with the 95 % Wilson score interval (Wilson 1927), all 0..1."""

    count: int
    total: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        if not self.total:
            return "none to count"
        return f"{100 * self.share:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


def share_of(count: int, total: int) -> Share:
    """The share and its interval; nothing known (0 to 1) when `total` is 0."""
    if not total:
        return Share(count, total, 0.0, 0.0, 1.0)
    share = count / total
    spread = Z95 * Z95 / total
    center = (share + spread / 2) / (1 + spread)
    half = Z95 * sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    low = 0.0 if count == 0 else max(0.0, center - half)
    high = 1.0 if count == total else min(1.0, center + half)
    return Share(count, total, share, low, high)


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p value: are right-to-wrong and wrong-to-right changes equally likely?

    first_only: pairs only the first arm got right; second_only: only the second. The binomial
    tail with p = 1/2, doubled, at most 1 (McNemar 1947, exact form).
    """
    changed = first_only + second_only
    tail = sum(comb(changed, k) for k in range(min(first_only, second_only) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**changed)))
