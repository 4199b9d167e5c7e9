"""A bundle of which nothing runs as TFLite: the ONNX part alone, float, for ONNX Runtime.

`--cpu-runtime onnxruntime` asked for it, and nothing of the model comes before what has no TFLite
form. Decides nothing: there is nothing to plan, calibrate or quantize. What is verified is that the
part, shapes bound and constants folded, gives what the file gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from splitter.calibration import Division
from splitter.glue import Artifacts, Manifest, build_manifest, glue_files
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.graph import Graph
from splitter.options import Options
from splitter.plan import Cost, Plan, Support
from splitter.progress import Progress
from splitter.rehearse import Arrays, BehindRunner, told, unpacked
from splitter.remainder import Remainder
from splitter.report import ReportData
from splitter.rules.schema import Target
from splitter.source import Source
from splitter.tflite.types import LiteGraph
from splitter.verify import Circumstances, Comparison, Run, Task, verify

NOTHING = LiteGraph((), (), {}, ())
PLAN = Plan("ONNX Runtime alone", (), {}, Cost(0.0, 0.0, 0.0, 0.0))
NOTE = (
    "nothing of this model runs as TFLite, and nothing on the NPU: the ONNX part is all of it, in "
    "float, on the CPU, at the speed of the file itself in ONNX Runtime"
)
HINT = "run the file itself in ONNX Runtime, and see what it says"


@dataclass(frozen=True)
class Alone:
    """The bundle's files, and what the report is made of."""

    files: dict[str, bytes]
    manifest: Manifest
    comparison: Comparison
    data: ReportData


def bundle_alone(
    options: Options, target: Target, source: Source, samples: Division, progress: Progress
) -> Alone:
    """Manifest, verification and report of an ONNX part alone. Raises SplitterError."""
    remainder = source.remainder
    assert remainder is not None
    progress.stage("glue")
    artifacts = Artifacts(
        parts=(), unsplit=None, remainder=remainder.proto.SerializeToString(deterministic=True)
    )
    manifest = build_manifest(
        (),
        NOTHING,
        artifacts,
        model=source.model,
        target=target,
        samples=samples.calibration,
        options=options,
        remainder=remainder,
    )
    files = {**artifacts.files([]), **glue_files(manifest, target)}
    progress.stage("verify")
    with unpacked(files) as folder:
        comparison = verify(
            _runs(
                folder, source, remainder, samples.validation.batches(source.model.inputs), progress
            ),
            [],
            task=Task("none", "nothing runs as TFLite"),
            circumstances=Circumstances(samples.calibration.random, shared=False),
            asked=options.task,
        )
    progress.stage("report")
    inputs = {value.name: value for value in source.model.inputs}
    data = ReportData(
        manifest=manifest,
        target=target,
        graph=Graph((), (), inputs, {}, ()),
        support=Support({}, {}),
        candidates=(PLAN,),
        whole=NOTHING,
        parts=(),
        comparison=comparison,
        onnx_bytes=len(artifacts.remainder or b""),
        notes=(NOTE,),
    )
    return Alone(files, manifest, comparison, data)


def _runs(
    folder: Path,
    source: Source,
    remainder: Remainder,
    samples: Sequence[Arrays],
    progress: Progress,
) -> Iterator[Run]:
    """The bundle beside the whole file."""
    behind = BehindRunner(remainder, source.original)
    with told("verification", HINT):
        bundle = Runner(Bundle(folder), Settings(threads=1))
    for index, sample in enumerate(samples):
        progress.step(index, len(samples))
        whole = behind.whole.run(sample)
        with told(f"sample {index + 1} of those to verify on", HINT):
            made = bundle.run(sample).outputs
        yield Run({}, {}, None, behind=behind.compared(whole, sample, {}, made))
