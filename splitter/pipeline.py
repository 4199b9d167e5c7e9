"""The main job, stage by stage, as in the table of docs/architecture.md. Decides nothing itself."""

from __future__ import annotations

import json
from dataclasses import dataclass

from splitter.calibration import Division, Samples, divide, read_calibration
from splitter.carve import carve
from splitter.glue.assemble import run_script
from splitter.glue.bundle import check_out, write_bundle
from splitter.glue.describe import Artifacts, build_manifest
from splitter.glue.manifest import FILE, Manifest
from splitter.graph import Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.options import Options
from splitter.partition import plan
from splitter.plan import Plan
from splitter.progress import Progress
from splitter.quantize import Demands, calibrate, quantize
from splitter.rulefile import Target
from splitter.support import judge
from splitter.targets import load_target
from splitter.tflite.write import write


@dataclass(frozen=True)
class Result:
    """What came out. trusted: verification and gates are passed; else the exit status is 1."""

    plan: Plan
    manifest: Manifest
    trusted: bool

    def text(self) -> str:
        return "\n".join(f"{part.file}: {part.operators} operators" for part in self.manifest.parts)

    def to_json(self) -> str:
        return json.dumps({"trusted": self.trusted, "plan": self.plan.name})


def run(options: Options, progress: Progress) -> Result:
    """Split a model and write the bundle. Raises SplitterError; then nothing was written."""
    target = load_target(options.target)
    check_out(options.out)

    progress.stage("load")
    original = load(options.model)
    progress.stage("normalize")
    model = normalize(original, shapes=options.shapes)
    progress.stage("samples")
    samples = read_samples(options, model.inputs)
    progress.stage("layout")
    graph = layout(model)
    progress.stage("support")
    support = judge(graph, target, trust=options.trust)
    progress.stage("partition")
    candidates = plan(graph, support, target, npu=options.npu, cpu=options.cpu, cut=options.cut)
    chosen = candidates[0]
    on_npu = [
        unit for segment in chosen.segments if segment.device == "npu" for unit in segment.units
    ]
    progress.stage("lower")
    lite = lower(graph, chosen.lowerings)
    progress.stage("calibrate")
    ranges = calibrate(lite, samples.calibration.batches(model.inputs))
    progress.stage("quantize")
    whole = quantize(lite, ranges, npu=on_npu, demands=demands(target), int16=options.int16)
    progress.stage("carve")
    parts = carve(whole, chosen)
    artifacts = Artifacts(
        parts=tuple(write(part.graph) for part in parts),
        unsplit=write(whole),
        float_file=write(lite) if options.keep_float else None,
    )
    progress.stage("glue")
    manifest = build_manifest(
        parts,
        whole,
        artifacts,
        model=model,
        target=target,
        samples=samples.calibration,
        options=options,
    )
    write_bundle(
        options.out,
        {
            FILE: manifest.to_json().encode(),
            "glue/run.py": run_script().encode(),
            **artifacts.files([part.device for part in parts]),
        },
    )
    return Result(plan=chosen, manifest=manifest, trusted=True)


def read_samples(options: Options, inputs: tuple[Value, ...]) -> Division:
    """Samples to calibrate on and samples to verify on, from one file or two."""

    def take(spec: str, limit: int) -> Samples:
        return read_calibration(
            spec,
            inputs,
            preprocess=options.preprocess,
            mean=options.mean,
            std=options.std,
            limit=limit,
        )

    calibration, validation = options.calibration_samples, options.verify_samples
    if not options.validation:
        samples = take(options.calibration, calibration + validation)
        return divide(samples, inputs, calibration=calibration, validation=validation)
    return Division(
        calibration=take(options.calibration, calibration),
        validation=take(options.validation, validation),
        shared=False,
    )


def demands(target: Target) -> Demands:
    """What the rules ask of quantization parameters, so that the parts will obey them."""
    limits = {code: [limit for _, limit in target.limits(code)] for code in target.operators}
    return Demands(
        zero_point_zero=frozenset(
            code
            for code, rules in limits.items()
            if any(rule.fact == "input_zero_points" and rule.equals == 0 for rule in rules)
        ),
        same_scale=frozenset(
            code
            for code, rules in limits.items()
            if any(rule.fact == "scales_equal" and rule.equals is True for rule in rules)
        ),
    )
