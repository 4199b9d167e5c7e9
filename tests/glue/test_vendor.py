"""NPU parts as ONNX files, for targets whose compiler reads ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from splitter.glue.manifest import check_files, read_manifest
from splitter.options import Options
from splitter.pipeline import run
from splitter.progress import Silent
from tests.ops.lowered import parsed

BODY = """(float[1,3,16,16] x) => (float[1,8,8,8] y) <float[8,3,3,3] w, float[8,8,3,3] v> {
  a = Conv<pads = [1,1,1,1], strides = [2,2]> (x, w)
  b = Relu (a)
  c = Conv<pads = [1,1,1,1]> (b, v)
  d = Abs (c)
  axis = Constant<value = int64 {1}>()
  y = CumSum (d, axis)
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vendor")
    onnx.save(parsed(BODY, opset=17), made / "net.onnx")
    return made


def bundle(folder: Path, target: str, **more: tuple[str, ...]) -> Path:
    out = folder / target
    if not out.exists():
        options = Options(folder / "net.onnx", target, out, calibration="random", **more)
        run(options, Silent())
    return out


@pytest.mark.parametrize("target", ["rk3588", "tidl-am62a"])
def test_the_onnx_part_gives_the_values_of_the_file(folder: Path, target: str) -> None:
    out = bundle(folder, target, npu=("b", "c"))
    manifest = read_manifest(out)
    check_files(manifest, out)
    vendor = next(part.vendor for part in manifest.parts if part.device == "npu")
    assert vendor is not None and vendor.file == "parts/0-npu.onnx"
    proto = onnx.load(str(out / vendor.file))
    onnx.checker.check_model(proto)
    assert [entry.version for entry in proto.opset_import] == [17]
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    whole = onnx.load(str(folder / "net.onnx"))
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in vendor.outputs)
    wanted = onnxruntime.InferenceSession(whole.SerializeToString()).run(
        list(vendor.outputs), {"x": x}
    )
    made = onnxruntime.InferenceSession(str(out / vendor.file)).run(list(vendor.outputs), {"x": x})
    for one, other in zip(wanted, made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_next_steps_convert_the_onnx_file(folder: Path) -> None:
    text = (bundle(folder, "rk3588", npu=("b", "c")) / "NEXT_STEPS.md").read_text()
    assert "rknn_convert -t rk3588 -i parts/0-npu.onnx" in text
    assert "split inspect" not in text and "quantizes by itself" in text


def test_a_target_whose_compiler_reads_tflite_gets_none(folder: Path) -> None:
    out = bundle(folder, "imx95")
    assert not list((out / "parts").glob("*.onnx"))
    assert all(part.vendor is None for part in read_manifest(out).parts)
