"""The options of the main job as typer reads them, and their texts as values.

Decides names, help and form of the options. What they mean is `splitter.options`' and the stages'.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from splitter.diagnostics import SplitterError, nearest
from splitter.plan import Device

DATA, PLACES, FORM = "Samples", "What sits where", "Other"

Model = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The model, as exported.")]
Target = Annotated[
    str, typer.Option(metavar="NAME|FILE.toml", help="The NPU; `split targets` lists them.")
]
Output = Annotated[
    str,
    typer.Option("-o", "--output", metavar="OUT", help="Folder to write; default MODEL-TARGET."),
]
Calibration = Annotated[
    str,
    typer.Option(
        metavar="DIR|FILE.npz|random",
        help="A folder of images; an .npz with images (uint8 N,H,W,3) or with arrays by input"
        " name; or random, and then no figure means anything.",
        rich_help_panel=DATA,
    ),
]
CalibrationSamples = Annotated[
    int, typer.Option(min=1, metavar="N", help="Use at most N.", rich_help_panel=DATA)
]
Validation = Annotated[
    str,
    typer.Option(
        metavar="DIR|FILE.npz",
        help="What to verify on, with labels or boxes if there are any; default: some of the"
        " calibration samples, kept back.",
        rich_help_panel=DATA,
    ),
]
VerifySamples = Annotated[
    int, typer.Option(min=1, metavar="N", help="Verify on at most N.", rich_help_panel=DATA)
]
Preprocess = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="How images become numbers: imagenet, 0-1 or none (0 to 255).",
        rich_help_panel=DATA,
    ),
]
Mean = Annotated[
    str,
    typer.Option(
        metavar="R,G,B", help="Instead: subtracted from 0..1 values.", rich_help_panel=DATA
    ),
]
Std = Annotated[
    str, typer.Option(metavar="R,G,B", help="And divides after that.", rich_help_panel=DATA)
]
Trust = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        help="Weakest rules that put an operator on the NPU: vendor, field, proxy or inferred.",
        rich_help_panel=PLACES,
    ),
]
Npu = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE,...", help="Must be on the NPU.", rich_help_panel=PLACES),
]
Cpu = Annotated[
    list[str] | None,
    typer.Option(metavar="NODE,...", help="Must be on the CPU.", rich_help_panel=PLACES),
]
Cut = Annotated[
    list[str] | None,
    typer.Option(metavar="VALUE,...", help="The first NPU part ends here.", rich_help_panel=PLACES),
]
MaxSegments = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="At most N parts, the quickest plan; 3 makes an island on the CPU between NPU parts. "
        "Default: one NPU part, and CPU parts behind it and, where that pays off, before it.",
        rich_help_panel=PLACES,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="NAME|FILE.toml", help="The NPU; may be given again."),
]
ComparisonOutput = Annotated[
    str,
    typer.Option("-o", "--output", metavar="OUT", help="Folder to write; default MODEL-compare."),
]
Cuts = Annotated[
    list[str] | None,
    typer.Option(
        "--cut",
        metavar="VALUE,...",
        help="A candidate whose first NPU part ends here; may be given again.",
        rich_help_panel=PLACES,
    ),
]
Candidates = Annotated[
    int,
    typer.Option(min=2, metavar="N", help="About so many for each target.", rich_help_panel=PLACES),
]
Int16 = Annotated[
    list[str] | None,
    typer.Option(
        metavar="auto|NAME,...",
        help="Values off the NPU that take 16 bits; auto: those that matter, as measured.",
        rich_help_panel=PLACES,
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE,...",
        help="End the model at these values instead of its outputs, before a tail of another kind.",
        rich_help_panel=FORM,
    ),
]
CpuRuntime = Annotated[
    str,
    typer.Option(
        metavar="onnxruntime",
        help="Runs what TFLite has no operator for, and what follows, as a float ONNX part.",
        rich_help_panel=FORM,
    ),
]
MaxTrips = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        metavar="K",
        help="Turns of a Loop that ends when the data says so, at most; glue/run.py refuses inputs "
        "that need more. Default: what the calibration samples took, and half as many more.",
        rich_help_panel=FORM,
    ),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=1x3x384x384", help="Lengths for free dimensions.", rich_help_panel=FORM
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        metavar="TASK",
        help="What the outputs decide: detection, classification or none; default: by their shape.",
        rich_help_panel=FORM,
    ),
]
KeepFloat = Annotated[
    bool, typer.Option("--keep-float", help="Write float.tflite too.", rich_help_panel=FORM)
]
Threads = Annotated[
    int, typer.Option(min=1, metavar="N", help="Cores to use.", rich_help_panel=FORM)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, no progress.", rich_help_panel=FORM),
]


def required_target(name: str) -> str:
    """The target's name; without one a SplitterError that lists them."""
    from splitter.rules.targets import targets

    if not name:
        raise SplitterError(
            "for which NPU?", where="--target", hint=f"one of {', '.join(targets())}"
        )
    return name


def short_name(target: str) -> str:
    """For names of files: "imx95@3.0.1" as it is, "my_npu" of a path."""
    from splitter.rules.targets import name_and_version

    name, version = name_and_version(target)
    short = Path(name).stem if name.endswith(".toml") else name
    return f"{short}@{version}" if version else short


def floats(option: str, text: str) -> tuple[float, ...]:
    """ "0.485,0.456,0.406"; SplitterError for anything else."""
    try:
        return tuple(float(word) for word in text.split(",")) if text else ()
    except ValueError:
        raise SplitterError(
            f"{text!r} is not a list of numbers", where=option, hint="like 0.485,0.456,0.406"
        ) from None


def names(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Comma lists, the option given once or several times."""
    return tuple(word for text in texts or () for word in text.split(",") if word)


def shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """NAME=1x3x384x384, one for each option; SplitterError for anything else."""
    found = {}
    for text in texts or ():
        name, _, dims = text.rpartition("=")
        lengths = dims.split("x")
        if not name or not all(length.isdecimal() and int(length) for length in lengths):
            raise SplitterError(
                f"{text!r} is not NAME=LENGTHxLENGTH...",
                where="--shape",
                hint="like --shape input=1x3x384x384",
            )
        found[name] = tuple(int(length) for length in lengths)
    return found


def one_of(option: str, text: str, known: Sequence[str]) -> str:
    """The text, if it is one of the words; else a SplitterError that lists them."""
    if text not in known:
        raise SplitterError(f"{text!r} is unknown", where=option, hint=nearest(text, known))
    return text


def runtime(text: str) -> str:
    """What --cpu-runtime names, "" without it."""
    return one_of("--cpu-runtime", text, ("onnxruntime",)) if text else ""


def devices(only: str, has_npu: bool) -> tuple[Device, ...]:
    """What --only names; without it the devices that the target has."""
    known: tuple[Device, ...] = ("npu", "cpu") if has_npu else ("cpu",)
    if only:
        one_of("--only", only, known)
    return tuple(device for device in known if only in ("", device))
