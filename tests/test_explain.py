"""Why units are on the CPU, what would move them, and what an assumption gains."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitter.diagnostics import SplitterError
from splitter.explain import assume
from splitter.explaintext import Explained
from splitter.explanation import explanation
from splitter.targets import load_target

TINY = Path(__file__).parents[1] / "models" / "rf_detr_tiny.onnx"


@pytest.fixture(scope="module")
def u55() -> Explained:
    return explanation(TINY, "ethos-u55")


def test_every_unit_on_the_cpu_is_explained_once_most_expensive_first(u55: Explained) -> None:
    on_cpu = [u for s in u55.before.segments if s.device == "cpu" for u in s.units]
    assert sorted(unit for kind in u55.kinds for unit in kind.units) == sorted(on_cpu)
    costs = [kind.ms for kind in u55.kinds]
    assert costs == sorted(costs, reverse=True)


def test_a_kind_that_breaks_rules_has_all_reasons_and_a_way_out(u55: Explained) -> None:
    broken = [kind for kind in u55.kinds if not kind.fits]
    assert broken
    assert all(kind.attempts and kind.moves for kind in broken)
    top = next(kind for kind in u55.kinds if kind.op == "TopK")
    (reason,) = [r for why in top.attempts.values() for r in why if r.rule == "TOPK_V2"]
    assert reason.file == "rules/ethos-u55.toml"
    assert any("--assume TOPK_V2" in move for move in top.moves)


def test_an_assumption_puts_more_on_the_npu_or_says_that_it_gains_nothing() -> None:
    found = explanation(TINY, "imx95", assumed=("SIN", "cos"))
    assert found.after is not None
    assert not {"Sin", "Cos"} & {kind.op for kind in found.kinds if not kind.fits}
    assert "gain:" in found.to_text()
    assert found.to_json()["gain_ms"] == found.gain_ms


def test_one_node_is_explained_wherever_it_sits() -> None:
    node = "/transformer/decoder/Cos"
    (kind,) = explanation(TINY, "imx95", node=node).kinds
    assert kind.op == "Cos"
    with pytest.raises(SplitterError) as caught:
        explanation(TINY, "imx95", node="/transformer/decoder/Coz")
    assert node in caught.value.hint


def test_rules_about_onnx_are_explained_by_onnx_operators() -> None:
    text = explanation(TINY, "rk3588").to_text()
    assert "Transpose.h is" in text
    assert "rules/rk3588.toml" in text


def test_an_assumption_of_no_operator_or_without_figures_is_refused() -> None:
    with pytest.raises(SplitterError, match="TOPK_V3"):
        assume(load_target("imx95"), ["TOPK_V3"])
    with pytest.raises(SplitterError, match="no figures"):
        assume(load_target("aries2"), ["Conv"])
