"""Figures come back from measurements that were made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from splitter.diagnostics import SplitterError
from splitter.latency import graph_ms, invoke_ms
from splitter.refit import Refit, refit, write_rule_file
from splitter.refit.figures import costs, figure_at, value_of
from splitter.refit.points import part_point
from splitter.rules.schema import Target
from splitter.rules.targets import load_target, targets

IMX95 = load_target("imx95")
NPU = {"efficiency": 0.4, "depthwise_efficiency": 0.02, "elements": 3.0, "invoke": 0.4}
NPU |= {"transfer": 0.9, "transfer_fixed": 0.03}
CPU = {"convolution": 0.11, "depthwise": 0.2, "elementwise": 3.0, "lookup": 2.2}


def truth(npu: Mapping[str, float], cpu: Mapping[str, float], base: Target = IMX95) -> Target:
    """The target with other figures."""
    latency = base.latency
    assert latency.npu is not None
    new = {n: getattr(latency.npu, n).model_copy(update={"value": v}) for n, v in npu.items()}
    classes = {n: latency.cpu.classes[n].model_copy(update={"value": v}) for n, v in cpu.items()}
    host = latency.cpu.model_copy(update={"classes": {**latency.cpu.classes, **classes}})
    update = {"npu": latency.npu.model_copy(update=new), "cpu": host}
    return base.model_copy(update={"latency": latency.model_copy(update=update)})


def values(found: Refit) -> dict[str, float]:
    return {one.address: one.new for one in found.changes}


def test_the_sum_of_figures_is_the_estimate(board: Callable[[int], Any]) -> None:
    made = board(6)
    for name in ("imx95", "ethos-u55", "rk3588"):
        target = load_target(name)
        known = costs(target)
        for graph in made.graphs:
            for device in ("npu", "cpu"):
                point = part_point("", graph, device, target, 1.0)
                memory = known["npu.memory"]
                ms = sum(count * known[key] for key, count in point.fixed.items())
                ms += sum(
                    max(work * known[key], traffic * memory)
                    for key, work, traffic in zip(
                        point.keys,
                        point.work,
                        point.traffic or [0.0] * len(point.work),
                        strict=True,
                    )
                )
                call = invoke_ms(target) if device == "npu" else 0.0
                assert ms == pytest.approx(graph_ms(graph, device, target) + call)


@pytest.mark.parametrize("name", targets())
def test_a_figure_and_its_cost_are_two_ways_to_say_one_thing(name: str) -> None:
    target = load_target(name)
    for address, cost in costs(target).items():
        assert value_of(address, cost, target) == pytest.approx(figure_at(target, address).value)


def test_the_npu_s_figures_come_back(board: Callable[[int], Any]) -> None:
    found = refit(IMX95, [board(30).measure(truth(NPU, {}), "npu")], devices=["npu"])
    for name, value in NPU.items():
        assert values(found)[f"npu.{name}"] == pytest.approx(value, rel=0.06), name
    assert found.error_after < 0.01 < found.error_before
    assert not any(address.startswith("cpu.") for address in values(found))


def test_the_cpu_s_figures_come_back(board: Callable[[int], Any]) -> None:
    found = refit(IMX95, [board(24).measure(truth({}, CPU), "cpu")], devices=["cpu"])
    for name, value in CPU.items():
        assert values(found)[f"cpu.classes.{name}"] == pytest.approx(value, rel=0.06), name
    assert found.error_after < 0.01


def test_they_come_back_from_noisy_times_too(board: Callable[[int], Any]) -> None:
    path = board(40).measure(truth(NPU, {}), "npu", noise=0.05)
    found = refit(IMX95, [path], devices=["npu"])
    for name in ("efficiency", "depthwise_efficiency", "elements", "transfer"):
        assert values(found)[f"npu.{name}"] == pytest.approx(NPU[name], rel=0.2), name
    assert found.error_after < 0.08


def test_one_measurement_moves_a_device_s_figures_together(board: Callable[[int], Any]) -> None:
    slow = {name: 3 * figure.value for name, figure in IMX95.latency.cpu.classes.items()}
    found = refit(IMX95, [board(1).measure(truth({}, slow), "cpu")], devices=["cpu"])
    moved = {a: v for a, v in values(found).items() if a.startswith("cpu.classes.")}
    assert set(moved) == {f"cpu.classes.{name}" for name in slow}
    for address, value in moved.items():
        assert 1.5 < value / figure_at(IMX95, address).value < 5
    assert sum(one.measured for one in found.changes) <= 1
    assert found.error_after < 0.05


def test_the_right_figures_stay(board: Callable[[int], Any]) -> None:
    found = refit(IMX95, [board(12).measure(IMX95, "npu")], devices=["npu"])
    for one in found.changes:
        assert one.new == pytest.approx(one.old, rel=0.01)


def test_the_new_file_is_a_rule_file_with_other_figures_only(
    board: Callable[[int], Any], tmp_path: Path
) -> None:
    path = board(12).measure(truth(NPU, {}), "npu")
    found = refit(IMX95, [path], devices=["npu"])
    write_rule_file(tmp_path / "my.toml", found, IMX95, [path])
    mine = load_target(str(tmp_path / "my.toml"))
    assert mine.latency.npu is not None
    assert mine.latency.npu.invoke.value == pytest.approx(0.4, rel=0.06)
    assert mine.latency.npu.invoke.confidence == "field"
    assert "a board" in mine.source_text(mine.latency.npu.invoke.source)
    assert mine.latency.cpu == IMX95.latency.cpu
    for name in type(IMX95).model_fields:
        if name not in ("latency", "sources", "file", "sha256"):
            assert getattr(mine, name) == getattr(IMX95, name)
    again = refit(mine, [path], devices=["npu"])
    assert "M2" in load_target(str(written(again, tmp_path / "again.toml", mine))).sources


def written(found: Refit, path: Path, target: Target) -> Path:
    write_rule_file(path, found, target, [])
    return path


@pytest.mark.parametrize("name", targets())
def test_every_rule_file_can_be_rewritten(name: str, tmp_path: Path) -> None:
    from splitter.refit.rulefile import with_latency
    from splitter.rules.targets import rule_file

    target = load_target(name)
    text = rule_file(target).read_text()
    made = with_latency(text, target, target.latency, {})
    (tmp_path / "again.toml").write_text(made)
    again = load_target(str(tmp_path / "again.toml"))
    assert again.latency == target.latency
    assert made.count("[latency.cpu]") == 1


def test_rules_read_for_another_version_stay_those_of_the_file(board: Callable[[int], Any]) -> None:
    target = load_target("imx95@3.0.1")
    found = refit(target, [board(3).measure(truth(NPU, {}), "npu")], devices=["npu"])
    assert f'assumed = "{IMX95.version}"' in found.text


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another target": ({"target": "rk3588"}, "a bundle for rk3588, not for imx95"),
    "too few runs": ({"runs": 3}, "3 runs are too few"),
    "another version": ({"schema_version": 2}, "version 2; this reads version 1"),
    "another format": ({"format": "x"}, "its format is 'x', not 'splitter measurements'"),
    "cores of no board": ({"settings": {"threads": 10**9}}, "settings.threads"),
    "no parts": ({"parts": []}, "no part ran on the NPU"),
    "a pipe between": ({"settings": {"isolate": True}}, "--isolate"),
    "no numbers": ({"runs": "many"}, "not what glue/run.py --bench writes: runs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused(case: str, board: Callable[[int], Any]) -> None:
    changes, said = REFUSED[case]
    path = board(1).measure(IMX95, "npu", **changes)
    with pytest.raises(SplitterError) as refused:
        refit(IMX95, [path], devices=["npu"])
    assert said in str(refused.value)


@pytest.mark.parametrize("ms", [1e300, 1e12, 1e-9, 1e-300])
@pytest.mark.parametrize("what", ["invoke_ms", "transfer_ms"])
def test_times_that_no_part_takes_are_refused(
    ms: float, what: str, board: Callable[[int], Any]
) -> None:
    path = board(1).measure(IMX95, "npu")
    report = json.loads(path.read_text())
    report["parts"][0][what]["median"] = ms
    path.write_text(json.dumps(report))
    with pytest.raises(SplitterError, match=r"0\.0001 to 1e\+06 ms are believed"):
        refit(IMX95, [path], devices=["npu"])


def test_a_file_given_twice_and_a_bundle_that_is_not_there_are_told_together(
    board: Callable[[int], Any],
) -> None:
    path = board(1).measure(IMX95, "npu")
    with pytest.raises(SplitterError) as refused:
        refit(IMX95, [path, path], devices=["npu"], bundles=[Path("nowhere")])
    assert "given twice" in refused.value.what
    assert "nowhere: there is no such folder" in refused.value.what
    assert refused.value.hint == "", "no advice that does not help"


def test_parts_made_anew_since_are_refused(board: Callable[[int], Any]) -> None:
    made = board(2)
    path = made.measure(IMX95, "npu")
    (made.folder / "parts/1.tflite").write_bytes(b"other")
    with pytest.raises(SplitterError, match=r"no file here is parts/1\.tflite as it was measured"):
        refit(IMX95, [path], devices=["npu"])


def test_parts_may_lie_elsewhere(board: Callable[[int], Any], tmp_path: Path) -> None:
    made = board(2)
    away = tmp_path / "away.json"
    away.write_bytes(made.measure(truth(NPU, {}), "npu").read_bytes())
    with pytest.raises(SplitterError, match="--bundle OUT says where"):
        refit(IMX95, [away], devices=["npu"])
    assert refit(IMX95, [away], devices=["npu"], bundles=[made.folder]).changes


def test_an_npu_part_that_ran_on_the_cpu_tells_of_the_cpu_alone(
    board: Callable[[int], Any],
) -> None:
    path = board(3).measure(truth({}, CPU), "npu")
    report = json.loads(path.read_text())
    for part in report["parts"]:
        part |= {"placement": None, "delegated": False}
    path.write_text(json.dumps(report))
    with pytest.raises(SplitterError) as refused:
        refit(IMX95, [path], devices=["npu"])
    assert "ran on the CPU, without --delegate" in str(refused.value)
    assert "--only cpu" in refused.value.hint
    assert refit(IMX95, [path], devices=["cpu"]).changes


def test_a_delegate_that_took_nothing_is_refused(board: Callable[[int], Any]) -> None:
    path = board(1).measure(IMX95, "npu")
    report = json.loads(path.read_text())
    report["parts"][0] |= {"placement": {"nodes": 9, "taken": 0}, "delegated": False}
    path.write_text(json.dumps(report))
    with pytest.raises(SplitterError, match="the delegate took 0 of 9 nodes"):
        refit(IMX95, [path], devices=["npu"])


def test_nothing_that_was_read_is_written_over(board: Callable[[int], Any], tmp_path: Path) -> None:
    path = board(2).measure(IMX95, "npu")
    mine = tmp_path / "mine.toml"
    mine.write_text(refit(IMX95, [path], devices=["npu"]).text)
    target = load_target(str(mine))
    found = refit(target, [path], devices=["npu"])
    for out, said in ((mine, "not written over"), (tmp_path / "a.json", "ends in .toml")):
        with pytest.raises(SplitterError, match=said):
            write_rule_file(out, found, target, [path])
    with pytest.raises(SplitterError, match="cannot be written"):
        write_rule_file(tmp_path / "none" / "a.toml", found, target, [path])
    assert not list(tmp_path.glob(".*partial"))
