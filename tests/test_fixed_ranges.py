"""Quantization at run time, taken out: near what the file gives, and only where all is known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from splitter.fixed_ranges import dynamic_steps, file_notes, fixed_ranges
from splitter.graph import Array
from splitter.normalize import normalize
from splitter.normalize.check import difference
from splitter.normalize.evaluate import session
from tests.normalize.support import as_model, ops, samples_of

MODELS = {
    "MatMulInteger": """(float[4,16] x) => (float[4,8] y) {
      a, s, z = DynamicQuantizeLinear(x)
      p = MatMulInteger(a, w, z, wz)
      c = Cast<to = 1>(p) t = Mul(s, ws) y = Mul(c, t)
    }""",
    "one step, two products": """(float[4,16] x) => (float[4,8] y) {
      a, s, z = DynamicQuantizeLinear(x)
      p = MatMulInteger(a, w, z, wz) q = MatMulInteger(a, w, z)
      c = Cast<to = 1>(p) d = Cast<to = 1>(q) e = Add(c, d) t = Mul(s, ws) y = Mul(e, t)
    }""",
    "ConvInteger": """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
      a, s, z = DynamicQuantizeLinear(x)
      p = ConvInteger<pads = [1,1,1,1]>(a, k, z, one)
      c = Cast<to = 1>(p) t = Mul(s, ks) y = Mul(c, t)
    }""",
    "DynamicQuantizeMatMul": """(float[4,16] x) => (float[4,8] y) {
      y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz, b)
    }""",
    "DynamicQuantizeLSTM": """(float[5,1,6] x) => (float[5,1,1,4] y) {
      y = com.microsoft.DynamicQuantizeLSTM<hidden_size = 4>
        (x, lw, lr, lb, , , , , one_scale, one_zero, one_scale, one_zero)
    }""",
}


def model_of(body: str) -> onnx.ModelProto:
    random = np.random.default_rng(3)
    tensors: dict[str, Array] = {
        "w": random.integers(-127, 128, (16, 8), np.int8),
        "wz": np.asarray([3, -2, 0, 1, 5, 0, 0, -7], np.int8),
        "ws": random.uniform(0.01, 0.02, 8).astype(np.float32),
        "b": random.standard_normal(8).astype(np.float32),
        "k": random.integers(0, 256, (4, 3, 3, 3), np.uint8),
        "one": np.asarray(127, np.uint8),
        "ks": np.asarray(0.01, np.float32),
        "lw": random.integers(-127, 128, (1, 6, 16), np.int8),
        "lr": random.integers(-127, 128, (1, 4, 16), np.int8),
        "lb": random.standard_normal((1, 32)).astype(np.float32),
        "one_scale": np.asarray([0.01], np.float32),
        "one_zero": np.asarray([0], np.int8),
    }
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>g {body}'
    )
    read = {name for node in model.graph.node for name in node.input}
    for name in sorted(read & set(tensors)):
        model.graph.initializer.append(numpy_helper.from_array(tensors[name], name))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_the_model_without_the_step_is_near_the_file(name: str) -> None:
    before = as_model(model_of(MODELS[name]))
    after = fixed_ranges(before)
    for sample in samples_of(before.proto):
        wanted = session(before.proto).run(["y"], sample)[0]
        assert difference(wanted, session(after.proto).run(["y"], sample)[0]) < 0.02
    left = set(ops(normalize(after).proto))
    assert not left & {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "Cast"}


def test_the_given_model_is_not_changed_and_the_report_is_told() -> None:
    before = as_model(model_of(MODELS["MatMulInteger"]))
    stored = before.proto.SerializeToString()
    assert fixed_ranges(before) is not before
    assert before.proto.SerializeToString() == stored
    assert "at run time at 1 places" in file_notes(before)[0]


@pytest.mark.parametrize("more", ["y2 = Identity(a)", "y2 = Cast<to = 1>(z)"])
def test_a_step_whose_integers_go_elsewhere_stays(more: str) -> None:
    kind = "uint8[4,16]" if "Identity" in more else "float"
    body = (
        MODELS["MatMulInteger"]
        .replace("y) {", f"y, {kind} y2) {{")
        .replace("c = Cast", more + " c = Cast")
    )
    model = as_model(model_of(body))
    assert not dynamic_steps(model) and fixed_ranges(model) is model
