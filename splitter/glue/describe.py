"""Fills in the manifest from what the stages made. Decides file names and where values come from.

A value is known by its tensor's name: the parts are carved out of one graph, so an input of a part
is a model input or the output of that name of the latest part before it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from splitter.calibration import Samples
from splitter.carve import Part
from splitter.glue.entries import (
    CalibrationEntry,
    Constant,
    FileEntry,
    FromConstant,
    FromInput,
    FromPart,
    FromValue,
    JoinedOutput,
    LoopEntry,
    ModelInput,
    ModelOutput,
    OnnxInput,
    OnnxOutput,
    OnnxPart,
    Origin,
    PartEntry,
    PartInput,
    PartOutput,
    PrecisionEntry,
    SourceEntry,
    TargetEntry,
    ToolEntry,
    Unsupported,
    VendorEntry,
)
from splitter.glue.manifest import ONNX_LAYOUT, RANDOM_WARNING, STORED_LAYOUT, Manifest
from splitter.glue.vendor import VendorPart
from splitter.graph import Value
from splitter.model import Model
from splitter.options import Options
from splitter.plan import Device
from splitter.quantize.pieces import Join
from splitter.quantize.precision import precision
from splitter.remainder import Remainder
from splitter.rules.schema import Target
from splitter.tflite.types import LiteGraph, Tensor
from splitter.trips import Bound
from splitter.versions import TOOL, package_versions, tool_version

UNSPLIT_FILE = "unsplit.tflite"
FLOAT_FILE = "float.tflite"


def part_file(index: int, device: Device) -> str:
    return f"parts/{index}-{device}.tflite"


def onnx_file(index: int, device: Device = "cpu") -> str:
    return f"parts/{index}-{device}.onnx"


@dataclass(frozen=True)
class Artifacts:
    """The files as bytes: each TFLite part in order, the whole (None where nothing is TFLite), the
    float one if kept, the ONNX part if there is one, and the parts for a vendor's compiler that
    reads ONNX."""

    parts: tuple[bytes, ...]
    unsplit: bytes | None
    float_file: bytes | None = None
    remainder: bytes | None = None
    vendor: Mapping[int, VendorPart] = field(default_factory=dict)

    def files(self, devices: Sequence[Device]) -> dict[str, bytes]:
        """By their path in the bundle."""
        files = {
            part_file(i, device): data
            for i, (device, data) in enumerate(zip(devices, self.parts, strict=True))
        }
        if self.unsplit is not None:
            files[UNSPLIT_FILE] = self.unsplit
        if self.float_file is not None:
            files[FLOAT_FILE] = self.float_file
        if self.remainder is not None:
            files[onnx_file(len(self.parts))] = self.remainder
        for index, part in self.vendor.items():
            if not part.without:
                files[onnx_file(index, "npu")] = part.data
        return files


def build_manifest(
    parts: Sequence[Part],
    whole: LiteGraph,
    artifacts: Artifacts,
    *,
    model: Model,
    target: Target,
    samples: Samples,
    options: Options,
    layouts: Mapping[str, str] | None = None,
    joins: Mapping[str, Join] = {},
    remainder: Remainder | None = None,
    loops: Sequence[Bound] = (),
) -> Manifest:
    """The manifest of a bundle.

    whole:   the integer graph that the parts were carved from.
    model:   the ONNX model with static shapes: names, shapes and dtypes of its inputs and outputs.
    layouts: boundary tensor -> layout in words ("NHWC"), for those where it is known.
    joins:   outputs of the model that are pieces in `whole`.
    remainder: what runs behind the parts in ONNX Runtime. loops: those that were bounded.
    """
    files = artifacts.files([part.device for part in parts])
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    names = {*whole.inputs, *whole.outputs}
    words = {**(layouts or {}), **dict.fromkeys(names, ONNX_LAYOUT)}
    makers: dict[str, int] = {}
    entries = []
    for index, part in enumerate(parts):
        file = part_file(index, part.device)
        entry = _part(part, file, digests[file], whole, makers, words)
        vendor = _vendor(artifacts.vendor.get(index), onnx_file(index, "npu"), digests)
        entries.append(entry.model_copy(update={"vendor": vendor}))
        makers.update(dict.fromkeys(part.graph.outputs, index))
    return Manifest(
        tool=ToolEntry(name=TOOL, version=tool_version(), packages=dict(package_versions())),
        source=SourceEntry(name=model.path.name, sha256=model.sha256),
        options=recorded_options(options),
        target=TargetEntry(
            name=target.name,
            rules=Path(target.file).name,
            revision=target.revision,
            version=target.version,
            sha256=target.sha256,
        ),
        calibration=_calibration(samples),
        precision=_precision(whole),
        inputs=tuple(_input(value, whole) for value in model.inputs),
        outputs=tuple(
            _output(piece, whole, makers)
            for value in model.outputs
            for piece in _pieces(value, whole, joins)
        ),
        joined=tuple(
            JoinedOutput(name=name, axis=join.axis, pieces=join.pieces)
            for name, join in joins.items()
        ),
        loops=tuple(
            LoopEntry(loop=b.loop, turns=b.most, source=b.source, flag=b.flag) for b in loops
        ),
        parts=tuple(entries),
        remainder=_onnx_part(remainder, onnx_file(len(parts)), digests) if remainder else None,
        unsplit=FileEntry(file=UNSPLIT_FILE, sha256=digests[UNSPLIT_FILE])
        if UNSPLIT_FILE in digests
        else None,
        float_file=FileEntry(file=FLOAT_FILE, sha256=digests[FLOAT_FILE])
        if FLOAT_FILE in digests
        else None,
    )


def recorded_options(options: Options) -> dict[str, Any]:
    """The options that shape the bundle: files by name without folder, nothing of this machine."""
    recorded = asdict(options)
    if options.max_trips is None:
        del recorded["max_trips"]
    for name in ("out", "threads"):
        del recorded[name]
    recorded["target"] = Path(options.target).name
    for name in ("model", "calibration", "validation"):
        recorded[name] = Path(recorded[name]).name
    return {name: _plain(value) for name, value in recorded.items()}


def _plain(value: Any) -> Any:
    """As JSON reads it back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in sorted(value.items())}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return value


def _precision(whole: LiteGraph) -> PrecisionEntry:
    found = precision(whole)
    names: dict[int, list[str]] = {}
    for name, bits in found.bits.items():
        names.setdefault(bits, []).append(name)
    return PrecisionEntry(
        average_bits=round(found.average, 4),
        values={str(bits): tuple(names[bits]) for bits in sorted(names)},
        int16_operators=found.wide,
    )


def _calibration(samples: Samples) -> CalibrationEntry:
    data: Literal["arrays", "images"] = "arrays" if samples.images is None else "images"
    return CalibrationEntry(
        kind="random" if samples.random else data,
        source=samples.source,
        samples=len(samples),
        random=samples.random,
        warning=RANDOM_WARNING if samples.random else "",
    )


def _part(
    part: Part,
    file: str,
    sha256: str,
    whole: LiteGraph,
    makers: Mapping[str, int],
    layouts: Mapping[str, str],
) -> PartEntry:
    tensors = part.graph.tensors
    return PartEntry(
        file=file,
        sha256=sha256,
        device=part.device,
        operators=len(part.graph.operators),
        inputs=tuple(
            PartInput(**_carrier(tensors[name], layouts), origin=_origin(name, whole, makers))
            for name in part.graph.inputs
        ),
        outputs=tuple(
            PartOutput(**_carrier(tensors[name], layouts)) for name in part.graph.outputs
        ),
    )


def _vendor(part: VendorPart | None, file: str, digests: Mapping[str, str]) -> VendorEntry | None:
    if part is None or part.without:
        return None
    return VendorEntry(file=file, sha256=digests[file], inputs=part.inputs, outputs=part.outputs)


def _onnx_part(remainder: Remainder, file: str, digests: Mapping[str, str]) -> OnnxPart:
    given = {value.name for value in remainder.whole.inputs}
    opsets = {entry.domain: entry.version for entry in remainder.proto.opset_import}
    return OnnxPart(
        file=file,
        sha256=digests[file],
        operators=remainder.operators,
        opset=opsets.get("", opsets.get("ai.onnx", 0)),
        inputs=tuple(
            OnnxInput(
                name=port.name,
                dtype=port.dtype,
                shape=tuple(length or 0 for length in port.shape or ()),
                origin=FromInput(model_input=port.name)
                if port.name in given
                else FromValue(value=port.name),
            )
            for port in remainder.inputs
        ),
        outputs=tuple(
            OnnxOutput(name=port.name, dtype=port.dtype, shape=port.shape)
            for port in remainder.outputs
        ),
        results=remainder.results,
        unsupported=tuple(
            Unsupported(operator=cause.op, node=", ".join(cause.nodes), why=cause.why)
            for cause in remainder.causes
        ),
    )


def _input(value: Value, whole: LiteGraph) -> ModelInput:
    """An input that the model does not use has no tensor: it is recorded as it is in the file."""
    layouts = {value.name: ONNX_LAYOUT}
    tensor = whole.tensors.get(value.name) or Tensor(value.name, value.shape, _unused(value.dtype))
    return ModelInput(**_carrier(tensor, layouts), dtype=value.dtype)


def _unused(dtype: str) -> str:
    return {"float16": "float32", "float64": "float32", "int64": "int32"}.get(dtype, dtype)


def _pieces(value: Value, whole: LiteGraph, joins: Mapping[str, Join]) -> tuple[Value, ...]:
    """The values that leave the integer model for an output of the ONNX model."""
    if value.name not in joins:
        return (value,)
    names = joins[value.name].pieces
    return tuple(Value(name, whole.tensors[name].shape, value.dtype) for name in names)


def _output(value: Value, whole: LiteGraph, makers: Mapping[str, int]) -> ModelOutput:
    carrier = _carrier(whole.tensors[value.name], {value.name: ONNX_LAYOUT})
    origin, is_open = _origin(value.name, whole, makers), whole.tensors[value.name].open
    return ModelOutput(**carrier, dtype=value.dtype, origin=origin, open=is_open)


def _carrier(tensor: Tensor, layouts: Mapping[str, str]) -> dict[str, Any]:
    q = tensor.quantization
    if q is not None and q.per_channel:
        raise ValueError(f"{tensor.name} crosses a border with a scale for each channel")
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "type": tensor.dtype,
        "scale": float(np.float32(q.scale[0])) if q else None,
        "zero_point": int(q.zero_point[0]) if q else None,
        "layout": layouts.get(tensor.name, STORED_LAYOUT),
    }


def _origin(name: str, whole: LiteGraph, makers: Mapping[str, int]) -> Origin:
    if name in makers:
        return FromPart(part=makers[name], output=name)
    if name in whole.inputs:
        return FromInput(model_input=name)
    data = whole.tensors[name].data
    if data is None:
        raise ValueError(f"no part before makes {name}")
    little = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"))
    text = base64.b64encode(little.tobytes()).decode("ascii")
    return FromConstant(constant=Constant(type=data.dtype.name, shape=data.shape, data=text))
