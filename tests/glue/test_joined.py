"""An output that leaves as pieces: whole again, and exact, where the bundle is run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from splitter.diagnostics import SplitterError
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.glue.manifest import from_json, read_manifest
from splitter.options import Options
from splitter.pipeline import Result, run
from splitter.progress import Silent
from tests.ops.lowered import parsed

BODY = """(float[1,3,8,8] x) => (float[1,64,11] y, float[1,3,8,8] z) <float[4,3,1,1] w, float[7,3,1,1] v> {
  k = Constant<value = float {160.0}>()
  rows = Constant<value = int64[3] {1,4,64}>()
  more = Constant<value = int64[3] {1,7,64}>()
  a = Conv (x, w) b = Mul (a, k) c = Reshape (b, rows) boxes = Transpose<perm = [0, 2, 1]> (c)
  d = Conv (x, v) e = Sigmoid (d) f = Reshape (e, more) scores = Transpose<perm = [0, 2, 1]> (f)
  y = Concat<axis = 2> (boxes, scores)
  z = Relu (x)
}"""  # noqa: E501


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result, Path]:
    folder = tmp_path_factory.mktemp("joined")
    onnx.save(parsed(BODY, opset=17), folder / "detector.onnx")
    random = np.random.default_rng(0)
    np.savez(folder / "c.npz", x=random.normal(0, 1, (12, 3, 8, 8)).astype(np.float32))
    options = Options(
        folder / "detector.onnx", "cpu", folder / "out", calibration=str(folder / "c.npz")
    )
    return folder / "out", run(options, Silent()), folder / "detector.onnx"


def test_scores_beside_boxes_in_pixels_keep_their_precision(
    bundle: tuple[Path, Result, Path],
) -> None:
    out, result, model = bundle
    quantization = result.comparison.findings.stage("quantization")
    assert quantization is not None and {t.name for t in quantization.tensors} == {"y", "z"}
    x = np.random.default_rng(1).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)
    import onnxruntime

    wanted = onnxruntime.InferenceSession(str(model)).run(["y"], {"x": x})[0]
    made = Runner(Bundle(out), Settings(threads=1)).run({"x": x})
    assert list(made.outputs) == ["y", "z"]
    assert np.abs(made.outputs["y"][..., 4:] - wanted[..., 4:]).max() <= 0.02
    assert any("pieces" in note for note in result.summary.notes)


def test_the_unsplit_model_is_joined_too(bundle: tuple[Path, Result, Path]) -> None:
    out = bundle[0]
    x = np.ones((2, 3, 8, 8), np.float32)
    parts = Runner(Bundle(out), Settings(threads=1)).run({"x": x}).outputs
    whole = Runner(Bundle(out, unsplit=True), Settings(threads=1)).run({"x": x}).outputs
    assert parts["y"].shape == (2, 64, 11)
    assert all(np.array_equal(parts[name], whole[name]) for name in ("y", "z"))


def test_a_manifest_with_pieces_that_do_not_exist_is_refused(
    bundle: tuple[Path, Result, Path],
) -> None:
    manifest = json.loads(read_manifest(bundle[0]).to_json())
    manifest["joined"][0]["pieces"].append("nothing")
    with pytest.raises(SplitterError, match="there is no output nothing"):
        from_json(json.dumps(manifest))
    manifest["joined"][0] = {**manifest["joined"][0], "axis": 7}
    manifest["joined"][0]["pieces"].pop()
    with pytest.raises(SplitterError, match="no axis 7"):
        from_json(json.dumps(manifest))
