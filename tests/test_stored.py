"""Weights that stay in their files: mapped, handed on by their place, inlined for other files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from splitter import stored
from splitter.model import Model, load
from splitter.normalize import normalize
from splitter.normalize.exchange import to_draft
from splitter.reference import run_onnx

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[1,2] i, float[1,2,4] x) => (float[1,2,3] y) {
  e = Gather(table, i)
  s = Add(e, x)
  y = MatMul(s, w)
}
"""
SAMPLE = {
    "i": np.array([[7, 2]]),
    "x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 2, 4),
}


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, onnx.ModelProto]:
    """A model whose weights count as more than is held, and the same with its weights inside."""
    monkeypatch.setattr(stored, "HELD", 100)
    monkeypatch.setattr(stored, "LARGE", 100)
    inside = parser.parse_model(TEXT)
    table = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    inside.graph.initializer.append(numpy_helper.from_array(table, "table"))
    inside.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    model = onnx.ModelProto()
    model.CopyFrom(inside)
    (tmp_path / "data").mkdir()
    path = tmp_path / "large.onnx"
    (tmp_path / "data" / "weights.bin").write_bytes(bytes(32) + table.tobytes() + weight.tobytes())
    offset = 32
    for tensor in model.graph.initializer:
        stored.refer(tensor, Path("data/weights.bin"), offset, len(tensor.raw_data))
        offset += len(tensor.raw_data)
        tensor.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    return path, inside


def tensor_of(model: Model, name: str) -> onnx.TensorProto:
    return next(t for t in model.proto.graph.initializer if t.name == name)


def test_a_large_tensor_stays_in_its_file_and_a_small_one_is_read(
    large: tuple[Path, onnx.ModelProto],
) -> None:
    model = load(large[0])
    assert not tensor_of(model, "table").HasField("raw_data")
    assert tensor_of(model, "w").HasField("raw_data")
    held = {t.name: numpy_helper.to_array(t) for t in large[1].graph.initializer}
    for name, array in to_draft(model.proto).constants.items():
        assert np.array_equal(array, held[name])


def test_what_is_still_the_bytes_of_the_file_is_handed_on_by_its_place(
    large: tuple[Path, onnx.ModelProto],
) -> None:
    normalized = normalize(load(large[0]))
    assert not tensor_of(normalized, "table").HasField("raw_data")
    array = stored.array_of(tensor_of(normalized, "table"))
    place = (large[0].parent / "data" / "weights.bin", 32)
    assert stored.place_of(array) == place
    assert stored.place_of(array.reshape(-1)) == place
    for other in (array[1:], array.T, array[::2], array.copy()):
        assert stored.place_of(other) is None


def test_onnx_runtime_computes_the_same_from_the_file(
    large: tuple[Path, onnx.ModelProto],
) -> None:
    made = run_onnx(load(large[0]).proto, SAMPLE, ["y", "e"])
    wanted = run_onnx(large[1], SAMPLE, ["y", "e"])
    assert all(np.array_equal(made[name], wanted[name]) for name in wanted)


def test_an_inlined_tensor_needs_no_file(large: tuple[Path, onnx.ModelProto]) -> None:
    tensor = stored.inlined(tensor_of(load(large[0]), "table"))
    (large[0].parent / "data" / "weights.bin").unlink()
    assert np.array_equal(
        numpy_helper.to_array(tensor), numpy_helper.to_array(large[1].graph.initializer[0])
    )
