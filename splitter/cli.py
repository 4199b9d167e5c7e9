"""The command line: arguments in, exit status out. Every stage is imported only when it is needed.

Exit status: 0 good; 1 the verification or a gate failed; 2 bad input or use, nothing written;
130 interrupted, nothing written. A bug shows its traceback. Errors go to stderr as a message, and
with --json to stdout as an object as well.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from splitter.diagnostics import SplitterError

GOOD, FAILED, BAD_INPUT = 0, 1, 2

BAD_USE: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What an unknown option and its like raise; newer typer has its own click and exports no name."""

EPILOG = (
    "More: split inspect FILE.tflite|OUT, split targets, split rules show|check. Any other call of"
    " split is coreutils' split; splitter is always this tool."
)

job = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
tools = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
rules = typer.Typer(help="Look at rule files.")
tools.add_typer(rules, name="rules")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, no progress.")]


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
        _tell(error.what, error.where, error.hint, as_json=as_json)
        return BAD_INPUT
    except BAD_USE as error:
        _tell(error.format_message(), "", "splitter --help lists the options", as_json=as_json)
        return BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD


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


def _tell(what: str, where: str, hint: str, *, as_json: bool) -> None:
    print(f"error: {SplitterError(what, where=where, hint=hint)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": {"what": what, "where": where, "hint": hint}}))


def _floats(option: str) -> Callable[[str], tuple[float, ...]]:
    def parse(text: str) -> tuple[float, ...]:
        try:
            return tuple(float(word) for word in text.split(",")) if text else ()
        except ValueError:
            raise SplitterError(
                f"{text!r} is not a list of numbers", where=option, hint="like 0.485,0.456,0.406"
            ) from None

    return parse


def _names(texts: Sequence[str]) -> tuple[str, ...]:
    """Comma lists, the option given once or several times."""
    return tuple(word for text in texts for word in text.split(",") if word)


def _shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """NAME=1x3x384x384, one for each option."""
    shapes = {}
    for text in texts:
        name, _, dims = text.rpartition("=")
        lengths = dims.split("x")
        if not name or not all(length.isdecimal() and int(length) for length in lengths):
            raise SplitterError(
                f"{text!r} is not NAME=LENGTHxLENGTH...",
                where="--shape",
                hint="like --shape input=1x3x384x384",
            )
        shapes[name] = tuple(int(length) for length in lengths)
    return shapes


@job.command(epilog=EPILOG)
def split(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The model, as exported.")],
    target: Annotated[
        str, typer.Option(help="The NPU: a name of `split targets`, or a rule file.")
    ] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", help="Folder to write; default MODEL-TARGET.")
    ] = "",
    calibration: Annotated[
        str, typer.Option(help="Folder of images, .npz, or `random` (figures mean nothing then).")
    ] = "",
    calibration_samples: Annotated[int, typer.Option(min=1, help="Use at most so many.")] = 32,
    preprocess: Annotated[str, typer.Option(help="imagenet, 0-1 or none (0 to 255).")] = "",
    mean: Annotated[str, typer.Option(help="Subtracted from images in 0..1, by channel.")] = "",
    std: Annotated[str, typer.Option(help="Divides after that, by channel.")] = "",
    validation: Annotated[
        str, typer.Option(help="Like --calibration; default: some of its samples, kept back.")
    ] = "",
    verify_samples: Annotated[int, typer.Option(min=1, help="Verify on at most so many.")] = 32,
    shape: Annotated[list[str], typer.Option(help="Binds free dimensions: NAME=1x3x384x384.")] = [],  # noqa: B006  typer copies it
    trust: Annotated[
        str, typer.Option(help="Weakest rules believed: vendor, field, proxy, inferred.")
    ] = "proxy",
    int16: Annotated[
        list[str], typer.Option(help="auto, or values off the NPU that take 16 bits.")
    ] = [],  # noqa: B006
    npu: Annotated[list[str], typer.Option(help="Nodes that must be on the NPU.")] = [],  # noqa: B006
    cpu: Annotated[list[str], typer.Option(help="Nodes that must be on the CPU.")] = [],  # noqa: B006
    cut: Annotated[list[str], typer.Option(help="Values where the NPU part ends.")] = [],  # noqa: B006
    keep_float: Annotated[bool, typer.Option("--keep-float", help="Write float.tflite.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the runtimes.")] = 2,
    task: Annotated[str, typer.Option(help="What the outputs decide: detection, ...")] = "",
    as_json: Json = False,
) -> int:
    """Split an ONNX model into an INT8 part for the NPU and one for the CPU."""
    if not target:
        from splitter.targets import targets

        raise SplitterError(
            "for which NPU?", where="--target", hint=f"one of {', '.join(targets())}"
        )
    from splitter.options import Options

    options = Options(
        model=model,
        target=target,
        out=Path(output or f"{model.stem}-{Path(target).stem}"),
        calibration=calibration,
        calibration_samples=calibration_samples,
        preprocess=preprocess,
        mean=_floats("--mean")(mean),
        std=_floats("--std")(std),
        validation=validation,
        verify_samples=verify_samples,
        shapes=_shapes(shape),
        trust=trust,
        int16=_names(int16),
        npu=_names(npu),
        cpu=_names(cpu),
        cut=_names(cut),
        keep_float=keep_float,
        threads=threads,
        task=task,
    )
    return _run(options, as_json=as_json)


def _run(options: Any, *, as_json: bool) -> int:
    from splitter import pipeline
    from splitter.progress import Silent, Terminal

    if as_json or not sys.stderr.isatty():
        result = pipeline.run(options, Silent())
    else:
        with Terminal() as progress:
            result = pipeline.run(options, progress)
    print(result.to_json() if as_json else _shown(result))
    return GOOD if result.trusted else FAILED


def _shown(result: Any) -> str:
    """The report for this terminal; no color into files and pipes, nor where NO_COLOR is set."""
    columns = shutil.get_terminal_size((100, 24)).columns
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return str(result.text(color=color, width=min(columns, 120)))


@tools.command("inspect")
def inspect_command(
    path: Annotated[Path, typer.Argument(metavar="FILE.tflite|OUT")],
    target: Annotated[str, typer.Option(help="Judge by the rules of this NPU.")] = "",
    trust: Annotated[str, typer.Option(help="Weakest rules believed.")] = "proxy",
    as_json: Json = False,
) -> int:
    """Operators, float tensors, unequal scales, broken rules, and what the NPU's compiler took."""
    from splitter.examine import examine
    from splitter.targets import load_target

    found = examine(path, load_target(target) if target else None, trust=trust)
    if as_json:
        print(json.dumps({"files": [one.to_json() for one in found]}, indent=1))
    else:
        print("\n\n".join(one.to_text() for one in found))
    return FAILED if any(one.failures for one in found) else GOOD


@tools.command("targets")
def targets_command(as_json: Json = False) -> int:
    """The NPUs that rule files come with."""
    from splitter.targets import load_target, targets

    known = [load_target(name) for name in targets()]
    if as_json:
        print(json.dumps([{"name": one.name, "title": one.title} for one in known], indent=1))
    else:
        print("\n".join(f"{one.name:<12} {one.title}" for one in known))
    return GOOD


@rules.command("show")
def rules_show(target: Annotated[str, typer.Argument(metavar="TARGET")]) -> int:
    """Every rule of a target, with its source and confidence."""
    from splitter.rulebook import rulebook
    from splitter.targets import load_target

    print(rulebook(load_target(target)))
    return GOOD


@rules.command("check")
def rules_check(
    files: Annotated[list[str], typer.Argument(metavar="TARGET|FILE.toml ...")],
) -> int:
    """Whether rule files are right; every mistake is listed."""
    from splitter.targets import load_target

    for file in files:
        target = load_target(file)
        print(f"{file}: {len(target.operators)} operators, revision {target.revision}")
    return GOOD
