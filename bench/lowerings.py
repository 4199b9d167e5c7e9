"""What each way to write an operator, and each step of the quantizer, does to accuracy in int8.

    python -m bench.lowerings [--model FILE.onnx] [--images N]

The tiny RF-DETR (or its outlier variant, models/build_outliers.py) with the default plan for imx95
and one thing changed at a time. Printed for each: points of mAP50 and mAP50-95 lost against float,
and the float detections over 0.5 found again and extra (models/evaluate.py).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import splitter.normalize
from models.evaluate import FLOAT, VALIDATION, evaluate
from splitter.calibration import read_calibration
from splitter.equalize import equalize
from splitter.graph import Graph
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import Model, load
from splitter.ops import OPS
from splitter.partition import plan
from splitter.quantize import calibrate, quantize
from splitter.quantize.clipping import least_squares, min_max
from splitter.quantize.demands import demands_of
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.tflite.write import write

CALIBRATION = Path(__file__).resolve().parent.parent / "models" / "calib_images.npz"


@dataclass(frozen=True)
class Variant:
    """One thing changed: passes left out, a lowering forced by operator, or a quantizer option."""

    name: str
    without: tuple[str, ...] = ()
    lowerings: Mapping[str, str] = field(default_factory=dict)
    equal: bool = True
    quantizer: Mapping[str, Any] = field(default_factory=dict)
    wide: bool = False


VARIANTS = (
    Variant("as shipped"),
    Variant("ranges by extremes", quantizer={"clip": min_max}),
    Variant("channels as they are", equal=False),
    Variant("Attend by softmax", lowerings={"Attend": "softmax"}),
    Variant("GELU native (not on imx95)", lowerings={"Gelu": "gelu"}),
    Variant("GridSample by hat weights", lowerings={"GridSample": "hat_matmul"}),
    Variant("residual streams not centered", without=("center_residual",)),
    Variant("norms keep scale and bias", without=("fold_norm_affine",)),
    Variant("anchor columns share a scale", without=("slice_tables",)),
    Variant("CPU part in 16 bits", wide=True),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", type=Path, default=FLOAT)
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args(arguments)
    original = load(given.model)
    print(f"{'variant':34} {'mAP50':>6} {'mAP50-95':>9} {'found':>7} {'extra':>6}", flush=True)
    for variant in VARIANTS:
        if given.only in variant.name:
            figures = measure(original, variant, images=given.images)
            print(
                f"{variant.name:34} {figures['mAP50_drop_points']:6.2f} "
                f"{figures['mAP50-95_drop_points']:9.2f} {figures['found_again_percent']:7.2f} "
                f"{figures['extra_percent']:6.2f}",
                flush=True,
            )
    return 0


def measure(original: Model, variant: Variant, *, images: int) -> dict[str, Any]:
    """The figures of models/evaluate.py for one variant."""
    model = normalized(original, without=variant.without)
    graph = equalize(layout(model)) if variant.equal else layout(model)
    target = load_target("imx95")
    chosen = plan(graph, judge(graph, target, trust="proxy"), target)[0]
    npu = {u for s in chosen.segments if s.device == "npu" for u in s.units}
    lite = lower(graph, {**chosen.lowerings, **forced(graph, variant.lowerings)})
    samples = read_calibration(
        str(CALIBRATION), model.inputs, preprocess="imagenet", mean=(), std=(), limit=32
    )
    ranges = calibrate(lite, samples.batches(model.inputs), threads=1)
    wide = [n for op in lite.operators if op.unit not in npu for n in op.outputs if n in ranges]
    options = {"clip": least_squares, "int16": wide if variant.wide else (), **variant.quantizer}
    whole = quantize(lite, ranges, npu=npu, demands=demands_of(target), **options)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "unsplit.tflite"
        file.write_bytes(write(whole))
        return evaluate(file, validation=VALIDATION, images=images, threads=1)


def normalized(original: Model, *, without: Sequence[str]) -> Model:
    """The canonical form with some passes left out."""
    kept: Callable[[Any], bool] = lambda step: step.run.__name__ not in without  # noqa: E731
    every = splitter.normalize.PASSES
    splitter.normalize.PASSES = tuple(filter(kept, every))
    try:
        return splitter.normalize.normalize(original)
    finally:
        splitter.normalize.PASSES = every


def forced(graph: Graph, lowerings: Mapping[str, str]) -> dict[str, str]:
    """unit -> lowering for the operators named, where the lowering can do the unit."""
    names: dict[str, str] = {}
    for unit in graph.units:
        for lowering in OPS[unit.op].lowerings:
            if lowerings.get(unit.op) == lowering.name and not lowering.applies(graph, unit):
                names[unit.name] = lowering.name
    return names


if __name__ == "__main__":
    raise SystemExit(main())
