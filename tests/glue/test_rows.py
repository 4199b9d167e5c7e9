"""A detector that ends in non-maximum suppression, as a bundle: the outputs have as many rows as
the data decides, in integers, through the glue that goes to the board."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.messages import BadInput
from splitter.glue.board.runner import Runner
from splitter.glue.manifest import read_manifest
from splitter.graph import Array
from splitter.options import Options
from splitter.pipeline import Result, run
from splitter.progress import Silent
from splitter.tflite.read import read
from splitter.tflite.runtime import Interpreter
from tests.ops.lowered import parsed

BODY = """(float[1,3,8,8] x) => (float[K,5] found, int64[K,3] places, float[1,2,8,8] heat)
  <float[6,3,3,3] w, int64[3] rows = {1,6,64}, int64[2] parts = {4,2}, int64[1] two = {2},
   int64[1] most = {4}, float[1] iou = {0.3}, float[1] least = {0.75}, int64[1] zero = {0},
   int64[1] three = {3}, int64[1] one = {1}, int64[2] channels = {4,2}, float pixels = {64.0}> {
  c = Conv<pads = [1,1,1,1]> (x, w) r = Reshape (c, rows)
  b0, logits = Split<axis = 1> (r, parts) none, heat = Split<axis = 1> (c, channels)
  b1 = Sigmoid (b0) b2 = Mul (b1, pixels)
  boxes = Transpose<perm = [0, 2, 1]> (b2) scores = Sigmoid (logits)
  places = NonMaxSuppression<center_point_box = 1> (boxes, scores, most, iou, least)
  which = Slice (places, two, three, one) flat = Squeeze (which, one)
  alone = Squeeze (boxes, zero) picked = Gather (alone, flat)
  s = GatherND (scores, places) score = Unsqueeze (s, one)
  found = Concat<axis = 1> (picked, score)
}"""

Made = tuple[Path, Result, Path]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("rows")
    model = parsed(BODY, opset=18)
    onnx.save(model, folder / "detector.onnx")
    random = np.random.default_rng(0)
    np.savez(folder / "c.npz", x=random.normal(0, 1, (16, 3, 8, 8)).astype(np.float32))
    options = Options(
        folder / "detector.onnx",
        "imx95",
        folder / "out",
        calibration=str(folder / "c.npz"),
        keep_float=True,
    )
    return folder / "out", run(options, Silent()), folder / "detector.onnx"


def sample(size: float) -> dict[str, Array]:
    x = np.random.default_rng(7).normal(0, size, (1, 3, 8, 8)).astype(np.float32)
    return {"x": x}


def reference(model: Path, feeds: dict[str, Array]) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(str(model))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize("size", [1.0, 0.0])
def test_the_float_file_gives_the_shape_that_onnx_gives(bundle: Made, size: float) -> None:
    """With an input of zeros no score is over the threshold, and there is no row."""
    feeds = sample(size)
    made = Interpreter((bundle[0] / "float.tflite").read_bytes()).run(feeds)
    for name, wanted in reference(bundle[2], feeds).items():
        assert made[name].shape == wanted.shape and bool(len(wanted)) == bool(
            size or name == "heat"
        )
        np.testing.assert_allclose(made[name], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1.0, 0.0])
def test_the_glue_gives_the_rows_of_the_parts_and_of_the_whole(
    bundle: Made, tmp_path: Path, size: float
) -> None:
    feeds = sample(size)
    np.savez(tmp_path / "in.npz", **feeds)
    command = [
        sys.executable,
        "glue/run.py",
        str(tmp_path / "in.npz"),
        "-o",
        str(tmp_path / "o.npz"),
    ]
    subprocess.run(command, cwd=bundle[0], check=True, capture_output=True)
    made = dict(np.load(tmp_path / "o.npz"))
    whole = Runner(Bundle(bundle[0], unsplit=True), Settings()).run(feeds).outputs
    assert list(made) == ["found", "places", "heat"]
    for name, array in made.items():
        np.testing.assert_array_equal(array, whole[name])
    assert made["found"].shape == (len(made["places"]), 5) and made["places"].dtype == np.int64
    wanted = reference(bundle[2], feeds)
    assert abs(len(made["found"]) - len(wanted["found"])) <= 1
    assert bool(len(made["found"])) == bool(size)


def test_boxes_and_scores_keep_scales_of_their_own_up_to_the_output(bundle: Made) -> None:
    outputs = {o.name: o for o in read_manifest(bundle[0]).outputs}
    joined = read_manifest(bundle[0]).joined
    assert [one.name for one in joined] == ["found"] and joined[0].axis == 1
    scales = [outputs[piece].scale or 0.0 for piece in joined[0].pieces]
    assert len(scales) == 2 and scales[0] > 4 * scales[1]
    assert all(outputs[piece].open for piece in (*joined[0].pieces, "places"))
    assert not outputs["heat"].open


def test_everything_before_the_outputs_is_static_and_no_float_is_left(bundle: Made) -> None:
    whole = read((bundle[0] / "unsplit.tflite").read_bytes())
    assert not any(tensor.dtype == "float32" for tensor in whole.tensors.values())
    made = {name for op in whole.operators if op.code == "WHERE" for name in op.outputs}
    readers = [op for op in whole.operators if made & set(op.inputs)]
    assert {op.code for op in readers} == {"GATHER_ND"}
    assert all(name in whole.outputs for op in readers for name in op.outputs)


def test_the_report_says_how_many_rows_are_found_again(bundle: Made) -> None:
    report = json.loads((bundle[0] / "report.json").read_text())
    rows = report["verification"]["rows"]["quantization"]
    assert set(rows) == {"found", "places"}
    assert rows["found"]["found"] >= 0.5 * rows["found"]["reference"] > 0
    assert report["verification"]["rows"]["split"]["found"]["alike"] == rows["found"]["runs"]
    assert "rows found again" in bundle[1].text()


def test_several_batches_at_once_are_refused_as_their_rows_would_come_without_a_mark(
    bundle: Made,
) -> None:
    runner = Runner(Bundle(bundle[0]), Settings())
    with pytest.raises(BadInput, match="one batch at a time: found, places would"):
        runner.run({"x": np.concatenate([sample(1.0)["x"]] * 2)})
