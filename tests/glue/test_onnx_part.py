"""A bundle with an ONNX part: written, verified and run as one model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from splitter.diagnostics import SplitterError
from splitter.examine import examine
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.messages import BadInput
from splitter.glue.board.runner import Runner
from splitter.glue.manifest import from_json, read_manifest
from splitter.options import Options
from splitter.pipeline import Result, run
from splitter.progress import Silent
from tests.ops.lowered import parsed

BODY = """(float[1,3,8,8] x) => (float[1,4,8,8] z, float[K,4] found) <float[4,3,1,1] w> {
  rows = Constant<value = int64[2] {-1,4}>()
  one = Constant<value = int64[1] {1}>()
  limit = Constant<value = float {0.5}>()
  z = Conv (x, w) boxes = Reshape (z, rows) scores = ReduceMax<keepdims = 0> (boxes, one)
  over = Greater (scores, limit) places = NonZero (over)
  where = Transpose<perm = [1, 0]> (places) found = GatherND (boxes, where)
}"""

Made = tuple[Path, Result, Path]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("onnx-part")
    onnx.save(parsed(BODY, opset=18), folder / "detector.onnx")
    random = np.random.default_rng(0)
    np.savez(folder / "c.npz", x=random.normal(0, 1, (12, 3, 8, 8)).astype(np.float32))
    options = Options(
        folder / "detector.onnx",
        "imx95",
        folder / "out",
        calibration=str(folder / "c.npz"),
        cpu_runtime="onnxruntime",
    )
    return folder / "out", run(options, Silent()), folder / "detector.onnx"


def sample() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)}


def test_the_outputs_are_those_of_the_model_in_its_order(bundle: Made) -> None:
    out, _, model = bundle
    wanted = onnxruntime.InferenceSession(str(model)).run(["z", "found"], sample())
    made = Runner(Bundle(out), Settings()).run(sample()).outputs
    assert list(made) == ["z", "found"]
    assert np.abs(made["z"] - wanted[0]).max() < 0.05
    assert abs(len(made["found"]) - len(wanted[1])) <= 2 and made["found"].shape[1] == 4


def test_the_unsplit_model_goes_on_in_the_same_part(bundle: Made) -> None:
    parts = Runner(Bundle(bundle[0]), Settings()).run(sample()).outputs
    whole = Runner(Bundle(bundle[0], unsplit=True), Settings()).run(sample()).outputs
    assert all(np.array_equal(parts[name], whole[name]) for name in ("z", "found"))


def test_bits_are_demanded_of_the_tflite_parts_and_the_cut_of_the_onnx_part(bundle: Made) -> None:
    findings = bundle[1].comparison.findings
    split = findings.stage("split")
    assert (
        split is not None
        and split.bit_equal
        and {t.name for t in split.tensors}
        == {
            "boxes",
            "z",
        }
    )
    assert [(output.name, output.cut) for output in findings.behind] == [("found", 0.0)]
    assert bundle[1].trusted


def test_the_manifest_names_the_runtime_the_shapes_and_the_reason(bundle: Made) -> None:
    manifest = read_manifest(bundle[0])
    part = manifest.remainder
    assert part is not None and part.runtime == "onnxruntime"
    assert part.file == "parts/1-cpu.onnx" and (bundle[0] / part.file).is_file()
    assert [(i.name, i.shape) for i in part.inputs] == [("boxes", (64, 4))]
    assert [(o.name, o.shape) for o in part.outputs] == [("found", (None, 4))]
    assert part.unsupported[0].operator == "NonZero"


def test_a_manifest_whose_onnx_part_reads_what_nothing_makes_is_refused(bundle: Made) -> None:
    manifest = json.loads(read_manifest(bundle[0]).to_json())
    manifest["remainder"]["inputs"][0]["from"] = {"value": "nothing"}
    manifest["remainder"]["results"].append("void")
    with pytest.raises(SplitterError) as caught:
        from_json(json.dumps(manifest))
    assert "remainder.inputs boxes" in caught.value.what and "void" in caught.value.what


def test_every_report_says_what_runs_where(bundle: Made) -> None:
    out, result, _ = bundle
    text = result.text()
    assert "parts/1-cpu.onnx" in text and "NonZero x 1 and what follows" in text
    report = json.loads((out / "report.json").read_text())
    assert report["onnx_part"]["unsupported"] == {"NonZero": 1}
    assert report["verification"]["onnx_part"][0]["name"] == "found"
    assert "parts/1-cpu.onnx" in (out / "report.html").read_text()
    assert "pip install onnxruntime" in (out / "NEXT_STEPS.md").read_text()
    assert "GatherND 1" in examine(out, None, trust="proxy")[-1].to_text()


def test_a_board_without_onnx_runtime_is_told_once(
    bundle: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BadInput, match=r"1-cpu.onnx.*pip install onnxruntime"):
        Runner(Bundle(bundle[0]), Settings())


def test_rows_of_several_batches_are_not_mixed(bundle: Made) -> None:
    two = {"x": np.repeat(sample()["x"], 2, axis=0)}
    with pytest.raises(BadInput, match="one batch at a time: found"):
        Runner(Bundle(bundle[0]), Settings()).run(two)


def test_a_changed_onnx_part_is_refused(bundle: Made) -> None:
    file = bundle[0] / "parts/1-cpu.onnx"
    before = file.read_bytes()
    file.write_bytes(before + b"\0")
    try:
        with pytest.raises(BadInput, match=r"1-cpu.onnx was changed"):
            Bundle(bundle[0])
    finally:
        file.write_bytes(before)


def test_without_the_option_the_refusal_offers_it(bundle: Made, tmp_path: Path) -> None:
    mixed = BODY.replace("found = Gath", "picked = Gath").rstrip("}")
    mixed += 'found = Einsum<equation = "ij,ik->jk"> (picked, picked) }'
    onnx.save(parsed(mixed, opset=18), tmp_path / "mixed.onnx")
    with pytest.raises(SplitterError) as caught:
        options = Options(tmp_path / "mixed.onnx", "imx95", tmp_path / "out", calibration="random")
        run(options, Silent())
    assert "NonZero" in caught.value.what and "--cpu-runtime onnxruntime" in caught.value.hint
    assert "--outputs" in caught.value.hint and not (tmp_path / "out").exists()
