"""What `split rules show` prints: a target's rules, or one operator's, as text and as data."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError
from splitter.rules.book import counts, rulebook, rules_json
from splitter.rules.targets import load_target, targets

IMX93 = load_target("imx93")


@pytest.mark.parametrize("name", targets())
def test_every_rule_of_a_target_is_shown_with_its_source(name: str) -> None:
    target = load_target(name)
    text = rulebook(target)
    for code in target.operators:
        assert f"\n{code}: " in text
        for address, limit in target.limits(code):
            assert f"{address}: {limit}" in text


def test_one_operator_comes_with_what_holds_for_all_and_only_its_sources() -> None:
    text = rulebook(IMX93, "conv_2d")
    assert "CONV_2D.dilated_h: at most 64, before 5.2.0 (vendor: N1)" in text
    assert "every.rank: at most 4, before 5.2.0" in text
    assert "SOFTMAX" not in text
    assert "S16" not in text


def test_limits_of_another_version_are_left_out() -> None:
    assert "BATCH_MATMUL.columns" in rulebook(IMX93.at("5.2.0"), "BATCH_MATMUL")
    assert "CONV_2D.dilated_h" not in rulebook(IMX93.at("5.2.0"), "CONV_2D")


def test_an_operator_that_is_not_listed_is_an_error_that_says_what_that_means() -> None:
    with pytest.raises(SplitterError) as caught:
        rulebook(IMX93, "softmaxx")
    assert "does not take it" in caught.value.what
    assert "did you mean SOFTMAX" in caught.value.hint


def test_a_target_without_a_public_list_says_what_to_fill_in() -> None:
    target = load_target("aries2")
    assert counts(target)["yes"] == 0
    text = rulebook(target)
    for part in ("to be filled in by you", "[operators.NAME]", "[latency.npu]", "begin with: Add"):
        assert part in text
    assert "to be filled in" not in rulebook(IMX93)


def test_as_data_the_limits_have_their_addresses() -> None:
    found = rules_json(IMX93, "MEAN")
    limits = found["operators"]["MEAN"]["limits"]
    assert {"MEAN.leading", "every.rank"} <= {limit["rule"] for limit in limits}
    assert all(limit["source"] and limit["confidence"] for limit in limits)


def test_an_operator_of_a_later_version_does_not_count_as_taken() -> None:
    assert counts(IMX93)["yes"] < counts(IMX93.at("5.2.0"))["yes"]
