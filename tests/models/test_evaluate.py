"""The accuracy command: the same figures by every way a model can be given."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from splitter.graph import Array
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("evaluate", MODELS / "evaluate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluate"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures of 8 x 8 with two objects each."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 4, (12, 2, 2))
    path = tmp_path_factory.mktemp("validation") / "v.npz"
    np.savez(
        path,
        images=rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8),
        boxes=np.concatenate([low, low + 3], axis=2).astype(np.float32),
        labels=rng.integers(0, 3, (12, 2)),
        counts=np.full(12, 2),
    )
    return path


def truth_as_outputs(validation: Path) -> tuple[Array, Array]:
    """Boxes and logits of a detector that knows everything."""
    with np.load(validation) as data:
        boxes, labels = data["boxes"] / 8, data["labels"]
    centers = np.concatenate(
        [(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], axis=2
    )
    return centers.astype(np.float32), np.where(np.eye(3)[labels] > 0, 6.0, -6.0)


def test_a_perfect_detector_has_precision_one(command: ModuleType, validation: Path) -> None:
    outputs = truth_as_outputs(validation)
    figures = command.evaluate(lambda images: outputs, validation=validation, float_model=None)
    assert figures["mAP50"] == 1.0 and figures["mAP50-95"] == pytest.approx(1.0, abs=1e-4)


def test_the_float_model_finds_itself_again(
    command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(MODELS / "rf_detr_tiny.onnx"), "--images", "12"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["found_again_percent"] == 100.0 and figures["extra_percent"] == 0.0
    assert figures["mAP50-95_drop_points"] == 0.0 and figures["mAP50"] > 0.9


def integer_detector() -> bytes:
    """Boxes and logits are the input itself, reshaped: what comes out shows both conversions."""
    q = Quantization((0.02,), (7,))
    tensors = [
        Tensor("input", (1, 3, 8, 8), "int8", quantization=q),
        Tensor("pred_boxes", (1, 48, 4), "int8", quantization=q),
        Tensor("pred_logits", (1, 48, 4), "int8", quantization=q),
        Tensor("shape", (3,), "int32", np.array([1, 48, 4], np.int32)),
    ]
    operators = tuple(
        Operator("RESHAPE", ("input", "shape"), (name,), {"new_shape": (1, 48, 4)})
        for name in ("pred_logits", "pred_boxes")
    )
    graph = LiteGraph(
        ("input",), ("pred_logits", "pred_boxes"), {t.name: t for t in tensors}, operators
    )
    return write(graph)


def test_integer_files_are_fed_and_read_by_their_own_parameters(command: ModuleType) -> None:
    images = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype(np.float32)
    boxes, logits = command.tflite_runner(integer_detector())(images)
    steps = np.clip(np.rint(images / np.float32(0.02)) + 7, -128, 127)
    wanted = ((steps - 7) * np.float32(0.02)).astype(np.float32).reshape(3, 48, 4)
    np.testing.assert_allclose(boxes, wanted, atol=1e-6)
    np.testing.assert_array_equal(boxes, logits)
