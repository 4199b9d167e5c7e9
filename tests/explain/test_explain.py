"""Why units are on the CPU, what would move them, and what an assumption gains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from splitter.diagnostics import SplitterError
from splitter.explain import Explained, explanation
from splitter.options import Options

Save = Callable[[str], Path]

TINY = Path(__file__).parents[2] / "models" / "rf_detr_tiny.onnx"

HEAD = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,64,64] x) => (float[1,64,64] y)
"""

ISLAND = (
    HEAD
    + """<float[64,64] w>
{
    a = MatMul(x, w)
    b = Cos(a)
    c = MatMul(b, w)
    size = Constant<value_ints = [1, 64, 64]>()
    d = Reshape(c, size)
    y = Softmax(d)
}
"""
)

LARGE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,8,700,64] x) => (float[1,8,700,64] y) { y = Softmax(x) }
"""

TURNED = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,2,96,96] x) => (float[1,2,96,96] y) { y = Transpose<perm = [0, 1, 3, 2]>(x) }
"""

EXPONENTIAL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,64,64] x) => (float[1,64,64] y) { y = Exp(x) }
"""

COUNTED = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1,64,64] x) => (int64[3,n] y) { h = Relu(x) y = NonZero(h) }
"""

PAIRED = """
<ir_version: 8, opset_import: ["" : 20]>
g (float[1,64,64] x) => (float[1,64,64] y) { h = HardSwish(x) y = Gelu(h) }
"""


@pytest.fixture
def saved(tmp_path: Path) -> Save:
    def save(text: str) -> Path:
        model = onnx.parser.parse_model(text)
        given = {one.name for one in model.graph.initializer}
        for name in ({"w"} & {i for n in model.graph.node for i in n.input}) - given:
            model.graph.initializer.append(
                onnx.helper.make_tensor(name, 1, [64, 64], [0.01] * 64 * 64)
            )
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        return path

    return save


def explained(
    model: Path, target: str, *, node: str = "", assumed: Sequence[str] = (), **more: Any
) -> Explained:
    return explanation(Options(model, target, Path(), **more), node=node, assumed=assumed)


@pytest.fixture(scope="module")
def tiny() -> Explained:
    return explained(TINY, "ethos-u55")


def test_every_unit_on_the_cpu_is_explained_once_most_expensive_first(tiny: Explained) -> None:
    on_cpu = [u for s in tiny.plan.segments if s.device == "cpu" for u in s.units]
    told = [one.unit.name for told in tiny.told for one in told.kind.placed]
    assert sorted(told) == sorted(on_cpu)
    costs = [told.cost_ms for told in tiny.told]
    assert costs == sorted(costs, reverse=True)
    assert all(told.cost_ms >= told.kind.cpu_ms for told in tiny.told)


def test_what_is_refused_has_every_reason_with_its_source_and_a_way_out(tiny: Explained) -> None:
    refused = [told for told in tiny.told if not told.kind.fits]
    assert refused
    for told in refused:
        assert told.ways
        for placed in told.kind.placed:
            reasons = [reason for why in placed.attempts.values() for reason in why]
            assert reasons
            assert all(r.rule and r.limit and r.actual and r.source for r in reasons)
    top = next(told for told in refused if told.kind.op == "TopK")
    assert any("TOPK_V2" in way.text for way in top.ways)


def test_the_text_names_its_sources_once_and_uses_each(tiny: Explained) -> None:
    text = tiny.to_text()
    used = set(re.findall(r" \[(\d+)\]\)", text))
    listed = re.findall(r"^\[(\d+)\] ", text, re.MULTILINE)
    assert used == set(listed)
    assert len(listed) == len(set(listed))


def test_what_waits_for_the_refused_says_for_what(saved: Save) -> None:
    found = explained(saved(ISLAND), "imx95", cpu=("MatMul_c",))
    waiting = {told.kind.op: told for told in found.told if told.kind.fits}
    assert [way.kind for way in waiting["FullyConnected"].ways] == ["segments"]
    assert waiting["FullyConnected"].kind.after == ("Cos",)


def test_units_that_fit_and_wait_for_nothing_are_there_by_the_plan(saved: Save) -> None:
    found = explained(saved(LARGE), "ethos-u85", cpu=("Softmax_y",))
    (told,) = found.told
    assert (told.kind.fits, [way.kind for way in told.ways]) == (True, ["plan"])


def test_the_nearest_version_of_the_tool_that_takes_the_unit_is_offered(saved: Save) -> None:
    path = saved(EXPONENTIAL)
    (told,) = explained(path, "imx95@3.0.1").told
    (way,) = [way for way in told.ways if way.kind == "version"]
    assert way.text.endswith("--target imx95@3.1.2")
    assert all(told.kind.fits for told in explained(path, "imx95@3.1.2").told)
    assert not explained(path, "imx95@3.1.1").told[0].kind.fits


def test_less_trust_is_offered_where_it_suffices(saved: Save) -> None:
    path = saved(PAIRED)
    strict = explained(path, "imx95", node="Gelu", trust="vendor")
    (told,) = strict.told
    (way,) = [way for way in told.ways if way.kind == "trust"]
    level = way.text.rpartition(" ")[2]
    (looser,) = explained(path, "imx95", node="Gelu", trust=level).told
    assert looser.kind.fits


def test_a_size_over_its_limit_says_how_much_smaller_the_input_must_be(saved: Save) -> None:
    found = explained(saved(TURNED), "rk3588", node="y")
    (way,) = [way for told in found.told for way in told.ways]
    assert way.kind == "resolution"
    assert "Transpose.hw 9216 to 4095 (0.44 of it)" in way.text


def test_an_assumed_operator_is_planned_on_the_npu_and_what_it_gains_is_told(saved: Save) -> None:
    path = saved(ISLAND)
    found = explained(path, "imx95", assumed=("cos",))
    assert found.assumed == ("COS",)
    assert found.without is not None
    assert found.gain_ms == found.without.cost.total_ms - found.plan.cost.total_ms
    assert found.gain_ms >= 0
    assert not [told for told in found.told if not told.kind.fits]
    assert f"gain: {found.gain_ms:.2f} ms" in found.to_text()


def test_an_assumption_may_name_an_operator_of_the_model() -> None:
    found = explained(TINY, "imx95", assumed=("TopK",), node="TopK")
    assert all(told.kind.fits for told in found.told)


def test_an_assumed_operator_is_written_as_itself_where_a_rewrite_fits_too(saved: Save) -> None:
    there = ("Gelu_y", "HardSwish_h")
    plain = explained(saved(PAIRED), "imx95", npu=there)
    found = explained(saved(PAIRED), "imx95", npu=there, assumed=("GELU",))
    assert plain.plan.lowerings["Gelu_y"] == "logistic"
    assert found.plan.lowerings["Gelu_y"] == "gelu"


def test_the_rules_about_onnx_are_told_by_onnx_operators(saved: Save) -> None:
    found = explained(saved(ISLAND), "rk3588", node="b")
    (told,) = found.told
    assert list(told.kind.attempts()) == ["Cos"]
    assert explained(saved(ISLAND), "rk3588", node="b", assumed=("Cos",)).told[0].kind.fits


def test_a_node_on_the_npu_says_by_which_rules() -> None:
    node = "/backbone/backbone.0/encoder/encoder/embeddings/patch_embeddings/projection/Conv"
    found = explained(TINY, "imx95", node=node)
    (told,) = found.told
    assert told.kind.device == "npu"
    assert [basis.operator for basis in told.kind.rests_on] == ["CONV_2D"]
    assert "ON THE NPU" in found.to_text()


def test_a_name_that_means_nothing_is_an_error_with_the_nearest(saved: Save) -> None:
    with pytest.raises(SplitterError) as caught:
        explained(TINY, "imx95", node="/transformer/decoder/Coz")
    assert "/transformer/decoder/Cos" in caught.value.hint
    with pytest.raises(SplitterError, match="nothing is left"):
        explained(saved(ISLAND), "imx95", node="size")


def test_an_assumption_of_no_operator_or_without_figures_is_refused(saved: Save) -> None:
    path = saved(ISLAND)
    with pytest.raises(SplitterError, match="topk_v3") as caught:
        explained(path, "imx95", assumed=("topk_v3",))
    assert "TOPK_V2" in caught.value.hint
    with pytest.raises(SplitterError, match="no figures"):
        explained(path, "aries2", assumed=("Conv",))


def test_a_target_without_npu_has_nothing_to_explain(saved: Save) -> None:
    found = explained(saved(ISLAND), "cpu")
    assert found.told == ()
    assert "there is no NPU" in found.to_text()


def test_a_plan_with_nothing_on_the_cpu_says_so(saved: Save) -> None:
    found = explained(saved(PAIRED), "imx95", npu=("Gelu_y", "HardSwish_h"))
    assert found.told == ()
    assert "nothing is on the CPU" in found.to_text()


def test_as_data_every_unit_has_its_own_reasons_and_the_plans_their_times(saved: Save) -> None:
    data = explained(saved(ISLAND), "imx95").to_json()
    assert data["plan"]["total_ms"] > 0
    refused = [kind for kind in data["kinds"] if not kind["fits"]]
    assert [kind["operator"] for kind in refused] == ["Cos"]
    (unit,) = refused[0]["units"]
    assert [reason["rule"] for why in unit["attempts"].values() for reason in why] == ["COS"]
    assert refused[0]["loss_ms_if_all_else_were_taken"] == refused[0]["gain_ms_if_taken_alone"]


def test_what_no_tflite_operator_can_do_is_named_with_the_part_that_does_it(saved: Save) -> None:
    path = saved(COUNTED)
    with pytest.raises(SplitterError, match="NonZero") as caught:
        explained(path, "imx95")
    assert "--cpu-runtime onnxruntime" in caught.value.hint
    found = explained(path, "imx95", cpu_runtime="onnxruntime")
    assert [cause.op for cause in found.no_form] == ["NonZero"]
    assert "IN THE ONNX PART: 1 operators, because of" in found.to_text()
    assert found.to_json()["operators_left_to_onnx"] == 1


def test_operators_that_wait_for_the_same_share_one_line_that_says_what_for() -> None:
    text = explanation(Options(TINY, "imx95", Path())).to_text()
    waiting = text[text.index("TAKEN BY THE NPU, BUT") :]
    ways = [line for line in waiting.splitlines() if line.startswith("-> ")]
    assert len(ways) == len(set(ways)) >= 2
    assert waiting.count(" ms on the NPU") > len(ways)


def test_what_was_added_for_the_layout_is_named_by_the_value_it_turns() -> None:
    text = explanation(Options(TINY, "imx95", Path())).to_text()
    assert re.search(r"\(for the layout of /transformer/\S+\)", text)
    assert not re.search(r"_output_0/\d+", text)
