"""The pages of docs/support are what the rule files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitter.rules.page import support_index, support_page
from splitter.rules.targets import load_target, targets

SUPPORT = Path(__file__).parents[2] / "docs" / "support"


@pytest.mark.parametrize("name", targets())
def test_the_page_of_a_target_is_current(name: str) -> None:
    assert (SUPPORT / f"{name}.md").read_text() == support_page(load_target(name)), "make docs"


def test_the_index_is_current_and_there_is_no_page_without_a_target() -> None:
    known = [load_target(name) for name in targets()]
    assert (SUPPORT / "README.md").read_text() == support_index(known), "make docs"
    assert {path.stem for path in SUPPORT.glob("*.md")} == {*targets(), "README"}


def test_a_page_names_every_operator_with_its_limits_and_sources() -> None:
    target = load_target("imx95")
    page = support_page(target)
    for code, rule in target.operators.items():
        assert f"| {code} | {rule.support}" in page
    assert "`rows` at most 4096 (proxy, S1)" in page
    assert all(text in page for text in target.sources.values())
