"""The estimate on published times that it has not seen, and the rule files that rest on the fit."""

from __future__ import annotations

from statistics import median

import pytest

from bench.latency import FITTED, fit_to, unseen
from bench.published import CHECKS, PUBLISHED
from splitter.refit.figures import figure_at, value_of
from splitter.rules.targets import load_target

TARGETS = tuple(dict.fromkeys(one.target for one in PUBLISHED))


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_left_out_of_the_fit_is_met_within_30_percent(name: str) -> None:
    points = [one for one in PUBLISHED if one.target == name]
    blind = unseen(points, load_target(name))
    errors = [abs(ms / one.ms - 1) for ms, one in zip(blind, points, strict=True)]
    assert median(errors) < 0.3


@pytest.mark.parametrize("name", TARGETS)
def test_the_rule_file_has_the_figures_of_the_fit(name: str) -> None:
    target = load_target(name)
    found = fit_to([one for one in PUBLISHED if one.target == name], target)
    for figure in FITTED:
        address = f"npu.{figure}"
        value = value_of(address, found.costs[address], target)
        assert figure_at(target, address).value == pytest.approx(value, rel=0.02)


def test_what_is_only_checked_is_fitted_to_nothing() -> None:
    fitted = {(one.target, one.network, one.ms) for one in PUBLISHED}
    assert not fitted & {(one.target, one.network, one.ms) for one in CHECKS}
