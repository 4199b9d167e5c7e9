"""Every ONNX node test passes, is refused with a reason, or is out of scope; none is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.node_suite import Outcome, node_tests, run_suite

PASSED = ("pass", "pass with constants")


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    return run_suite(node_tests())


@pytest.mark.slow
@pytest.mark.parametrize("name", node_tests())
def test_a_node_test_is_right_or_refused(name: str, outcomes: Mapping[str, Outcome]) -> None:
    found = outcomes[name]
    assert found.kind not in ("wrong", "broken"), f"{found.kind}: {found.reason}"
    assert found.reason or found.kind in PASSED


@pytest.mark.slow
def test_nine_of_ten_in_scope_pass(outcomes: Mapping[str, Outcome]) -> None:
    inside = [found for found in outcomes.values() if found.kind != "out of scope"]
    passed = sum(found.kind in PASSED for found in inside)
    assert passed >= 0.9 * len(inside), f"{passed} of {len(inside)}"
