"""Files in bfloat16 become float32: borders, weights, casts, constants, bodies and functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, parser

from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.model import load
from splitter.options import Options
from splitter.pipeline import run
from splitter.plain_types import plain_types, type_notes
from splitter.progress import Silent
from splitter.reference import OnnxRunner

TEXT = """<ir_version: 10, opset_import: ["" : 20, "own" : 1]>
g (bfloat16[1,4] x, bool c) => (bfloat16[1,4] y, float[1,4] z) {
  a = own.Half (x)
  b = MatMul (a, w)
  d = If (c) <then_branch = p () => (bfloat16[1,4] u) {
        one = Constant <value = bfloat16 {1.0}> () u = Add (b, one)
      }, else_branch = q () => (bfloat16[1,4] v) { v = Neg (b) }>
  f = Cast <to = 1> (d)
  y = Cast <to = 16> (f)
  z = Tanh (f)
}
<domain: "own", opset_import: ["" : 20]>
Half (x) => (y) { half = Constant <value = bfloat16 {0.5}> () y = Mul (x, half) }"""

WEIGHTS = np.asarray([[1, 2, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0.5], [0, 0, 0, 1]], np.float32)


def saved(folder: Path) -> Path:
    """The model with weights in bfloat16, whose numbers are exact in it."""
    text = TEXT.replace("bfloat16 {1.0}", "float {1.0}").replace("bfloat16 {0.5}", "float {0.5}")
    proto = parser.parse_model(text)
    half = WEIGHTS.view(np.uint32) >> 16
    weights = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[4, 4])
    weights.raw_data = half.astype(np.uint16).tobytes()
    proto.graph.initializer.append(weights)
    branch = proto.graph.node[2].attribute[0].g
    for node in (branch.node[0], proto.functions[0].node[0]):
        value = node.attribute[0].t
        number = onnx.numpy_helper.to_array(value)
        value.CopyFrom(TensorProto(data_type=TensorProto.BFLOAT16, dims=value.dims))
        value.raw_data = (number.reshape(1).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    onnx.checker.check_model(proto)
    onnx.save(proto, folder / "half.onnx")
    return folder / "half.onnx"


def expected(x: np.ndarray, chosen: bool) -> np.ndarray:
    product = 0.5 * x @ WEIGHTS
    return np.asarray(product + 1 if chosen else -product)


def test_every_value_and_weight_is_float32_with_the_same_numbers(tmp_path: Path) -> None:
    model = load(saved(tmp_path))
    plain = plain_types(model)
    assert [value.dtype for value in plain.inputs] == ["float32", "bool"]
    assert [value.dtype for value in plain.outputs] == ["float32", "float32"]
    assert "BFLOAT16" not in str(plain.proto) and model.inputs[0].dtype == "bfloat16"
    x = np.asarray([[0.3, -1.7, 2.1, 0.9]], np.float32)
    for chosen in (True, False):
        made = OnnxRunner(plain.proto).run({"x": x, "c": np.asarray(chosen)})
        np.testing.assert_allclose(made["y"], expected(x, chosen), rtol=1e-6)
        np.testing.assert_allclose(made["z"], np.tanh(expected(x, chosen)), rtol=1e-5)


def test_a_file_in_bfloat16_goes_through_and_the_report_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path)
    random = np.random.default_rng(0)
    x = random.normal(0, 1, (12, 1, 4)).astype(np.float32)
    np.savez(tmp_path / "c.npz", x=x, c=random.integers(0, 2, 12).astype(bool))
    out = tmp_path / "out"
    result = run(Options(path, "cpu", out, calibration=str(tmp_path / "c.npz")), Silent())
    text = " ".join(result.text().split())
    assert "the file holds bfloat16" in text and "x, y are float32 at the border" in text
    made = Runner(Bundle(out), Settings()).run({"x": x[0], "c": np.asarray(True)}).outputs
    assert {name: array.dtype.name for name, array in made.items()} == dict.fromkeys(
        ("y", "z"), "float32"
    )
    assert np.abs(made["y"] - expected(x[0], True)).max() < 0.1


def test_a_file_without_it_is_left_alone_and_not_spoken_of(tmp_path: Path) -> None:
    text = (
        TEXT.replace("bfloat16", "float").replace("to = 16", "to = 1").replace("(a, w)", "(a, a)")
    )
    onnx.save(parser.parse_model(text), tmp_path / "plain.onnx")
    model = load(tmp_path / "plain.onnx")
    assert plain_types(model) is model and type_notes(model) == ()
