"""Accuracy of a detector on a validation file, as JSON.

    python models/evaluate.py MODEL [--validation FILE.npz] [--float MODEL.onnx] [--images N]

MODEL is a bundle folder of `split`, an ONNX file, or a .tflite file, integer (by its own
quantization parameters) or float. The validation file holds `images` uint8 NHWC, `boxes` x0 y0 x1
y1 in pixels [N, M, 4], `labels` [N, M], `counts` [N]. Printed: mAP50 and mAP50-95 as COCO's, and
how many detections with score over 0.5 of the float model are found again (over 0.5 too; at any
score), and how many over 0.5 are extra.
Decides nothing: the metrics live in `splitter.verify`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from splitter.graph import Array, Value
from splitter.verify.coco import Truth, average_precision
from splitter.verify.detections import Detections, agree, decode_detr
from splitter.verify.tasks import find_task

HERE = Path(__file__).resolve().parent
VALIDATION = HERE / "val_images.npz"
FLOAT = HERE / "rf_detr_tiny.onnx"
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
STD = np.array((0.229, 0.224, 0.225), np.float32)

Runner = Callable[[Array], tuple[Array, Array]]
"""Preprocessed images [N, 3, H, W] float32 -> boxes [N, Q, 4] and logits [N, Q, C], float32."""


def evaluate(
    model: Path | str | bytes | Runner,
    *,
    validation: Path = VALIDATION,
    float_model: Path | None = FLOAT,
    images: int = 0,
    threads: int = 1,
) -> dict[str, Any]:
    """The figures of one model; `images` takes the first ones only, 0 takes all.

    `model` is a path, the bytes of a .tflite file, or a function on preprocessed images.
    `float_model` None leaves the comparison with the float detections out.
    """
    data = _read(validation, images)
    start = time.perf_counter()
    found = _detect(_runner(model, threads), data)
    seconds = time.perf_counter() - start
    precision = average_precision(found, _truth(data))
    figures: dict[str, Any] = {
        "images": len(found),
        "mAP50": round(precision.ap50, 5),
        "mAP50-95": round(precision.ap, 5),
        "seconds": round(seconds, 2),
    }
    if float_model is None:
        return figures
    reference = _reference(float_model, validation, images, threads)
    base = average_precision(reference, _truth(data))
    same = agree(reference, found)
    return figures | {
        "float_mAP50": round(base.ap50, 5),
        "float_mAP50-95": round(base.ap, 5),
        "mAP50_drop_points": round(100 * (base.ap50 - precision.ap50), 2),
        "mAP50-95_drop_points": round(100 * (base.ap - precision.ap), 2),
        "float_detections": same.reference,
        "found_again_percent": round(100 * same.found_share, 2),
        "found_at_any_score_percent": round(
            100 * (same.found + same.weakened) / max(1, same.reference), 2
        ),
        "extra_percent": round(100 * same.extra_share, 2),
        "mean_overlap": round(same.overlap, 4),
        "score_rms": round(same.score_rms, 4),
        "score_bias": round(same.score_bias, 4),
    }


def preprocess(images: Array) -> Array:
    """uint8 NHWC RGB to float32 NCHW, (x / 255 - mean) / std with ImageNet's figures."""
    scaled = (images.astype(np.float32) / 255.0 - MEAN) / STD
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


def _read(validation: Path, images: int) -> dict[str, Array]:
    with np.load(validation, allow_pickle=False) as archive:
        data = {name: archive[name] for name in archive.files}
    if not images:
        return data
    per_image = ("images", "boxes", "labels", "counts")
    return data | {name: data[name][:images] for name in per_image}


def _truth(data: Mapping[str, Array]) -> list[Truth]:
    return [
        Truth(boxes[:count], labels[:count])
        for boxes, labels, count in zip(data["boxes"], data["labels"], data["counts"], strict=True)
    ]


def _detect(run: Runner, data: Mapping[str, Array]) -> list[Detections]:
    boxes, logits = run(preprocess(data["images"]))
    height, width = data["images"].shape[1:3]
    named = len(data["class_names"]) if "class_names" in data else 0
    classes = named if named == logits.shape[2] - 1 else 0  # one column more is the background
    return [
        decode_detr(box, logit, classes=classes, size=(width, height))
        for box, logit in zip(boxes, logits, strict=True)
    ]


@cache
def _reference(path: Path, validation: Path, images: int, threads: int) -> list[Detections]:
    """The float detections, once per process."""
    return _detect(_runner(path, threads), _read(validation, images))


def _runner(model: Path | str | bytes | Runner, threads: int) -> Runner:
    if isinstance(model, bytes):
        return tflite_runner(model, threads=threads)
    if callable(model):
        return model
    path = Path(model)
    if path.is_dir():
        return lambda images: _run_bundle(path, images)
    if path.suffix == ".tflite":
        return tflite_runner(path.read_bytes(), threads=threads)
    return _onnx_runner(path, threads)


def tflite_runner(model: bytes, *, threads: int = 1) -> Runner:
    """Built-in kernels, no delegate. Integer inputs and outputs by their own scale and zero point.

    One image input, NCHW or NHWC, batch 1.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model,
        num_threads=threads,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    (entry,) = interpreter.get_input_details()
    outputs = interpreter.get_output_details()
    channels_last = entry["shape"][3] == 3 and entry["shape"][1] != 3

    def run(images: Array) -> tuple[Array, Array]:
        rows: list[list[Array]] = []
        for image in images:
            given = image.transpose(1, 2, 0) if channels_last else image
            interpreter.set_tensor(entry["index"], _to_integer(given[None], entry))
            interpreter.invoke()
            rows.append([_to_float(interpreter.get_tensor(o["index"]), o) for o in outputs])
        return _boxes_and_logits(_joined([output["name"] for output in outputs], rows))

    return run


def _to_integer(values: Array, detail: Mapping[str, Any]) -> Array:
    dtype = np.dtype(detail["dtype"])
    scale, zero = detail["quantization"]
    if dtype.kind == "f" or not scale:
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    steps = np.rint(values / np.float32(scale)) + zero
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype)


def _to_float(values: Array, detail: Mapping[str, Any]) -> Array:
    scale, zero = detail["quantization"]
    if values.dtype.kind == "f" or not scale:
        return values.astype(np.float32)
    return np.asarray((values.astype(np.float32) - np.float32(zero)) * np.float32(scale))


def _joined(names: Sequence[str], rows: Sequence[Sequence[Array]]) -> dict[str, Array]:
    columns = zip(*rows, strict=True)
    return {n: np.concatenate(column) for n, column in zip(names, columns, strict=True)}


def _boxes_and_logits(outputs: Mapping[str, Array]) -> tuple[Array, Array]:
    """Which output is which, by shape and name as in the main job."""
    values = [Value(name, array.shape, "float32") for name, array in outputs.items()]
    task = find_task(values, asked="detection")
    return outputs[task.boxes], outputs[task.scores]


def _onnx_runner(path: Path, threads: int) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = model.get_inputs()[0].name

    def run(images: Array) -> tuple[Array, Array]:
        rows = [model.run(None, {name: image[None]}) for image in images]
        return _boxes_and_logits(_joined([output.name for output in model.get_outputs()], rows))

    return run


def _run_bundle(bundle: Path, images: Array) -> tuple[Array, Array]:
    """By the bundle's own glue/run.py, as on the board."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    (name,) = (entry["name"] for entry in manifest["inputs"])
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "in.npz"), Path(folder, "out.npz")
        arrays: dict[str, Any] = {name: images}
        np.savez(given, **arrays)
        command = [sys.executable, str(bundle / "glue" / "run.py"), str(given), "-o", str(made)]
        subprocess.run(command, check=True, stdout=sys.stderr)
        with np.load(made, allow_pickle=False) as archive:
            return _boxes_and_logits({key: archive[key] for key in archive.files})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Accuracy of a detector, as JSON.")
    parser.add_argument("model", type=Path, help="bundle folder, .onnx or .tflite")
    parser.add_argument("--validation", type=Path, default=VALIDATION)
    parser.add_argument("--float", dest="float_model", type=Path, default=FLOAT)
    parser.add_argument("--images", type=int, default=0, help="the first N only")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    figures = evaluate(
        given.model,
        validation=given.validation,
        float_model=given.float_model,
        images=given.images,
        threads=given.threads,
    )
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
