"""What a run of the main job was asked to do, as data. Decides the defaults, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """One call of the main job.

    calibration:   a folder of images, an .npz, "random", or "" when none was given.
    preprocess:    "imagenet", "0-1", "none", or "" (arrays that need none); or mean and std.
    validation:    like calibration; "" keeps back some of its samples where there are enough.
    outputs:       values that the model is to end at instead of its own outputs.
    shapes:        for inputs with free dimensions, ONNX input name -> shape.
    trust:         the weakest confidence of a rule that may put a unit on the NPU.
    int16:         names of values or nodes that take 16 bits outside the NPU, or ("auto",).
    npu, cpu:      names of nodes that must sit there. cut: values at which the first NPU part ends.
    max_segments:  at most so many parts, the quickest plan; None: one on the NPU, CPU parts
                   behind it and, where that pays off by the estimate, before it.
    cpu_runtime:   "onnxruntime": runs what TFLite has no operator for, as an ONNX part; or "".
    max_trips:     turns that a Loop gets which ends when the data says so; None: what the
                   calibration samples took, and half as many more.
    task:          "detection", "classification", "" to be guessed from the outputs.
    """

    model: Path
    target: str
    out: Path
    calibration: str = ""
    calibration_samples: int = 32
    preprocess: str = ""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    validation: str = ""
    verify_samples: int = 32
    outputs: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    trust: str = "proxy"
    int16: tuple[str, ...] = ()
    npu: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    max_segments: int | None = None
    keep_float: bool = False
    threads: int = 2
    cpu_runtime: str = ""
    max_trips: int | None = None
    task: str = ""
