"""What a manifest is made of: frozen types that refuse what they cannot be.

Decides the schema of each entry. What makes them one manifest is `manifest`'s.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import PurePosixPath
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

from splitter.plan import Device

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
OpenShape = tuple[NonNegativeInt | None, ...] | None
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


class VendorEntry(Entry):
    """The same part as a float ONNX file, for a compiler that reads ONNX and quantizes itself."""

    file: File
    sha256: Sha256
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class PartEntry(Entry):
    """One .tflite file. operators: their number before any vendor's converter."""

    file: File
    sha256: Sha256
    device: Device
    operators: NonNegativeInt
    inputs: tuple[PartInput, ...]
    outputs: tuple[PartOutput, ...]
    vendor: VendorEntry | None = None


class ModelInput(Carrier):
    """An input by its ONNX name and dtype, with the tensor that carries it."""

    dtype: NumpyType


class ModelOutput(Carrier):
    """An output by its ONNX name and dtype, the tensor that carries it and where it comes from.

    open: it has as many rows as the data decides, at most those of its shape.
    """

    dtype: NumpyType
    origin: Origin = Field(validation_alias="from", serialization_alias="from")
    open: bool = False


class JoinedOutput(Entry):
    """A model output that is some of `outputs`, in order, joined along an axis as real values."""

    name: str
    axis: NonNegativeInt
    pieces: Annotated[tuple[str, ...], Field(min_length=1)]


class FromValue(Entry):
    """A real value that the TFLite parts make: the name of one of `outputs` or `joined`."""

    value: str


class OnnxInput(Entry):
    """An input of the ONNX part, by its ONNX name; values of the TFLite parts come dequantized."""

    name: str
    dtype: NumpyType
    shape: Shape
    origin: FromInput | FromValue = Field(validation_alias="from", serialization_alias="from")


class OnnxOutput(Entry):
    """shape: null for a length that data decides, or for all of it. dtype "object": strings."""

    name: str
    dtype: str
    shape: OpenShape


class Unsupported(Entry):
    """An operator without a TFLite form, by the name of its node, and why."""

    operator: str
    node: str
    why: str


class OnnxPart(Entry):
    """What no TFLite operator does: an .onnx file that runs after the parts, in float.

    results: the model's outputs in order; the others among the manifest's `outputs` are only handed
    on to this part.
    """

    file: File
    sha256: Sha256
    device: Literal["cpu"] = "cpu"
    runtime: Literal["onnxruntime"] = "onnxruntime"
    operators: NonNegativeInt
    opset: NonNegativeInt
    inputs: tuple[OnnxInput, ...]
    outputs: tuple[OnnxOutput, ...]
    results: tuple[str, ...]
    unsupported: tuple[Unsupported, ...]


class LoopEntry(Entry):
    """A Loop written out for at most `turns` turns, and the bool among `outputs` that is true when
    an input needs more. source: where the number is from."""

    loop: str
    turns: NonNegativeInt
    source: str
    flag: str


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
