"""What fails while the parts are run on samples is told with part, node and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from splitter.cli import answer
from splitter.diagnostics import SplitterError
from splitter.graph import Array
from splitter.options import Options
from splitter.pipeline import run
from splitter.progress import Silent
from tests.ops.lowered import parsed

BEST = """(float[1,3,4,4] x) => (int64[1,1] best) <float[1,3,1,1] w = {1, 0, 0}> {
  flat = Constant<value = int64[1] {-1}>()
  z = Conv(x, w) scores = Reshape(z, flat) top = ReduceMax<keepdims = 0>(scores)
  is = Equal(scores, top) places = NonZero(is)
  one = Constant<value = int64[2] {1, 1}>()
  best = Reshape(places, one)
}"""
"""The place of the largest score; two that are equal do not fit into its last Reshape."""


def scores(*largest: float) -> Array:
    """Samples [N,3,4,4] whose first places hold the largest scores."""
    data = np.random.default_rng(0).uniform(-1, 1, (6, 3, 4, 4)).astype(np.float32)
    data[:, 0, 0, : len(largest)] = largest
    return data


def split(folder: Path, x: Array) -> Path:
    """A detector and samples; returns where its bundle would be."""
    onnx.save(parsed(BEST, opset=18), folder / "best.onnx")
    np.savez(folder / "x.npz", x=x)
    options = Options(
        folder / "best.onnx",
        "imx95",
        folder / "out",
        calibration=str(folder / "x.npz"),
        cpu_runtime="onnxruntime",
    )
    run(options, Silent())
    return folder / "out"


def test_a_part_that_fails_on_integers_alone_is_named_with_its_node(tmp_path: Path) -> None:
    with pytest.raises(SplitterError) as caught:
        split(tmp_path, scores(2.0, 1.9999))
    assert caught.value.where.startswith("sample 1 of those to verify on")
    assert "parts/1-cpu.onnx" in caught.value.what and "Reshape_best" in caught.value.what
    assert "--int16 auto" in caught.value.hint and "--outputs" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_scores_that_int8_tells_apart_go_through(tmp_path: Path) -> None:
    assert (split(tmp_path, scores(2.0, 1.0)) / "manifest.json").exists()


def test_a_sample_on_which_the_file_itself_fails_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(
        SplitterError, match=r"ONNX Runtime cannot run the model.*Reshape"
    ) as caught:
        split(tmp_path, scores(2.0, 2.0))
    assert "the original must run on every sample" in caught.value.hint


LOOKUP = """(float[1,4] x, int64[3] i) => (float[3,4] y) <float[4,4] w, float[5,4] t> {
  a = MatMul(x, w) rows = Gather(t, i) y = Add(rows, a)
}"""


@pytest.mark.parametrize("command", [[], ["compare"]])
def test_an_index_outside_of_its_table_is_one_message(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    onnx.save(parsed(LOOKUP, opset=18), tmp_path / "lookup.onnx")
    x, i = np.ones((4, 1, 4), np.float32), np.full((4, 3), 77, np.int64)
    np.savez(tmp_path / "c.npz", x=x, i=i)
    words = [*command, str(tmp_path / "lookup.onnx"), "--target", "imx95", "-o"]
    words += [str(tmp_path / "out"), "--calibration", str(tmp_path / "c.npz")]
    assert answer(words) == 2
    told = capfd.readouterr().err
    assert "GATHER (writes rows): gather index out of bounds" in told and "hint" in told
    assert "Traceback" not in told and not (tmp_path / "out").exists()


def test_a_ranking_of_the_model_s_own_input_is_verified_as_any_other(tmp_path: Path) -> None:
    body = """(float[1,12] x) => (float[1,3] best, int64[1,3] places) <int64[1] k = {3}> {
      best, places = TopK(x, k)
    }"""
    onnx.save(parsed(body, opset=18), tmp_path / "ranks.onnx")
    data = np.random.default_rng(0).permuted(np.tile(np.arange(12), (6, 1)), axis=1)
    np.savez(tmp_path / "x.npz", x=data.reshape(6, 1, 12).astype(np.float32))
    options = Options(
        tmp_path / "ranks.onnx", "cpu", tmp_path / "out", calibration=str(tmp_path / "x.npz")
    )
    result = run(options, Silent())
    assert result.trusted and (tmp_path / "out" / "manifest.json").is_file()
