"""Runs the main job as a person would, in a process of its own, and reads what it wrote.

Decides what is measured: wall time, peak resident memory (the kernel's figure for the process and
those it waited for), operators of unsplit.tflite read back from the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from splitter.tflite.read import read

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"


@dataclass(frozen=True)
class Job:
    """A model, and the options that `make demo` and the documentation use for it."""

    name: str
    model: Path
    options: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """seconds: wall time; megabytes: peak resident; operators, transposes: of unsplit.tflite."""

    seconds: float
    megabytes: float
    status: int
    operators: int
    transposes: int


CALIBRATION = ("--calibration", str(MODELS / "calib_images.npz"), "--preprocess", "imagenet")
JOBS = (
    Job(
        "tiny",
        MODELS / "rf_detr_tiny.onnx",
        (*CALIBRATION, "--validation", str(MODELS / "val_images.npz")),
    ),
    Job(
        "nano",
        MODELS / "built" / "rfdetr_nano_384.onnx",
        (*CALIBRATION, "--calibration-samples", "8", "--verify-samples", "4"),
    ),
)


@dataclass(frozen=True)
class Recorded:
    """A peer's figures, not measured here."""

    name: str
    seconds: float
    operators: int
    transposes: int
    note: str


ONNX2TF = Recorded(
    "nano, onnx2tf 2.6.9",
    seconds=37.0,
    operators=1164,
    transposes=70,
    note=(
        "onnx2tf 2.6.9 (flatbuffer_direct) on the same file, recorded on 2 cores: float only; its "
        'strict INT8 stops after 112 s at "Unsupported op for strict full integer quantization '
        '... SQRT"'
    ),
)


def run(job: Job, out: Path) -> Measured:
    """Split the model for the i.MX95 into `out`, float.tflite kept."""
    command = [sys.executable, "-m", "splitter", str(job.model), "--target", "imx95"]
    command += ["-o", str(out), "--keep-float", *job.options]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode > 1:
        raise SystemExit(f"the job failed on {job.name} with status {process.returncode}")
    codes = [op.code for op in read((out / "unsplit.tflite").read_bytes()).operators]
    return Measured(
        seconds=seconds,
        megabytes=usage.ru_maxrss / 1024,
        status=process.returncode,
        operators=len(codes),
        transposes=codes.count("TRANSPOSE"),
    )
