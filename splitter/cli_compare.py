"""`split compare`: arguments in, text out. What is compared is `splitter.compare`'s."""

from __future__ import annotations

from pathlib import Path

from splitter import arguments as args

WIDEST = 160
"""Columns: the table has many."""


def compare_command(
    model: args.Model,
    target: args.Targets = None,
    output: args.ComparisonOutput = "",
    cut: args.Cuts = None,
    candidates: args.Candidates = 20,
    max_segments: args.MaxSegments = None,
    calibration: args.Calibration = "",
    calibration_samples: args.CalibrationSamples = 8,
    validation: args.Validation = "",
    verify_samples: args.VerifySamples = 6,
    preprocess: args.Preprocess = "",
    mean: args.Mean = "",
    std: args.Std = "",
    trust: args.Trust = "proxy",
    npu: args.Npu = None,
    cpu: args.Cpu = None,
    outputs: args.Outputs = None,
    cpu_runtime: args.CpuRuntime = "",
    max_trips: args.MaxTrips = None,
    shape: args.Shape = None,
    task: args.TaskName = "",
    threads: args.Threads = 2,
    as_json: args.Json = False,
) -> int:
    """Where to cut: candidates side by side, by estimated time and measured accuracy."""
    from splitter.compare import CompareOptions, compare
    from splitter.console import shown, watched
    from splitter.options import Options
    from splitter.rules.schema import TRUSTS

    targets = args.names(target) or (args.required_target(""),)
    job = Options(
        model=model,
        target=targets[0],
        out=Path(output or f"{model.stem}-compare"),
        calibration=calibration,
        calibration_samples=calibration_samples,
        preprocess=preprocess,
        mean=args.floats("--mean", mean),
        std=args.floats("--std", std),
        validation=validation,
        verify_samples=verify_samples,
        outputs=args.names(outputs),
        cpu_runtime=args.runtime(cpu_runtime),
        max_trips=max_trips,
        shapes=args.shapes(shape),
        trust=args.one_of("--trust", trust, TRUSTS),
        npu=args.names(npu),
        cpu=args.names(cpu),
        max_segments=max_segments,
        threads=threads,
        task=task,
    )
    cuts = tuple(args.names([one]) for one in cut or ())
    asked = CompareOptions(job, targets, cuts, candidates)
    result = watched(lambda progress: compare(asked, progress), quiet=as_json)
    print(result.to_json() if as_json else shown(result, widest=WIDEST))
    return 0
