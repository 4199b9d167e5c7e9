"""The full-size Nano is rebuilt from its stripped graph, the same bytes everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest

from models import build_nano

SHA256 = "60dc7b18a06df52eed93a3f9f0edde7191db58098dab5f555bb38753e680b369"
"""Of the file that the author of the stripped graph makes with a program of their own."""


@pytest.fixture(scope="module")
def nano() -> onnx.ModelProto:
    return build_nano.refill(onnx.load(build_nano.STRIPPED))


def test_the_rebuilt_file_is_the_recorded_one_to_the_byte(nano: onnx.ModelProto) -> None:
    data = nano.SerializeToString()
    assert len(data) == 107_198_139
    assert hashlib.sha256(data).hexdigest() == SHA256


def test_no_tensor_is_left_empty_and_no_record_is_left_over(nano: onnx.ModelProto) -> None:
    for _, tensor in build_nano.stripped_tensors(nano.graph):
        assert onnx.numpy_helper.to_array(tensor).size == np.prod(tensor.dims, dtype=int)
    assert [p.key for p in nano.metadata_props if p.key == build_nano.PROPERTY] == []


def test_the_stripped_graph_in_memory_is_not_changed() -> None:
    stripped = onnx.load(build_nano.STRIPPED)
    before = stripped.SerializeToString()
    build_nano.refill(stripped)
    assert stripped.SerializeToString() == before


def test_no_model_file_in_git_is_over_10_mb() -> None:
    files = [path for path in Path(build_nano.HERE).iterdir() if path.is_file()]
    assert {path.name for path in files} >= {"rf_detr_tiny.onnx", "val_images.npz"}
    assert [path.name for path in files if path.stat().st_size > 10_000_000] == []
