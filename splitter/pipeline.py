"""The main job, stage by stage, as in the table of docs/architecture.md. Decides nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from splitter.alone import bundle_alone
from splitter.calibration import Division
from splitter.calibration.take import read_samples
from splitter.carve import carve
from splitter.fixed_ranges import file_notes
from splitter.glue import (
    Artifacts,
    Manifest,
    build_manifest,
    check_out,
    glue_files,
    vendor_notes,
    vendor_parts,
    write_bundle,
)
from splitter.lower import lower, rewrites
from splitter.normalize import fixed_outputs
from splitter.options import Options
from splitter.partition import plan
from splitter.plain_types import type_notes
from splitter.plan import Plan
from splitter.progress import Progress
from splitter.quantize import calibrate, quantize, rearranged
from splitter.quantize.authored import kept_scales
from splitter.quantize.choice import CANDIDATES, pick_clip
from splitter.quantize.demands import demands_of
from splitter.quantize.pieces import part_outputs
from splitter.rehearse import runs, unpacked
from splitter.report import ReportData, Summary, report_files, summarize, to_json, to_text
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.source import read_source
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write
from splitter.trips import require_within
from splitter.verify import Circumstances, Comparison, find_task, verify
from splitter.widen import choose_widths, prepare_trial
from splitter.width import find_tensors, require_wide, units_on


@dataclass(frozen=True)
class Result:
    """What came out. Trusted: the verification's gates are passed; else the exit status is 1."""

    plan: Plan
    manifest: Manifest
    comparison: Comparison
    summary: Summary

    @property
    def trusted(self) -> bool:
        return self.comparison.verdict.passed

    def text(self, *, color: bool = False, width: int = 100) -> str:
        """For the terminal."""
        return to_text(self.summary, color=color, width=width)

    def to_json(self) -> str:
        """The text of report.json."""
        return to_json(self.summary).rstrip()


def run(options: Options, progress: Progress) -> Result:
    """Split a model and write the bundle. Raises SplitterError; then nothing was written."""
    target = load_target(options.target)
    check_out(options.out)

    source = read_source(options, progress)
    original, model, remainder = source.original, source.model, source.remainder
    progress.stage("samples")
    samples = read_samples(options, model.inputs)
    if source.alone:
        made = bundle_alone(options, target, source, samples, progress)
        summary = summarize(made.data)
        write_bundle(options.out, {**made.files, **report_files(made.data, summary)})
        return Result(made.data.plan, made.manifest, made.comparison, summary)
    require_within(source.bounds, samples, model.inputs)
    outputs = tuple(value for value in model.outputs if value.name not in source.bounds.flags)
    asked = "none" if remainder else options.task
    known = tuple(value for value in fixed_outputs(model) if value in outputs)
    task = find_task(known, asked=asked, classes=len(class_names(samples)))
    progress.stage("layout")
    with source.refusing():
        graph = source.graph()
        progress.stage("support")
        support = judge(graph, target, trust=options.trust)
    progress.stage("partition")
    candidates = plan(
        graph,
        support,
        target,
        npu=options.npu,
        cpu=options.cpu,
        cut=options.cut,
        max_segments=options.max_segments,
        makers=original.makers,
    )
    chosen = candidates[0]
    progress.stage("lower")
    lite = lower(graph, chosen.lowerings)
    exact = lite
    if rewrites(graph, chosen.lowerings):
        exact = lower(graph, {unit: verdict.lowering for unit, verdict in support.cpu.items()})
    progress.stage("calibrate")
    batches = samples.calibration.batches(model.inputs)
    ranges = calibrate(
        lite,
        batches,
        flags=source.bounds.flags,
        threads=options.threads,
        progress=progress.step,
    )
    progress.stage("quantize")
    parted = part_outputs(lite, ranges, whole=options.int16)
    on_npu, demands = units_on(chosen, "npu"), demands_of(target)

    @cache
    def integer(
        wide: frozenset[str] = frozenset(), fine: frozenset[str] = frozenset(), clip: str = ""
    ) -> LiteGraph:
        return quantize(
            parted.graph,
            parted.ranges,
            npu=on_npu,
            demands=demands,
            int16=wide,
            fine=fine,
            clip=CANDIDATES[clip or clipped],
        )

    clipped = pick_clip(parted.graph, batches, lambda clip: integer(clip=clip))

    floats = rearranged(parted.graph, parted.ranges)
    named = find_tensors(options.int16, graph, floats, chosen, nodes=original.makers)
    widening = choose_widths(
        options.int16,
        named,
        floats,
        integer,
        chosen,
        batches,
        task=task,
        threads=options.threads,
        step=progress.step,
    )
    whole = integer(widening.tensors, frozenset(widening.fine))
    require_wide(whole, named)
    progress.stage("carve")
    parts = carve(whole, chosen)
    artifacts = Artifacts(
        parts=tuple(write(part.graph) for part in parts),
        unsplit=write(whole),
        float_file=write(exact, beyond=True) if options.keep_float else None,
        remainder=remainder.proto.SerializeToString(deterministic=True) if remainder else None,
        vendor=vendor_parts(parts, original, target, shapes=options.shapes),
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
        joins=parted.joins,
        remainder=remainder,
        loops=source.bounds.loops,
    )
    files = {
        **artifacts.files([part.device for part in parts]),
        **glue_files(manifest, target),
    }
    progress.stage("verify")
    validation = samples.validation.batches(model.inputs)
    trial = prepare_trial(floats, whole, integer, chosen, runs=len(validation), asked=options.int16)
    with unpacked(files) as folder:
        comparison = verify(
            runs(
                folder,
                source.reference,
                outputs,
                validation,
                exact=exact,
                planned=lite,
                trial=trial,
                remainder=remainder,
                threads=options.threads,
                step=progress.step,
            ),
            [value.name for value in outputs],
            task=task,
            circumstances=Circumstances(samples.calibration.random, samples.shared),
            annotations=samples.validation.annotations,
            sizes=samples.validation.sizes,
            untried=trial.why,
            asked=options.task,
            open_ended=lite.open_ended,
        )
    progress.stage("report")
    data = ReportData(
        manifest=manifest,
        target=target,
        graph=graph,
        support=support,
        candidates=candidates,
        whole=whole,
        parts=parts,
        widening=widening,
        comparison=comparison,
        pictures=samples.validation.images,
        sizes=samples.validation.sizes,
        class_names=class_names(samples),
        onnx_bytes=len(artifacts.remainder or b""),
        notes=(
            *kept_scales(lite, whole),
            *parted.notes(),
            *file_notes(source.loaded),
            *type_notes(source.loaded),
            *source.bounds.notes(),
            *vendor_notes(artifacts.vendor, target),
        ),
    )
    summary = summarize(data)
    write_bundle(options.out, {**files, **report_files(data, summary)})
    return Result(plan=chosen, manifest=manifest, comparison=comparison, summary=summary)


def class_names(samples: Division) -> tuple[str, ...]:
    """The classes that the validation file names, none when it does not."""
    return tuple(str(name) for name in samples.validation.annotations.get("class_names", ()))
