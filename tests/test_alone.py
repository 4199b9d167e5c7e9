"""Where nothing is left for TFLite the bundle is an ONNX part alone, and everything says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from splitter.cli import answer
from splitter.examine import examine
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.messages import BadInput
from splitter.options import Options
from splitter.pipeline import Result, run
from splitter.progress import Silent
from splitter.reference import OnnxRunner
from tests.normalize.support import model_of

BODY = """g (float[1,8] x) => (int64[2,K] y, float[1,8] z) {
  y = NonZero(x) f = Cast<to = 1>(y) s = ReduceSum<keepdims = 0>(f) z = Add(x, s)
}"""

Made = tuple[Path, Result]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("alone")
    onnx.save(model_of(BODY), folder / "places.onnx")
    x = np.random.default_rng(0).integers(-1, 2, (40, 1, 8)).astype(np.float32)
    np.savez(folder / "c.npz", x=x)
    options = Options(
        folder / "places.onnx",
        "imx95",
        folder / "out",
        calibration=str(folder / "c.npz"),
        cpu_runtime="onnxruntime",
    )
    return options.out, run(options, Silent())


def test_it_holds_the_onnx_part_and_no_tflite_file(bundle: Made) -> None:
    out, result = bundle
    assert [p.name for p in sorted((out / "parts").iterdir())] == ["0-cpu.onnx"]
    assert not list(out.rglob("*.tflite"))
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["unsplit"] is None and manifest["parts"] == []
    assert manifest["remainder"]["unsupported"][0]["operator"] == "NonZero"
    assert result.trusted


def test_every_report_says_that_nothing_runs_as_tflite(bundle: Made) -> None:
    out, result = bundle
    text = " ".join(result.text().split())
    assert "nothing of this model runs as TFLite, and nothing on the NPU" in text
    assert "bits a value" not in text and "integer" not in text
    assert "nothing of this model runs as TFLite" in (out / "report.html").read_text()
    steps = (out / "NEXT_STEPS.md").read_text()
    assert "Nothing of this model runs as TFLite (NonZero x 1 come first)" in steps
    assert "unsplit" not in steps and "TFLite runtime" not in steps
    assert "NonZero 1" in examine(out, None, trust="proxy")[-1].to_text()


def test_the_board_runs_it_and_has_no_whole_to_run_instead(bundle: Made, tmp_path: Path) -> None:
    out = bundle[0]
    x = np.asarray([[0, 1, 0, -2, 3, 0, 0, 5]], np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    script = [sys.executable, str(out / "glue/run.py")]
    words = [*script, str(tmp_path / "in.npz"), "-o", str(tmp_path / "o.npz")]
    assert subprocess.run(words, capture_output=True).returncode == 0
    expected = OnnxRunner(out.parent / "places.onnx").run({"x": x})
    with np.load(tmp_path / "o.npz") as made:
        for name, array in expected.items():
            np.testing.assert_array_equal(made[name], array)
    with pytest.raises(BadInput, match="nothing of this bundle runs as TFLite"):
        Bundle(out, unsplit=True)
    out_file = str(tmp_path / "m.json")
    done = subprocess.run([*script, "--bench", "2", "--bench-out", out_file], capture_output=True)
    assert done.returncode == 0
    assert json.loads(Path(out_file).read_text())["runtime"]["name"] == "onnxruntime"


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_what_looks_for_cuts_says_that_there_is_none(
    command: str, bundle: Made, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = str(bundle[0].parent / "places.onnx")
    words = [command, model, "--target", "imx95", "--cpu-runtime", "onnxruntime"]
    words += ["-o", str(tmp_path / "out")] if command == "compare" else []
    assert answer(words) == 2
    assert "nothing is left for TFLite" in capfd.readouterr().err
