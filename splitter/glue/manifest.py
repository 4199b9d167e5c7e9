"""manifest.json: what a bundle holds and how its parts are run, as frozen types and as JSON.

Decides the schema and what a good manifest is. `describe` fills it in, `board` reads it on the
board with numpy alone (and knows this schema by its version). Reading trusts nothing: a file from
anywhere gives a good Manifest or one SplitterError that lists what is wrong.

Numbers at the borders of the model: q = clip(rint(float32(x) / float32(scale)) + zero_point), and
back real = float32(q - zero_point) * float32(scale); without a scale a plain cast.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    ValidationError,
    model_validator,
)

from splitter.diagnostics import SplitterError
from splitter.plan import Device

FILE = "manifest.json"
FORMAT: Literal["split bundle"] = "split bundle"
SCHEMA_VERSION: Literal[1] = 1
ONNX_LAYOUT = "as in the ONNX file"
STORED_LAYOUT = "as the parts store it"
QUANTIZE = "q = clip(rint(float32(x) / float32(scale)) + zero_point)"
DEQUANTIZE = "x = float32(q - zero_point) * float32(scale)"
RANDOM_WARNING = "CALIBRATED WITH RANDOM DATA: scales, outputs and accuracy mean nothing"

TensorType = Literal["int8", "uint8", "int16", "int32", "int64", "bool", "float32"]


def _inside(file: str) -> str:
    path = PurePosixPath(file)
    if not file or path.is_absolute() or ".." in path.parts or "\\" in file or ":" in file:
        raise ValueError("must be a path inside the bundle's folder")
    return file


def _numpy_type(name: str) -> str:
    try:
        known = np.dtype(name).name == name and np.dtype(name).kind in "fiub"
    except TypeError:
        known = False
    if not known:
        raise ValueError("must be the name of a numpy number type")
    return name


File = Annotated[str, AfterValidator(_inside)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Shape = tuple[NonNegativeInt, ...]
Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NumpyType = Annotated[str, AfterValidator(_numpy_type)]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Constant(Entry):
    """An output that no part computes; data is base64 of the little-endian elements."""

    type: TensorType
    shape: Shape
    data: str

    @model_validator(mode="after")
    def _complete(self) -> Constant:
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except binascii.Error:
            raise ValueError("data is not base64") from None
        wanted = np.dtype(self.type).itemsize * int(np.prod(self.shape, dtype=np.int64))
        if size != wanted:
            raise ValueError(f"data has {size} bytes, type and shape need {wanted}")
        return self


class FromInput(Entry):
    """A value that is a model input, given by the caller."""

    model_input: str


class FromPart(Entry):
    """A value that an earlier part made: the part's index and the name of its output tensor."""

    part: NonNegativeInt
    output: str


class FromConstant(Entry):
    constant: Constant


Origin = FromInput | FromPart | FromConstant


class Carrier(Entry):
    """A tensor in a .tflite file. Per-tensor scale and zero point, both or neither."""

    name: str
    shape: Shape
    type: TensorType
    scale: Scale | None
    zero_point: int | None
    layout: str

    @model_validator(mode="after")
    def _parameters(self) -> Carrier:
        if (self.scale is None) != (self.zero_point is None):
            raise ValueError("scale and zero_point go together")
        kind = np.dtype(self.type)
        if self.zero_point is not None:
            if kind.kind not in "iu":
                raise ValueError(f"{self.type} has no scale")
            if not np.iinfo(kind).min <= self.zero_point <= np.iinfo(kind).max:
                raise ValueError(f"zero_point {self.zero_point} is beyond {self.type}")
        return self

    def carries(self, other: Carrier) -> bool:
        """Whether raw numbers of one are numbers of the other."""
        mine = (self.shape, self.type, self.scale, self.zero_point)
        return mine == (other.shape, other.type, other.scale, other.zero_point)


class PartInput(Carrier):
    origin: Origin = Field(validation_alias="from", serialization_alias="from")


class PartOutput(Carrier):
    pass


class PartEntry(Entry):
    """One .tflite file. operators: their number before any vendor's converter."""

    file: File
    sha256: Sha256
    device: Device
    operators: NonNegativeInt
    inputs: tuple[PartInput, ...]
    outputs: tuple[PartOutput, ...]


class ModelInput(Carrier):
    """An input by its ONNX name and dtype, with the tensor that carries it."""

    dtype: NumpyType


class ModelOutput(Carrier):
    """An output by its ONNX name and dtype, the tensor that carries it and where it comes from."""

    dtype: NumpyType
    origin: Origin = Field(validation_alias="from", serialization_alias="from")


class JoinedOutput(Entry):
    """A model output that is some of `outputs`, in order, joined along an axis as real values."""

    name: str
    axis: NonNegativeInt
    pieces: Annotated[tuple[str, ...], Field(min_length=1)]


class FileEntry(Entry):
    file: File
    sha256: Sha256


class SourceEntry(Entry):
    """The ONNX file: its name without a folder, sha256 over the file and its external data."""

    name: str
    sha256: Sha256


class ToolEntry(Entry):
    name: str
    version: str
    packages: dict[str, str]


class TargetEntry(Entry):
    """The rule file used; version: of the vendor's tool that its rules were read for."""

    name: str
    rules: str
    revision: str
    version: str
    sha256: Sha256


class CalibrationEntry(Entry):
    kind: Literal["images", "arrays", "random"]
    source: str
    samples: NonNegativeInt
    random: bool
    warning: str

    @model_validator(mode="after")
    def _loud(self) -> CalibrationEntry:
        if self.random != (self.kind == "random") or self.random != bool(self.warning):
            raise ValueError("kind, random and warning contradict each other")
        return self


class PrecisionEntry(Entry):
    """Widths in unsplit.tflite.

    average_bits: of an activation value, all elements counted. values: names of the tensors by bits
    of an element (indices have 32). int16_operators: what a runtime must have in 16 bits.
    """

    average_bits: float
    values: dict[str, tuple[str, ...]]
    int16_operators: tuple[str, ...] = ()


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
    parts: tuple[PartEntry, ...]
    unsplit: FileEntry
    float_file: FileEntry | None = Field(validation_alias="float", serialization_alias="float")

    def to_json(self) -> str:
        """Stable text: the order of the fields, number lists on one line, a final newline."""
        text = json.dumps(self.model_dump(mode="json", by_alias=True), indent=2)
        return _NUMBER_LIST.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"

    def files(self) -> tuple[FileEntry, ...]:
        """Every .tflite file of the bundle."""
        parts = [FileEntry(file=part.file, sha256=part.sha256) for part in self.parts]
        return (*parts, self.unsplit, *([self.float_file] if self.float_file else []))


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
        raise SplitterError(f"cannot be read: {error.strerror}", where=str(path)) from None
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
