"""The main job, end to end, on the trained RF-DETR: what its files hold and whether they agree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitter.examine import examine
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.rules.targets import load_target
from splitter.tflite.read import read

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "rf_detr_tiny.onnx"
IMAGES = ROOT / "models" / "val_images.npz"
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
STD = np.array((0.229, 0.224, 0.225), np.float32)
FEW = ("--calibration-samples", "8", "--verify-samples", "4")


def split(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "splitter", str(MODEL), "--target", "imx95", "-o", str(out)]
    command += ["--calibration", str(ROOT / "models" / "calib_images.npz")]
    command += ["--preprocess", "imagenet", "--validation", str(IMAGES), *more]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tiny") / "out"
    split(out, *FEW)
    return out


@pytest.fixture(scope="module")
def report(bundle: Path) -> dict[str, Any]:
    text = (bundle / "report.json").read_text()
    return dict(json.loads(text))


def pictures(count: int) -> np.ndarray:
    raw = np.load(IMAGES, allow_pickle=False)["images"][:count].astype(np.float32)
    return np.ascontiguousarray(((raw / 255 - MEAN) / STD).transpose(0, 3, 1, 2), np.float32)


def test_the_bundle_has_two_parts_and_all_its_files(bundle: Path) -> None:
    files = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
    assert files == {
        "NEXT_STEPS.md",
        "glue/run.py",
        "manifest.json",
        "parts/0-npu.tflite",
        "parts/1-cpu.tflite",
        "report.html",
        "report.json",
        "unsplit.tflite",
    }
    assert [path for path in bundle.parent.iterdir() if path != bundle] == []


def test_at_least_95_percent_of_the_work_is_on_the_npu(report: dict[str, Any]) -> None:
    assert report["npu_macs_share"] >= 0.95


def test_no_tensor_of_any_file_is_float_or_int16(bundle: Path) -> None:
    for path in bundle.rglob("*.tflite"):
        types = {tensor.dtype for tensor in read(path.read_bytes()).tensors.values()}
        assert types <= {"int8", "int32", "bool"}, path


def test_every_file_is_sound_and_the_npu_part_obeys_the_rules(bundle: Path) -> None:
    for examined in examine(bundle, load_target("imx95"), trust="proxy"):
        assert examined.failures == (), examined.to_text()


def test_the_parts_compute_the_integers_of_the_whole(bundle: Path) -> None:
    parts = Runner(Bundle(bundle), Settings())
    whole = Runner(Bundle(bundle, unsplit=True), Settings())
    feeds = {"input": pictures(12)}
    left, right = parts.run(feeds, keep_raw=True), whole.run(feeds, keep_raw=True)
    outputs = [key for key in right.raw if key.startswith("output/")]
    assert outputs == ["output/dets", "output/labels"]
    for key in outputs:
        np.testing.assert_array_equal(left.raw[key], right.raw[key], err_msg=key)
        assert len(np.unique(left.raw[key])) > 20


def test_the_glue_by_itself_gives_what_was_verified(bundle: Path, tmp_path: Path) -> None:
    feeds = {"input": pictures(3)}
    np.savez(tmp_path / "in.npz", **feeds)
    command = [sys.executable, str(bundle / "glue" / "run.py"), "in.npz", "-o", "out.npz"]
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(command, cwd=tmp_path, env=alone, check=True, capture_output=True, timeout=300)
    made = np.load(tmp_path / "out.npz", allow_pickle=False)
    expected = Runner(Bundle(bundle), Settings()).run(feeds).outputs
    assert set(made.files) == {"dets", "labels"}
    for name, values in expected.items():
        assert values.shape[0] == 3
        np.testing.assert_array_equal(made[name], values, err_msg=name)


def test_the_report_says_bit_for_bit_and_keeps_the_errors_apart(report: dict[str, Any]) -> None:
    stages = {stage["stage"]: stage for stage in report["verification"]["stages"]}
    assert set(stages) == {"conversion", "rewrites", "quantization", "split"}
    assert all(tensor["equal_share"] == 1.0 for tensor in stages["split"]["tensors"])


def test_the_float_path_equals_the_original(report: dict[str, Any]) -> None:
    stages = {stage["stage"]: stage for stage in report["verification"]["stages"]}
    assert all(tensor["relative_rms"] < 1e-5 for tensor in stages["conversion"]["tensors"])
    assert report["verification"]["rewrites"][0]["error"] > 0
    assert all(tensor["relative_rms"] > 1e-6 for tensor in stages["rewrites"]["tensors"])


def test_a_second_run_writes_the_same_bytes_and_not_to_the_model(
    bundle: Path, tmp_path: Path
) -> None:
    before = hashlib.sha256(MODEL.read_bytes()).hexdigest()
    split(tmp_path / "out", *FEW, "--threads", "1")
    assert hashlib.sha256(MODEL.read_bytes()).hexdigest() == before
    for path in sorted(bundle.rglob("*")):
        if path.is_file():
            again = tmp_path / "out" / path.relative_to(bundle)
            assert path.read_bytes() == again.read_bytes(), path.name


def test_int16_auto_widens_values_off_the_npu_only(bundle: Path, tmp_path: Path) -> None:
    split(tmp_path / "out", *FEW, "--int16", "auto")
    types = {
        path.name: {tensor.dtype for tensor in read(path.read_bytes()).tensors.values()}
        for path in (tmp_path / "out" / "parts").iterdir()
    }
    assert types["0-npu.tflite"] <= {"int8", "int32", "bool"}
    assert "int16" in types["1-cpu.tflite"]
    assert "float32" not in types["1-cpu.tflite"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    units = report["precision"]["int16"]["units"]
    assert 0 < len(units) < 100 and report["precision"]["int16"]["error_left"] <= 0.1
    assert 8.0 < report["precision"]["average_bits"] < 9.0
    precision = json.loads((tmp_path / "out" / "manifest.json").read_text())["precision"]
    assert "dets" in precision["values"]["16"] and "GATHER" in precision["int16_operators"]
    assert (tmp_path / "out" / "parts" / "0-npu.tflite").read_bytes() == (
        bundle / "parts" / "0-npu.tflite"
    ).read_bytes()


def test_int8_says_what_sixteen_bits_would_gain(report: dict[str, Any]) -> None:
    trial = report["verification"]["int16"]
    assert trial["option"] == "--int16 auto" and trial["runs"] == 4
    assert 0.0 <= trial["now"] <= 1.0 and 0.0 <= trial["then"] <= 1.0
