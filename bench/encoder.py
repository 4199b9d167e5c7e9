"""How far the encoder memory of RF-DETR (the projector's output) is from float, in int8.

    python -m bench.encoder [MODEL.onnx] [--samples 8] [--runs 4]

Default model: models/built/rfdetr_nano_384.onnx (`make models`). Its weights are drawn, so
detections mean nothing, but the error of the features does: relative RMS against the float graph,
on images that calibration did not see, by the default plan for imx95.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from splitter.calibration import divide, read_calibration
from splitter.equalize import equalize
from splitter.graph import Array
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.partition import plan
from splitter.quantize import calibrate, quantize
from splitter.quantize.choice import CANDIDATES, pick_clip, to_integer, to_real
from splitter.quantize.demands import demands_of
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write

ROOT = Path(__file__).resolve().parent.parent
NANO = ROOT / "models" / "built" / "rfdetr_nano_384.onnx"
IMAGES = ROOT / "models" / "calib_images.npz"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", default=NANO)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--runs", type=int, default=4)
    given = parser.parse_args(arguments)
    model = normalize(load(given.model))
    taken = read_calibration(
        str(IMAGES), model.inputs, preprocess="imagenet", mean=(), std=(),
        limit=given.samples + given.runs,
    )  # fmt: skip
    samples = divide(taken, model.inputs, calibration=given.samples, validation=given.runs)
    graph, target = equalize(layout(model)), load_target("imx95")
    chosen = plan(graph, judge(graph, target, trust="proxy"), target)[0]
    npu = {unit for s in chosen.segments if s.device == "npu" for unit in s.units}
    lite = lower(graph, chosen.lowerings)
    batches = samples.calibration.batches(model.inputs)
    ranges = calibrate(lite, batches)
    demands = demands_of(target)

    def integer(name: str) -> LiteGraph:
        return quantize(lite, ranges, npu=npu, demands=demands, clip=CANDIDATES[name])

    clipping = pick_clip(lite, batches, integer)
    made = integer(clipping)
    memory = [n for n in ranges if "projector" in n and n in made.tensors][-1]
    held = samples.validation.batches(model.inputs)
    print(
        f"{given.model.name}: clipping by {clipping}; {memory} {list(made.tensors[memory].shape)}"
    )
    print(f"relative RMS error {error(lite, made, memory, held):.4f} on {len(held)} images")
    return 0


def error(
    lite: LiteGraph, made: LiteGraph, name: str, held: Sequence[Mapping[str, Array]]
) -> float:
    """Relative RMS of one value, integer graph against float graph."""
    floats = Interpreter(write(lite), all_tensors=True)
    integers = Interpreter(write(made), all_tensors=True)
    wanted, found = [], []
    for sample in held:
        floats.run(sample)
        integers.run({n: to_integer(v, made.tensors[n]) for n, v in sample.items()})
        wanted.append(floats.tensor(name).astype(np.float64))
        found.append(to_real(integers.tensor(name), made.tensors[name]))
    real, rounded = np.stack(wanted), np.stack(found)
    return float(np.sqrt(np.square(rounded - real).mean() / np.square(real).mean()))


if __name__ == "__main__":
    raise SystemExit(main())
