"""`split calibrate` as users call it, on what glue/run.py --bench really writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from splitter.cli import answer
from splitter.options import Options
from splitter.pipeline import run
from splitter.progress import Silent
from splitter.rules.targets import load_target

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """measurements.json of the trained model, all of it on this machine's CPU."""
    out = tmp_path_factory.mktemp("bench") / "out"
    samples = str(MODELS / "calib_images.npz")
    options = Options(MODELS / "rf_detr_tiny.onnx", "cpu", out, calibration=samples)
    few = replace(options, preprocess="imagenet", calibration_samples=1, verify_samples=1)
    run(few, Silent())
    command = [sys.executable, str(out / "glue" / "run.py"), "--bench", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "keeps the times, for split calibrate" in done.stderr
    return out / "measurements.json"


def test_a_real_run_on_this_machine_makes_a_rule_file_that_meets_it(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "my.toml"
    assert answer(["calibrate", "cpu", str(bench), "-o", str(mine)]) == 0
    shown = capsys.readouterr().out
    assert "cpu: 1 measured time\n" in shown
    assert f"split MODEL.onnx --target {mine}" in shown
    measured = json.loads(bench.read_text())["parts"][0]["invoke_ms"]["median"]
    assert answer(["calibrate", str(mine), str(bench), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["residuals"][0]["measured"] == measured
    assert found["residuals"][0]["before"] == pytest.approx(measured, rel=0.05)
    assert found["written"] == ""
    assert load_target(str(mine)).latency.cpu.classes["matrix"].source == "M1"


def test_a_bundle_measured_without_its_delegate_is_one_message(
    board: Callable[[int], Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = board(1).measure(load_target("imx95"), "npu")
    report = json.loads(path.read_text())
    report["parts"][0] |= {"placement": None, "delegated": False}
    path.write_text(json.dumps(report))
    assert answer(["calibrate", "imx95", str(path), "-o", str(tmp_path / "my.toml")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "parts/0.tflite is for the NPU and ran on the CPU, without --delegate" in said
    assert not (tmp_path / "my.toml").exists()
    assert answer(["calibrate", "imx95", str(path), "--only", "cpu"]) == 0
    assert "-o FILE.toml writes it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["imx95", "none.json"], "none.json: cannot be read"),
        (["imx59", "none.json"], "unknown target"),
        (["cpu", "none.json", "--only", "npu"], "--only"),
        (["imx95"], "Missing argument"),
    ],
)
def test_wrong_use_is_one_message(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(["calibrate", *words]) == 2
    assert said in capsys.readouterr().err
