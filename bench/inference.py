"""Time of one inference of what the job wrote, beside ONNX Runtime on the original.

The contestants take turns, so that what else the machine does falls on all of them alike; the
median of their turns counts. Figures of this machine, not of a board.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from bench.job import Job
from splitter.graph import Array
from splitter.tflite.runtime import Interpreter

THREADS = 2
Once = Callable[[], object]


def contestants(job: Job, out: Path) -> dict[str, Once]:
    """What runs once, by its name in the table."""
    unsplit = (out / "unsplit.tflite").read_bytes()
    whole = (out / "float.tflite").read_bytes()
    return {
        "ONNX Runtime, float": onnx_runtime(job.model),
        "float.tflite, XNNPACK": lite(whole, xnnpack=True),
        "float.tflite, built-in kernels": lite(whole, xnnpack=False),
        "unsplit.tflite (INT8), XNNPACK": lite(unsplit, xnnpack=True),
        "unsplit.tflite (INT8), built-in kernels": lite(unsplit, xnnpack=False),
    }


def race(runners: dict[str, Once], *, turns: int) -> dict[str, float]:
    """Median milliseconds of each; one turn before the clock runs."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(turns + 1):
        for name, once in runners.items():
            started = time.perf_counter()
            once()
            if turn:
                times[name].append((time.perf_counter() - started) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def onnx_runtime(model: Path) -> Once:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds = {i.name: noise(tuple(i.shape), "float32") for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def lite(model: bytes, *, xnnpack: bool) -> Once:
    interpreter = Interpreter(model, threads=THREADS, xnnpack=xnnpack)
    feeds = {
        name: noise(tuple(detail["shape"]), np.dtype(detail["dtype"]).name)
        for name, detail in interpreter.inputs.items()
    }
    return lambda: interpreter.run(feeds)


def noise(shape: tuple[int, ...], dtype: str) -> Array:
    """Normal numbers; integers over the range of their type."""
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
