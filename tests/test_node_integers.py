"""Every ONNX node test that passes in float runs in int8 too, or is refused; few are far off."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.node_integers import Integers, run_integers
from tests.node_suite import node_tests


@pytest.fixture(scope="module")
def found() -> Mapping[str, Integers]:
    return run_integers(node_tests())


@pytest.mark.slow
def test_none_aborts_or_raises_anything_but_a_refusal(found: Mapping[str, Integers]) -> None:
    broken = {name: one.reason for name, one in found.items() if one.kind == "broken"}
    assert not broken


@pytest.mark.slow
def test_at_most_one_in_forty_is_far_off(found: Mapping[str, Integers]) -> None:
    ran = {name: one for name, one in found.items() if one.kind in ("near", "gross")}
    gross = {name: round(one.error, 2) for name, one in ran.items() if one.kind == "gross"}
    assert len(ran) > 900
    assert len(gross) <= len(ran) / 40, gross


@pytest.mark.slow
def test_few_are_refused_in_integers_alone(found: Mapping[str, Integers]) -> None:
    refused = {name: one.reason for name, one in found.items() if one.kind == "refused"}
    assert len(refused) <= 10, refused
