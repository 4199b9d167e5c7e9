"""manifest.json: what a bundle holds and how its parts are run, as frozen types and as JSON.

Decides the schema and what a good manifest is. `describe` fills it in, `board` reads it on the
board with numpy alone (and knows this schema by its version). Reading trusts nothing: a file from
anywhere gives a good Manifest or one SplitterError that lists what is wrong.

Numbers at the borders of the model: q = clip(rint(float32(x) / float32(scale)) + zero_point), and
back real = float32(q - zero_point) * float32(scale); without a scale a plain cast.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from splitter.diagnostics import SplitterError
from splitter.glue.entries import (
    CalibrationEntry,
    Carrier,
    Entry,
    FileEntry,
    FromConstant,
    FromInput,
    JoinedOutput,
    LoopEntry,
    ModelInput,
    ModelOutput,
    OnnxPart,
    Origin,
    PartEntry,
    PartOutput,
    PrecisionEntry,
    SourceEntry,
    TargetEntry,
    ToolEntry,
)

FILE = "manifest.json"
FORMAT: Literal["split bundle"] = "split bundle"
SCHEMA_VERSION: Literal[1] = 1
ONNX_LAYOUT = "as in the ONNX file"
STORED_LAYOUT = "as the parts store it"
QUANTIZE = "q = clip(rint(float32(x) / float32(scale)) + zero_point)"
DEQUANTIZE = "x = float32(q - zero_point) * float32(scale)"
RANDOM_WARNING = "CALIBRATED WITH RANDOM DATA: scales, outputs and accuracy mean nothing"


class Manifest(Entry):
    """Everything that the glue needs, and where it all came from."""

    format: Literal["split bundle"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    tool: ToolEntry
    source: SourceEntry
    options: dict[str, JsonValue]
    target: TargetEntry
    calibration: CalibrationEntry
    precision: PrecisionEntry
    quantize: str = QUANTIZE
    dequantize: str = DEQUANTIZE
    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelOutput, ...]
    joined: tuple[JoinedOutput, ...] = ()
    loops: tuple[LoopEntry, ...] = ()
    parts: tuple[PartEntry, ...]
    remainder: OnnxPart | None = None
    unsplit: FileEntry | None
    float_file: FileEntry | None = Field(validation_alias="float", serialization_alias="float")

    def to_json(self) -> str:
        """Stable text: the order of the fields, number lists on one line, a final newline."""
        document = self.model_dump(mode="json", by_alias=True)
        if not self.loops:
            del document["loops"]
        for output in document["outputs"]:
            if not output["open"]:
                del output["open"]
        text = json.dumps(document, indent=2)
        return _NUMBER_LIST.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"

    def files(self) -> tuple[FileEntry, ...]:
        """Every model file of the bundle."""
        parts = [FileEntry(file=part.file, sha256=part.sha256) for part in self.parts]
        for part in self.parts:
            if part.vendor:
                parts.append(FileEntry(file=part.vendor.file, sha256=part.vendor.sha256))
        if self.remainder:
            parts.append(FileEntry(file=self.remainder.file, sha256=self.remainder.sha256))
        return (*parts, *(file for file in (self.unsplit, self.float_file) if file))


_NUMBER_LIST = re.compile(r"\[\s+((?:-?\d[\d.e+-]*,?\s+)+)\]")


def from_json(text: str | bytes, *, where: str = FILE) -> Manifest:
    """A manifest from anywhere. Raises SplitterError with everything that is wrong with it."""
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise SplitterError(
            "is not a good manifest: " + _listed(_explained(error)),
            where=where,
            hint="make the bundle again with `split`",
        ) from None
    problems = list(_contradictions(manifest))
    if problems:
        raise SplitterError("contradicts itself: " + _listed(problems), where=where)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a bundle's folder."""
    path = folder / FILE
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SplitterError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            hint="a bundle is a folder that `split` wrote, whole",
        ) from None
    return from_json(text, where=str(path))


def check_files(manifest: Manifest, folder: Path) -> None:
    """Raises SplitterError unless every file is in the folder with the manifest's sha256."""
    problems = []
    for entry in manifest.files():
        path = (folder / entry.file).resolve()
        if not path.is_relative_to(folder.resolve()):
            problems.append(f"{entry.file} leaves the folder")
        elif not path.is_file():
            problems.append(f"{entry.file} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != entry.sha256:
            problems.append(f"{entry.file} was changed (its sha256 is not the manifest's)")
    if problems:
        raise SplitterError(_listed(problems), where=str(folder))


def _explained(error: ValidationError) -> list[str]:
    lines = []
    for item in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in item["loc"])
        lines.append(f"{place}: {item['msg']}" if place else item["msg"])
    return lines


def _listed(problems: Sequence[str], *, most: int = 8) -> str:
    more = [f"and {len(problems) - most} more"] if len(problems) > most else []
    return "; ".join([*problems[:most], *more])


def _contradictions(manifest: Manifest) -> Iterator[str]:
    inputs = {entry.name: entry for entry in manifest.inputs}
    made: list[dict[str, PartOutput]] = []
    yield from _repeats("inputs", [entry.name for entry in manifest.inputs])
    yield from _repeats("outputs", [entry.name for entry in manifest.outputs])
    yield from _repeats("files", [entry.file for entry in manifest.files()])
    for index, part in enumerate(manifest.parts):
        place = f"parts.{index}"
        yield from _repeats(f"{place}.inputs", [entry.name for entry in part.inputs])
        yield from _repeats(f"{place}.outputs", [entry.name for entry in part.outputs])
        for entry in part.inputs:
            yield from _origin(f"{place}.inputs {entry.name}", entry, entry.origin, inputs, made)
        made.append({entry.name: entry for entry in part.outputs})
    yield from _joins(manifest)
    yield from _remainder(manifest)
    known = {entry.name for entry in manifest.outputs if entry.dtype == "bool"}
    for bound in manifest.loops:
        if bound.flag not in known:
            yield f"loops {bound.loop}: there is no bool output {bound.flag}"
    for output in manifest.outputs:
        yield from _origin(f"outputs {output.name}", output, output.origin, inputs, made)


def _joins(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the outputs that are joined from others."""
    known = {entry.name: entry for entry in manifest.outputs}
    pieces = [name for joined in manifest.joined for name in joined.pieces]
    yield from _repeats("joined", pieces)
    yield from _repeats("outputs", [*known, *(joined.name for joined in manifest.joined)])
    for joined in manifest.joined:
        missing = [name for name in joined.pieces if name not in known]
        if missing:
            yield f"joined {joined.name}: there is no output {', '.join(missing)}"
            continue
        shapes = [list(known[name].shape) for name in joined.pieces]
        if any(joined.axis >= len(shape) for shape in shapes):
            yield f"joined {joined.name}: its pieces have no axis {joined.axis}"
            continue
        rest = {tuple(s[: joined.axis] + s[joined.axis + 1 :]) for s in shapes}
        if len(rest) > 1:
            yield f"joined {joined.name}: its pieces do not fit along axis {joined.axis}"


def _remainder(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the borders of the ONNX part."""
    part = manifest.remainder
    if part is None:
        return
    values = {entry.name for entry in manifest.outputs}
    values |= {entry.name for entry in manifest.joined}
    given = {entry.name for entry in manifest.inputs}
    for entry in part.inputs:
        origin = entry.origin
        name, known = (
            (origin.model_input, given) if isinstance(origin, FromInput) else (origin.value, values)
        )
        if name not in known or name != entry.name:
            yield f"remainder.inputs {entry.name}: there is no {origin.model_dump()} of that name"
    made = values | {output.name for output in part.outputs}
    missing = [name for name in part.results if name not in made]
    if missing:
        yield f"remainder.results: nothing makes {', '.join(missing)}"


def _origin(
    place: str,
    entry: Carrier,
    origin: Origin,
    inputs: dict[str, ModelInput],
    made: list[dict[str, PartOutput]],
) -> Iterator[str]:
    """What is wrong with where a value comes from."""
    giver: Carrier | None
    if isinstance(origin, FromConstant):
        constant = origin.constant
        if (constant.type, constant.shape) != (entry.type, entry.shape):
            yield f"{place}: the constant has another type or shape"
        return
    if isinstance(origin, FromInput):
        giver = inputs.get(origin.model_input)
    else:
        giver = made[origin.part].get(origin.output) if origin.part < len(made) else None
    if giver is None:
        yield f"{place}: there is no {origin.model_dump()} before it"
    elif not giver.carries(entry):
        yield f"{place}: its shape, type, scale or zero point is not that of {origin.model_dump()}"


def _repeats(place: str, names: Sequence[str]) -> Iterator[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield f"{place}: named more than once: {', '.join(repeated)}"
