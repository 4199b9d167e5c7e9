"""The command line: arguments in, exit status out. Every stage is imported only when it is needed.

Exit status: 0 good; 1 the verification or a gate failed; 2 bad input or use, nothing written;
130 interrupted, nothing written. A bug shows its traceback. Errors go to stderr as a message, and
with --json to stdout as an object as well.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from splitter import arguments as args
from splitter.cli_calibrate import calibrate_command
from splitter.cli_compare import compare_command
from splitter.cli_rules import explain_command, rules, targets_command
from splitter.diagnostics import Cause, SplitterError, Unsupported

if TYPE_CHECKING:
    from splitter.options import Options

GOOD, FAILED, BAD_INPUT = 0, 1, 2

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A disk without room, where stdout goes or a temporary file is."""

BAD_USE: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What an unknown option and its like raise; newer typer has its own click and exports no name."""

EPILOG = (
    "More: split compare MODEL.onnx, split explain MODEL.onnx, split inspect FILE.tflite|OUT, split"
    " calibrate TARGET MEASUREMENTS.json, split targets, split rules show|check|probe. Any other"
    " call of split is coreutils' split; splitter is always this tool."
)

job = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
tools = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """What the console scripts call, `split` for calls that are ours; they see to Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(answer(words))


def answer(words: list[str]) -> int:
    """Run a command line; returns the exit status."""
    as_json = "--json" in words
    try:
        return _dispatch(words)
    except SplitterError as error:
        causes = error.causes if isinstance(error, Unsupported) else ()
        _tell(error.what, error.where, error.hint, as_json=as_json, causes=causes)
        return BAD_INPUT
    except BAD_USE as error:
        command = " ".join(["splitter", *_command(words)])
        _tell(error.format_message(), "", f"{command} --help lists the options", as_json=as_json)
        return BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except OSError as error:
        if error.errno not in FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _tell(f"cannot be written: {error.strerror}", "output", "free some space", as_json=as_json)
        return BAD_INPUT


def _command(words: list[str]) -> list[str]:
    """The words of the subcommand that was called."""
    if not words or words[0] not in subcommands():
        return []
    below = {command.name for command in rules.registered_commands} if words[0] == "rules" else ()
    return words[:2] if len(words) > 1 and words[1] in below else words[:1]


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        from splitter import __version__

        print(f"splitter {__version__}")
        return GOOD
    app = tools if words and words[0] in subcommands() else job
    command = typer.main.get_command(app)
    try:
        with command.make_context("split", words or ["--help"]) as context:
            status = command.invoke(context)
    except typer.Exit as left:
        status = left.exit_code
    sys.stdout.flush()
    return status if isinstance(status, int) else GOOD


def subcommands() -> frozenset[str]:
    """First words that are not a model; `splitter.coreutils` has the same list without typer."""
    commands = {command.name for command in tools.registered_commands}
    groups = {group.name for group in tools.registered_groups}
    return frozenset(str(name) for name in commands | groups)


def _tell(what: str, where: str, hint: str, *, as_json: bool, causes: Sequence[Cause] = ()) -> None:
    print(f"error: {SplitterError(what, where=where, hint=hint)}", file=sys.stderr)
    if as_json:
        error: dict[str, object] = {"what": what, "where": where, "hint": hint}
        if causes:
            rows = [{"operator": c.op, "nodes": list(c.nodes), "why": c.why} for c in causes]
            error["unsupported"] = rows
        print(json.dumps({"error": error}))


@job.command(epilog=EPILOG)
def split(
    model: args.Model,
    target: args.Target = "",
    output: args.Output = "",
    calibration: args.Calibration = "",
    calibration_samples: args.CalibrationSamples = 32,
    validation: args.Validation = "",
    verify_samples: args.VerifySamples = 32,
    preprocess: args.Preprocess = "",
    mean: args.Mean = "",
    std: args.Std = "",
    trust: args.Trust = "proxy",
    npu: args.Npu = None,
    cpu: args.Cpu = None,
    cut: args.Cut = None,
    max_segments: args.MaxSegments = None,
    int16: args.Int16 = None,
    outputs: args.Outputs = None,
    cpu_runtime: args.CpuRuntime = "",
    max_trips: args.MaxTrips = None,
    shape: args.Shape = None,
    task: args.TaskName = "",
    keep_float: args.KeepFloat = False,
    threads: args.Threads = 2,
    as_json: args.Json = False,
) -> int:
    """Split an ONNX model into an INT8 part for the NPU and one for the CPU."""
    from splitter.options import Options
    from splitter.rules.schema import TRUSTS

    options = Options(
        model=model,
        target=args.required_target(target),
        out=Path(output or f"{model.stem}-{args.short_name(target)}"),
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
        int16=args.names(int16),
        npu=args.names(npu),
        cpu=args.names(cpu),
        cut=args.names(cut),
        max_segments=max_segments,
        keep_float=keep_float,
        threads=threads,
        task=task,
    )
    return _run(options, as_json=as_json)


def _run(options: Options, *, as_json: bool) -> int:
    from splitter import pipeline
    from splitter.console import shown, watched

    result = watched(lambda progress: pipeline.run(options, progress), quiet=as_json)
    print(result.to_json() if as_json else shown(result))
    return GOOD if result.trusted else FAILED


@tools.command("inspect")
def inspect_command(
    path: Annotated[Path, typer.Argument(metavar="FILE.tflite|OUT")],
    target: args.Target = "",
    trust: args.Trust = "proxy",
    as_json: args.Json = False,
) -> int:
    """Operators, float tensors, unequal scales, broken rules, and what the NPU's compiler took."""
    from splitter.console import wrapped
    from splitter.examine import examine
    from splitter.rules.schema import TRUSTS
    from splitter.rules.targets import load_target

    args.one_of("--trust", trust, TRUSTS)
    found = examine(path, load_target(target) if target else None, trust=trust)
    if as_json:
        print(json.dumps({"files": [one.to_json() for one in found]}, indent=1))
    else:
        print(wrapped("\n\n".join(one.to_text() for one in found)))
    return FAILED if any(one.failures for one in found) else GOOD


tools.command("targets")(targets_command)
tools.command("compare")(compare_command)
tools.command("explain")(explain_command)
tools.command("calibrate")(calibrate_command)
tools.add_typer(rules, name="rules")
