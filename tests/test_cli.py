"""The command line: what is printed, on which stream, with which exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.main import get_command

from splitter import cli, coreutils

ROOT = Path(__file__).resolve().parent.parent
CONV = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,16,16,16] picture) => (float[1,16,16,16] answer) {
  answer = Relu (picture)
}
"""


def splitter(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "splitter", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, samples, and the bundle made of them in `out`."""
    folder = tmp_path_factory.mktemp("done")
    onnx.save(onnx.parser.parse_model(CONV), folder / "model.onnx")
    noise = np.random.default_rng(0).normal(size=(16, 16, 16, 16)).astype(np.float32)
    np.savez(folder / "samples.npz", picture=noise)
    made = splitter(*job("out"), cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder


def job(out: str, *more: str) -> list[str]:
    return ["model.onnx", "--target", "imx95", "-o", out, "--calibration", "samples.npz", *more]


def test_the_two_lists_of_subcommands_are_one() -> None:
    assert cli.subcommands() == coreutils.SUBCOMMANDS


def test_every_long_option_of_ours_brings_split_to_us() -> None:
    parameters = get_command(cli.job).params
    long = {word for one in parameters for word in one.opts if word.startswith("--")}
    assert long - {"--help", "--version"} == coreutils.OPTIONS


def test_help_names_every_subcommand_and_exits_0() -> None:
    shown = splitter("--help")
    assert shown.returncode == 0
    for name in coreutils.SUBCOMMANDS:
        assert name in shown.stdout


def test_no_arguments_show_the_help() -> None:
    assert splitter().stdout == splitter("--help").stdout


def test_the_version_is_the_package_s() -> None:
    assert re.fullmatch(r"splitter \d+\.\d+\.\d+\n", splitter("--version").stdout)


def test_a_run_without_a_terminal_prints_the_result_and_no_progress(done: Path) -> None:
    made = splitter(*job("again"), cwd=done)
    assert made.returncode == 0
    assert made.stderr == ""
    assert "rusted" in made.stdout


def test_json_is_one_object_on_stdout(done: Path) -> None:
    made = splitter(*job("as-json", "--json"), cwd=done)
    assert made.returncode == 0
    assert made.stderr == ""
    assert isinstance(json.loads(made.stdout), dict)


def test_an_error_with_json_is_an_object_too() -> None:
    refused = splitter("absent.onnx", "--target", "imx59", "--json")
    assert refused.returncode == 2
    error = json.loads(refused.stdout)["error"]
    assert set(error) == {"what", "where", "hint"}
    assert "imx59" in error["what"]
    assert refused.stderr.startswith("error: ")


def test_bad_use_with_json_is_an_object_too() -> None:
    refused = splitter("m.onnx", "--frobnicate", "--json")
    assert refused.returncode == 2
    assert "--frobnicate" in json.loads(refused.stdout)["error"]["what"]


def test_out_has_a_name_of_its_own_by_default(done: Path) -> None:
    made = splitter("model.onnx", "--target", "imx95", "--calibration", "samples.npz", cwd=done)
    assert made.returncode == 0
    assert (done / "model-imx95" / "manifest.json").is_file()


def test_two_runs_give_the_same_bytes(done: Path) -> None:
    assert splitter(*job("twin", "--keep-float"), cwd=done).returncode == 0
    assert splitter(*job("other", "--keep-float"), cwd=done).returncode == 0
    twin, other = (
        {str(p.relative_to(done / name)): p.read_bytes() for p in (done / name).rglob("*.*")}
        for name in ("twin", "other")
    )
    assert twin == other
    assert {"manifest.json", "unsplit.tflite", "float.tflite"} <= set(twin)


def test_targets_lists_the_rule_files() -> None:
    names = {path.stem for path in (ROOT / "rules").glob("*.toml")}
    shown = splitter("targets").stdout
    assert {line.split()[0] for line in shown.splitlines()} == names
    listed = json.loads(splitter("targets", "--json").stdout)
    assert {entry["name"] for entry in listed} == names


def test_rules_show_prints_every_operator_with_its_confidence() -> None:
    shown = splitter("rules", "show", "imx95")
    assert shown.returncode == 0
    assert re.search(r"^BATCH_MATMUL: yes \(\w+: \w+", shown.stdout, re.MULTILINE)


def test_rules_check_tells_every_mistake_of_a_file(tmp_path: Path) -> None:
    text = (ROOT / "rules" / "imx95.toml").read_text()
    wrong = text.replace("stride_h", "strde_h", 1).replace("kernel_w", "kernl_w", 1)
    (tmp_path / "mine.toml").write_text(wrong)
    refused = splitter("rules", "check", tmp_path / "mine.toml")
    assert refused.returncode == 2
    assert "strde_h" in refused.stderr
    assert "kernl_w" in refused.stderr
    assert splitter("rules", "check", "imx95", "cpu").returncode == 0


def test_rules_check_goes_through_all_files_whatever_is_wrong_with_one(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("a = [")
    checked = splitter("rules", "check", "imx96", tmp_path / "bad.toml", "cpu")
    assert checked.returncode == 2
    assert "2 of 3 rule files are wrong" in checked.stderr
    assert "unknown target 'imx96'" in checked.stderr
    assert "not a TOML file" in checked.stderr
    assert checked.stdout.startswith("cpu: ")
    as_data = json.loads(splitter("rules", "check", "cpu", "imx95", "--json").stdout)
    assert [one["file"] for one in as_data["files"]] == ["cpu", "imx95"]


def test_a_rule_file_of_ones_own_is_taken_by_every_command(tmp_path: Path) -> None:
    text = (ROOT / "rules" / "imx95.toml").read_text()
    own = tmp_path / "mine.toml"
    own.write_text(text.replace('name = "imx95"', 'name = "mine"'))
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(CONV), model)
    for words in (
        ("rules", "show", f"{own}@3.0.1", "SOFTMAX"),
        ("explain", model, "--target", f"{own}@3.0.1"),
    ):
        done = splitter(*words)
        assert done.returncode == 0, done.stderr
    made = splitter(
        model, "--target", own, "--calibration", "random", "--verify-samples", "1", cwd=tmp_path
    )
    assert (tmp_path / "model-mine" / "manifest.json").is_file(), made.stderr
    assert splitter("inspect", tmp_path / "model-mine", "--target", own).returncode == 0


def test_inspect_of_a_bundle_looks_at_every_part_and_the_whole(done: Path) -> None:
    shown = splitter("inspect", "out", "--target", "imx95", cwd=done)
    assert shown.returncode == 0, shown.stdout
    assert "unsplit.tflite" in shown.stdout
    assert "nothing is wrong" in shown.stdout


def test_inspect_of_a_float_file_counts_its_float_tensors(done: Path) -> None:
    assert splitter(*job("floats", "--keep-float"), cwd=done).returncode == 0
    shown = splitter("inspect", "floats/float.tflite", cwd=done)
    assert shown.returncode == 1
    assert "float tensors left: 0" not in shown.stdout


def test_inspect_of_a_file_that_the_converter_left_alone_says_0_and_exits_1(
    done: Path, tmp_path: Path
) -> None:
    unconverted = tmp_path / "converted.tflite"
    unconverted.write_bytes((done / "out" / "unsplit.tflite").read_bytes())
    shown = splitter("inspect", unconverted, "--target", "imx95")
    assert shown.returncode == 1
    assert re.search(r"0 of \d+ operators are on the NPU", shown.stdout)


def test_inspect_refuses_what_is_no_tflite_file(done: Path) -> None:
    refused = splitter("inspect", "model.onnx", cwd=done)
    assert refused.returncode == 2
    assert refused.stderr.count("error: ") == 1


def test_inspect_refuses_a_bundle_whose_file_was_changed(done: Path) -> None:
    assert splitter(*job("spoilt"), cwd=done).returncode == 0
    with (done / "spoilt" / "unsplit.tflite").open("ab") as file:
        file.write(b"\0")
    refused = splitter("inspect", "spoilt", cwd=done)
    assert refused.returncode == 2
    assert "unsplit.tflite" in refused.stderr


@pytest.mark.parametrize("command", [("model.onnx",), ("compare", "model.onnx")])
@pytest.mark.parametrize("option", ["--cut", "--npu", "--cpu"])
def test_an_unknown_name_of_a_place_is_told_with_the_nearest_and_nothing_is_written(
    done: Path, command: tuple[str, ...], option: str
) -> None:
    call = [*command, "--target", "imx95", "-o", "refused", "--calibration", "samples.npz"]
    refused = splitter(*call, option, "answr", cwd=done)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert f"{option} answr: no such" in refused.stderr and "did you mean answer" in refused.stderr
    assert not (done / "refused").exists()


def test_a_comparison_prints_its_json_and_writes_two_files(done: Path) -> None:
    call = ("compare", "model.onnx", "--target", "imx95,cpu", "-o", "compared", "--json")
    shown = splitter(*call, cwd=done)
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["format"] == "split comparison"
    assert {row["target"] for row in document["candidates"]} == {"imx95", "cpu"}
    assert sorted(path.name for path in (done / "compared").iterdir()) == [
        "compare.html",
        "compare.json",
    ]
