"""The command line of OUT/glue/run.py. Exit status 0 good, 1 a gate failed, 2 bad input or use."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splitter.glue.board.arrays import npz_bytes, read_npz, write_file
from splitter.glue.board.bench import bench_table, measure, measurements_json, random_inputs
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.messages import BadInput, GateFailed, note
from splitter.glue.board.numbers import clipped_share
from splitter.glue.board.runner import Runner
from splitter.glue.board.runtimes import RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

CLIPPED_SHARE_WORTH_A_NOTE = 0.01
MEASUREMENTS = "measurements.json"


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        execute(parse(arguments))
    except BadInput as error:
        note(f"error: {error}")
        return 2
    except GateFailed as error:
        note(f"failed: {error}")
        return 1
    except KeyboardInterrupt:
        note("stopped")
        return 130
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked against each other (argparse leaves with status 2)."""
    parser = argparse.ArgumentParser(
        prog="run.py", description="Run the parts of a bundle made by `split` on this machine."
    )
    here = Path(__file__).resolve().parent.parent
    add = parser.add_argument
    add("input", nargs="?", metavar="IN.npz", help="arrays by the model's ONNX input names")
    add("-o", "--output", metavar="OUT.npz", help="arrays by ONNX output names")
    add("--raw", metavar="FILE.npz", help="also the raw integers of inputs, boundaries, outputs")
    add("--unsplit", action="store_true", help="run the whole integer model instead of the parts")
    add("--delegate", default="", metavar="PATH", help="delegate library for the NPU parts")
    add("--converted", default="", metavar="DIR", help="the vendor converter's files for NPU parts")
    add("--require-npu", action="store_true", help="fail unless the delegate took every NPU part")
    add(
        "--isolate", action="store_true", help="NPU parts in a process of their own, CPU if it dies"
    )
    add(
        "--timeout",
        type=_positive_number,
        default=60,
        metavar="S",
        help="longest inference; default 60",
    )
    add(
        "--bench", type=_whole_number, default=0, metavar="N", help="time N runs of the first batch"
    )
    add("--bench-out", metavar="FILE.json", help="default: measurements.json in the bundle")
    add("--threads", type=_whole_number, default=1, metavar="N", help="CPU threads; default 1")
    add("--xnnpack", action="store_true", help="faster CPU kernels; may differ by one step")
    add("--runtime", default="", choices=list(RUNTIMES), help="default: the first installed")
    add("--bundle", type=Path, default=here, metavar="DIR", help="default: where this file lies")
    args = parser.parse_args(arguments)
    if args.unsplit and (args.delegate or args.converted or args.require_npu or args.isolate):
        parser.error(
            "--unsplit runs on the CPU: no --delegate, --converted, --require-npu, --isolate"
        )
    if not args.input and not (args.bench and not args.output and not args.raw):
        parser.error("IN.npz is missing (only --bench without -o and --raw runs without it)")
    if args.bench_out and not args.bench:
        parser.error("--bench-out needs --bench N")
    if args.input and not (args.output or args.raw or args.bench):
        parser.error("nothing to do: give -o OUT.npz, --raw FILE.npz or --bench N")
    return args


def execute(args: argparse.Namespace) -> None:
    """What the options ask for. Raises BadInput and GateFailed."""
    bundle = Bundle(args.bundle, unsplit=args.unsplit)
    if bundle.random:
        note("warning: this model was calibrated with RANDOM data; its outputs mean nothing")
    arrays = _arrays(bundle, args.input)
    runner = Runner(bundle, _settings(args))
    try:
        _say_placement(runner, args)
        if args.output or args.raw:
            _run(runner, arrays, args)
        if args.bench:
            report = measure(runner, arrays, args.bench)
            print(bench_table(report))
            _keep(bundle, measurements_json(report), args.bench_out)
        if args.require_npu:
            runner.require_npu()
    finally:
        runner.close()


def _arrays(bundle: Bundle, path: str | None) -> dict[str, Array]:
    if not path:
        note("note: no IN.npz, so the times are of random input")
        return random_inputs(bundle)
    arrays = read_npz(Path(path))
    extra = sorted(set(arrays) - set(bundle.inputs))
    if extra:
        note(f"note: {path}: not inputs of the model, left out: {', '.join(extra)}")
    return arrays


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(
        runtime=args.runtime,
        threads=args.threads,
        xnnpack=args.xnnpack,
        delegate=args.delegate,
        converted=args.converted,
        isolate=args.isolate,
        timeout=args.timeout,
    )


def _say_placement(runner: Runner, args: argparse.Namespace) -> None:
    for engine in runner.engines:
        if engine.placement:
            note(f"{engine.part.label}: {engine.placement}")
        elif engine.part.device == "npu" and not args.delegate:
            note(f"{engine.part.label}: on the CPU, no --delegate was given")
    if args.xnnpack:
        note("note: --xnnpack: results may differ by one step from the built-in kernels")
    if args.require_npu:
        runner.require_npu()


def _run(runner: Runner, arrays: dict[str, Array], args: argparse.Namespace) -> None:
    result = runner.run(arrays, keep_raw=bool(args.raw))
    if args.require_npu:
        runner.require_npu()
    _say_clipped(runner.bundle, arrays)
    if args.output:
        write_file(Path(args.output), npz_bytes(result.outputs))
        shapes = ", ".join(f"{n} {a.dtype.name} {list(a.shape)}" for n, a in result.outputs.items())
        print(f"{args.output}: {shapes}")
    if args.raw:
        write_file(Path(args.raw), npz_bytes(result.raw))


def _keep(bundle: Bundle, data: bytes, path: str | None) -> None:
    """The times as a file; without --bench-out a folder that cannot be written to is no error."""
    if path:
        write_file(Path(path), data)
        return
    try:
        write_file(bundle.folder / MEASUREMENTS, data)
    except BadInput as error:
        note(f"note: the times are not kept: {error}; --bench-out FILE.json names a place")
        return
    note(f"note: {bundle.folder / MEASUREMENTS} keeps the times, for split calibrate")


def _say_clipped(bundle: Bundle, arrays: dict[str, Array]) -> None:
    for name in bundle.used:
        share = clipped_share(arrays[name], bundle.inputs[name].tensor)
        if share > CLIPPED_SHARE_WORTH_A_NOTE:
            note(
                f"note: {share:.0%} of {name} lies outside the calibrated range and was clipped; "
                "is it prepared as the calibration samples were?"
            )


def _whole_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _positive_number(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("must be over 0")
    return number


if __name__ == "__main__":
    sys.exit(main())
