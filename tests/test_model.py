"""Loading: what is read, and one clear message for each thing that can be wrong with a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from splitter.diagnostics import SplitterError
from splitter.model import ending_at, load
from splitter.reference import OnnxRunner

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}>
{ y = MatMul(x, w) }
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.onnx"
    path.write_bytes(parser.parse_model(TEXT).SerializeToString())
    return path


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """A model whose weights lie in weights.bin beside it."""
    path = tmp_path / "external.onnx"
    model = parser.parse_model(TEXT)
    tensor = model.graph.initializer[0]
    data = np.arange(12, dtype=np.float32).tobytes()
    (tmp_path / "weights.bin").write_bytes(b"\0" * 16 + data)
    del tensor.float_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "16"), ("length", str(len(data)))):
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


def change(path: Path, **entries: str) -> Path:
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = entries.get(entry.key, entry.value)
    path.write_bytes(model.SerializeToString())
    return path


def test_inputs_and_outputs_are_as_declared_and_weights_are_no_inputs(plain: Path) -> None:
    model = load(plain)
    assert [(v.name, v.shape, v.dtype) for v in model.inputs] == [("x", (2, 3), "float32")]
    assert [(v.name, v.shape, v.dtype) for v in model.outputs] == [("y", (2, 4), "float32")]


def test_the_hash_is_the_one_of_the_file(plain: Path) -> None:
    assert load(plain).sha256 == hashlib.sha256(plain.read_bytes()).hexdigest()


def test_external_data_is_read_and_hashed_after_the_file(external: Path) -> None:
    model = load(external)
    weights = onnx.numpy_helper.to_array(model.proto.graph.initializer[0])
    assert weights.tolist() == np.arange(12, dtype=np.float32).reshape(3, 4).tolist()
    both = external.read_bytes() + (external.parent / "weights.bin").read_bytes()
    assert model.sha256 == hashlib.sha256(both).hexdigest()


def test_loading_never_writes(external: Path) -> None:
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in external.parent.iterdir()}
    load(external)
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in external.parent.iterdir()}
    assert before == after


def message(path: Path) -> str:
    with pytest.raises(SplitterError) as caught:
        load(path)
    assert caught.value.where == str(path)
    return str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no such file" in message(tmp_path / "absent.onnx")


def test_a_folder(tmp_path: Path) -> None:
    assert "folder" in message(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    assert "empty" in message(path)


@pytest.mark.parametrize("content", [b"hello world, no model", b"\x89PNG\r\n\x1a\n", b"\x08\x01"])
def test_a_file_that_is_not_onnx(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    assert "not an ONNX file" in message(path)


def test_a_git_lfs_pointer_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "pointer.onnx"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "Git LFS pointer" in message(path)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file(plain: Path, keep: float) -> None:
    data = plain.read_bytes()
    plain.write_bytes(data[: int(len(data) * keep)])
    assert "truncated" in message(plain)


def test_external_data_that_is_missing(external: Path) -> None:
    (external.parent / "weights.bin").unlink()
    assert "missing: weights.bin" in message(external)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "a/../../weights.bin", ""])
def test_external_data_that_leaves_the_folder(external: Path, location: str) -> None:
    assert "leaves the model's folder" in message(change(external, location=location))


def test_external_data_behind_a_link_that_leaves_the_folder(external: Path) -> None:
    inner = external.parent / "inner"
    inner.mkdir()
    moved = inner / "external.onnx"
    external.rename(moved)
    (inner / "weights.bin").symlink_to(external.parent / "weights.bin")
    assert "leaves the model's folder" in message(moved)


@pytest.mark.parametrize(
    "entries", [{"length": "8"}, {"offset": "999"}, {"offset": "-1"}, {"offset": "x"}]
)
def test_external_data_of_the_wrong_length(external: Path, entries: dict[str, str]) -> None:
    text = message(change(external, **entries))
    assert "wrong length" in text and "w" in text


def test_weights_shorter_than_their_shape(plain: Path) -> None:
    model = onnx.load(plain)
    tensor = model.graph.initializer[0]
    del tensor.float_data[:]
    tensor.raw_data = b"\0" * 40
    plain.write_bytes(model.SerializeToString())
    assert "w needs 48 bytes, has 40" in message(plain)


def test_values_that_nothing_makes_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    text = TEXT.replace("y = MatMul(x, w)", "[mm] z = MatMul(x, absent)")
    path.write_bytes(parser.parse_model(text).SerializeToString())
    found = message(path)
    assert "absent (read by MatMul mm)" in found and "y (an output)" in found


def test_a_model_without_outputs_is_called_so(plain: Path) -> None:
    model = onnx.load(plain)
    del model.graph.output[:]
    onnx.save(model, plain)
    assert "no outputs" in message(plain)


CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z)
{ a = Relu(x) b = Exp(a) y = Neg(b) z = Sin(a) }
"""


def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.onnx"
    path.write_bytes(parser.parse_model(CHAIN).SerializeToString())
    return path


def test_a_model_may_end_at_values_inside(tmp_path: Path) -> None:
    model = ending_at(load(chain(tmp_path)), ("b", "z"))
    assert [v.name for v in model.outputs] == ["b", "z"]
    assert [node.op_type for node in model.proto.graph.node] == ["Relu", "Exp", "Sin"]
    runtime = OnnxRunner(model.proto)
    x = np.ones((2, 3), np.float32)
    assert np.allclose(runtime.run({"x": x})["b"], np.e)


def test_a_model_without_other_ends_is_the_same(tmp_path: Path) -> None:
    model = load(chain(tmp_path))
    assert ending_at(model, ()) is model


def test_an_unknown_end_offers_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SplitterError) as caught:
        ending_at(load(chain(tmp_path)), ("y", "bb"))
    assert "bb" in str(caught.value) and "did you mean b" in str(caught.value)
