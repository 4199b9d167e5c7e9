"""What the user gives for calibration or validation, as `Samples`; every problem in one message.

Decides what kind of data it is (a folder of images, `images` in an .npz, arrays by input name, or
made-up numbers when asked for by name) and what must fit. Leaves bytes to `npz` and `images`, and
how many samples are used to the caller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from splitter.calibration.arrays import read_by_name, read_notes
from splitter.calibration.images import (
    SCALINGS,
    Frame,
    Pictures,
    Scaling,
    fit_array,
    frame_of,
    read_folder,
    to_input,
)
from splitter.calibration.npz import Header, check_memory, read_headers, read_rows
from splitter.calibration.samples import Samples, rows, spread
from splitter.diagnostics import SplitterError
from splitter.graph import Array, Value

RANDOM = "random"
RANDOM_RUNS = 8
IMAGES = "images"
_HOW = (
    "give --calibration FOLDER of images (png, jpg, bmp, webp) or FILE.npz with `images` uint8 "
    "[N, H, W, 3], each with --preprocess imagenet, 0-1 or none, or with --mean and --std; or "
    "FILE.npz of preprocessed arrays by input name: {inputs}"
)


def read_calibration(
    spec: str | Path | None,
    inputs: Sequence[Value],
    *,
    preprocess: str = "",
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    limit: int = 0,
) -> Samples:
    """Samples for the model's `inputs`, at most `limit` runs of it (0: all), spread evenly.

    preprocess: "imagenet", "0-1" or "none"; mean, std: three numbers on the 0..1 scale, instead.
    Raises SplitterError, once, with everything that is wrong.
    """
    if not spec:
        shapes = ", ".join(f"{v.name} {v.dtype}{list(v.shape)}" for v in inputs)
        raise SplitterError(
            "no calibration data given: without it the integer ranges would be a guess",
            hint=_HOW.format(inputs=shapes) + "; --calibration random takes made-up numbers and "
            "marks every result as such",
        )
    if str(spec) == RANDOM:
        return made_up(inputs, runs=limit or RANDOM_RUNS)
    path = Path(spec)
    if os.path.isdir(path):  # False, where Path.is_dir raises for a name that is too long
        return _from_folder(path, inputs, _scaling(inputs, preprocess, mean, std), limit=limit)
    headers = read_headers(path)
    if holds_pictures(headers, inputs):
        scaling = _scaling(inputs, preprocess, mean, std)
        return _from_pictures(path, headers, inputs, scaling, limit=limit)
    if preprocess or mean or std:
        raise SplitterError(
            "--preprocess, --mean and --std are for images; these arrays are taken as they are",
            where=str(path),
            hint="leave them out, or store the pictures as `images`, uint8 [N, H, W, 3]",
        )
    return read_by_name(path, headers, inputs, limit=limit)


def made_up(inputs: Sequence[Value], *, runs: int) -> Samples:
    """Normal numbers for float inputs, 0 and 1 for the others; the same ones every time."""
    arrays: dict[str, Array] = {}
    for index, value in enumerate(inputs):
        generator = np.random.default_rng(index)
        shape = (runs * rows(value), *value.shape[1:])
        if np.dtype(value.dtype).kind == "f":
            arrays[value.name] = generator.standard_normal(shape).astype(value.dtype)
        else:
            arrays[value.name] = generator.integers(0, 2, shape).astype(value.dtype)
    return Samples(arrays, source="random numbers", random=True)


def holds_pictures(headers: Mapping[str, Header], inputs: Sequence[Value]) -> bool:
    """Whether `images` holds raw pictures, and is not the array of an input of that name."""
    if IMAGES not in headers:
        return False
    named = next((value for value in inputs if value.name == IMAGES), None)
    if named is None:
        return True
    header = headers[IMAGES]
    as_it_is = header.shape[1:] == named.shape[1:] and header.dtype == named.dtype
    return header.dtype == np.uint8 and not as_it_is


def _scaling(
    inputs: Sequence[Value], preprocess: str, mean: Sequence[float], std: Sequence[float]
) -> Scaling:
    if preprocess and (mean or std):
        raise SplitterError(
            "--preprocess and --mean/--std exclude each other",
            hint=f"--preprocess imagenet is {_as_options(SCALINGS['imagenet'])}",
        )
    if preprocess and preprocess not in SCALINGS:
        raise SplitterError(
            f"--preprocess {preprocess} is unknown", hint="valid: " + ", ".join(sorted(SCALINGS))
        )
    if preprocess:
        return SCALINGS[preprocess]
    if mean or std:
        return _own_scaling(mean, std)
    if len(inputs) == 1 and inputs[0].dtype == "uint8":
        return SCALINGS["none"]
    raise SplitterError(
        "images are given, but not how they become the model's numbers",
        hint="add --preprocess imagenet (RF-DETR, DINOv2, torchvision), --preprocess 0-1 (YOLO), "
        "--preprocess none (0 to 255), or --mean R,G,B --std R,G,B on the 0..1 scale",
    )


def _own_scaling(mean: Sequence[float], std: Sequence[float]) -> Scaling:
    problems = []
    for name, figures in (("--mean", mean), ("--std", std)):
        if len(figures) not in (1, 3):
            problems.append(f"{name} needs three numbers, it has {len(figures)}")
        elif not np.isfinite(figures).all():
            problems.append(f"{name} must be finite numbers")
    if not problems and min(std) <= 0:
        problems.append("--std must be over 0")
    if not problems and max(map(abs, [*mean, *std])) > 2:
        problems.append("--mean and --std are on the 0..1 scale; these look like 0..255")
    if problems:
        example = _as_options(SCALINGS["imagenet"])
        raise SplitterError("; ".join(problems), hint=f"for example {example}")
    return Scaling(255.0, tuple(mean), tuple(std))


def _as_options(scaling: Scaling) -> str:
    mean, std = (",".join(f"{x:g}" for x in figures) for figures in (scaling.mean, scaling.std))
    return f"--mean {mean} --std {std}"


def _frame(inputs: Sequence[Value], where: Path) -> Frame:
    """The one image input, or a SplitterError that says why pictures cannot fill the inputs."""
    by_name = "give an .npz of preprocessed arrays by input name instead: " + ", ".join(
        f"{v.name} {v.dtype}{list(v.shape)}" for v in inputs
    )
    if len(inputs) != 1:
        raise SplitterError(
            f"images can fill one input; the model has {len(inputs)}",
            where=str(where),
            hint=by_name,
        )
    value = inputs[0]
    frame = frame_of(value)
    if frame is None:
        raise SplitterError(
            f"input {value.name} {list(value.shape)} is no image of 1 or 3 channels",
            where=str(where),
            hint=by_name,
        )
    if value.dtype != "uint8" and np.dtype(value.dtype).kind != "f":
        raise SplitterError(
            f"input {value.name} takes {value.dtype}, images make float or uint8",
            where=str(where),
            hint=by_name,
        )
    return frame


def _from_folder(folder: Path, inputs: Sequence[Value], scaling: Scaling, *, limit: int) -> Samples:
    frame = _frame(inputs, folder)
    pictures = read_folder(folder, frame, limit=limit * rows(inputs[0]))
    return _fill(folder, pictures, inputs[0], scaling, {})


def _from_pictures(
    path: Path,
    headers: Mapping[str, Header],
    inputs: Sequence[Value],
    scaling: Scaling,
    *,
    limit: int,
) -> Samples:
    frame = _frame(inputs, path)
    header = headers[IMAGES]
    problem = _picture_problem(header)
    if problem:
        raise SplitterError(
            f"`images` is {header.dtype}{list(header.shape)}: {problem}",
            where=str(path),
            hint="`images` holds pictures, uint8 [N, H, W, 3], values 0 to 255, RGB; "
            f"preprocessed arrays go by the input's name, {inputs[0].name}",
        )
    wanted = limit * rows(inputs[0]) or header.shape[0]
    check_memory(path, header, min(wanted, header.shape[0]))
    keep = spread(header.shape[0], limit * rows(inputs[0]))
    notes = read_notes(path, headers, inputs, keep=keep, count=header.shape[0])
    pictures = fit_array(read_rows(path, header, keep), frame)
    return _fill(path, pictures, inputs[0], scaling, notes)


def _picture_problem(header: Header) -> str:
    if header.dtype != np.uint8:
        return f"pictures are uint8, not {header.dtype}"
    if len(header.shape) != 4:
        return "pictures have four axes, [N, H, W, 3]"
    if not all(header.shape):
        return "it is empty"
    if header.shape[3] not in (1, 3):
        channels_first = header.shape[1] in (1, 3)
        return (
            "channels come last; transpose(0, 2, 3, 1) makes it so"
            if channels_first
            else f"pictures have 1 or 3 channels, not {header.shape[3]}"
        )
    return ""


def _fill(
    where: Path, pictures: Pictures, value: Value, scaling: Scaling, notes: Mapping[str, Array]
) -> Samples:
    count = len(pictures.pixels)
    if count < rows(value):
        raise SplitterError(
            f"there are {count} images; one run of the model takes {rows(value)}",
            where=str(where),
            hint=f"give at least {rows(value)}",
        )
    frame = frame_of(value)
    assert frame is not None
    array = to_input(pictures.pixels, value, frame, scaling)
    return Samples(
        {value.name: array},
        source=f"{count} images of {where.name}",
        images=pictures.pixels,
        sizes=pictures.sizes,
        annotations=notes,
    )
