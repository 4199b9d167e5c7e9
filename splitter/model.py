"""Reads an ONNX file as a person gives it. Decides nothing; never writes to the file.

The graph is taken as it is; `normalize` makes it static and canonical. What is wrong with the file
itself (not ONNX, truncated, external data missing, short or outside the model's folder) is told
here, all of it at once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from splitter import stored
from splitter.diagnostics import SplitterError, nearest
from splitter.graph import Value

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Model:
    """An ONNX model with all its weights, in memory or (`stored`) in their files.

    inputs, outputs: as declared in the original file, without initializers; an axis whose length
    the file leaves free is 0 until `normalize` binds it. sha256: of the file, then of each external
    data file in the order of their names.
    """

    proto: onnx.ModelProto
    path: Path
    sha256: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def makers(self) -> dict[str, str]:
        """The name of the node that makes each value."""
        return {name: node.name for node in self.proto.graph.node for name in node.output if name}


def load(path: Path) -> Model:
    """Read the model and its external data.

    Errors: SplitterError when the file cannot be read, is not ONNX, is truncated, or when external
    data is missing, shorter than declared, or named by a path that leaves the model's folder.
    """
    data = _read(path)
    proto = _parse(path, data)
    digest = hashlib.sha256(data)
    del data
    tensors = [t for t in stored.tensors(proto.graph) if _is_external(t)]
    files = _external_files(path, tensors)
    for name in sorted(files):
        _update(digest, files[name])
    _read_external(path, tensors, files)
    _check_lengths(path, proto)
    _check_values(path, proto.graph)
    constants = {t.name for t in proto.graph.initializer}
    constants |= {t.values.name for t in proto.graph.sparse_initializer}
    return Model(
        proto,
        path,
        digest.hexdigest(),
        tuple(value_of(v) for v in proto.graph.input if v.name not in constants),
        tuple(value_of(v) for v in proto.graph.output),
    )


def ending_at(model: Model, names: Sequence[str]) -> Model:
    """The model that ends at these values, whatever it made after them; the given one for none.

    Errors: SplitterError for names that no node of the main graph makes, with the nearest ones.
    """
    if not names:
        return model
    graph = model.proto.graph
    makers = {out: node for node in graph.node for out in node.output if out}
    unknown = [name for name in names if name not in makers]
    if unknown:
        raise SplitterError(
            f"the model makes no value {', '.join(unknown)}",
            where="--outputs",
            hint=" ".join(nearest(name, makers) for name in unknown),
        )
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    typed = {info.name: info for info in (*graph.value_info, *graph.output)}
    kept = _needed(graph, names)
    del proto.graph.node[:], proto.graph.output[:]
    proto.graph.node.extend(node for node in graph.node if any(o in kept for o in node.output))
    for name in dict.fromkeys(names):
        proto.graph.output.append(typed.get(name) or onnx.ValueInfoProto(name=name))
    return replace(model, proto=proto, outputs=tuple(map(value_of, proto.graph.output)))


def _needed(graph: onnx.GraphProto, names: Sequence[str]) -> set[str]:
    """The values that these are made of, and they themselves."""
    kept = set(names)
    for node in reversed(graph.node):
        if kept.intersection(node.output):
            kept.update(node.input)
            for inner in subgraphs(node):
                kept.update(_reads(inner))
    return kept


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds (If, Loop, Scan), not those in them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _reads(graph: onnx.GraphProto) -> Iterator[str]:
    """All names that a subgraph reads, its own ones too: too many do no harm."""
    yield from (info.name for info in graph.output)
    for node in graph.node:
        yield from node.input
        for inner in subgraphs(node):
            yield from _reads(inner)


def value_of(info: onnx.ValueInfoProto) -> Value:
    """A declared value; free axes have length 0, an undeclared type is ""."""
    tensor = info.type.tensor_type
    dtype = ""
    if tensor.elem_type:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    return Value(info.name, tuple(int(d.dim_value) for d in tensor.shape.dim), dtype)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SplitterError("there is no such file", where=str(path)) from None
    except IsADirectoryError:
        raise SplitterError(
            "this is a folder, not an ONNX file", where=str(path), hint="name the .onnx file in it"
        ) from None
    except OSError as error:
        raise SplitterError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not data:
        raise SplitterError("the file is empty", where=str(path), hint="export the model again")
    return data


def _parse(path: Path, data: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise _unreadable(path, data) from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise _unreadable(path, data)
    if not proto.graph.output:
        if not proto.graph.node:
            raise _unreadable(path, data)
        raise SplitterError(
            f"the model has no outputs ({len(data):,} bytes read; the file may be truncated)",
            where=str(path),
            hint="export the model again, with its outputs named",
        )
    return proto


def _unreadable(path: Path, data: bytes) -> SplitterError:
    """ONNX files start with the field ir_version (key 0x08): then it is one, cut short."""
    if data[:1] == b"\x08" and path.suffix.lower() == ".onnx":
        return SplitterError(
            f"the ONNX file is damaged or truncated ({len(data):,} bytes)",
            where=str(path),
            hint="copy or export it again; a file from Git LFS may need `git lfs pull`",
        )
    kind = "a Git LFS pointer" if data.startswith(b"version https://git-lfs") else "no ONNX model"
    kind = "a TFLite model" if data[4:8] == b"TFL3" else kind
    return SplitterError(
        f"this is not an ONNX file: it holds {kind}", where=str(path), hint="give an .onnx file"
    )


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _external_files(path: Path, tensors: list[onnx.TensorProto]) -> dict[str, Path]:
    """Location -> file, for every location in the model. All bad ones in one error."""
    folder = path.parent.resolve()
    files: dict[str, Path] = {}
    outside: list[str] = []
    missing: list[str] = []
    for location in sorted({_entries(t).get("location", "") for t in tensors}):
        file = (folder / location).resolve()
        inside = location and not os.path.isabs(location) and file.is_relative_to(folder)
        if not inside or "\\" in location:
            outside.append(location or "(no location)")
        elif not file.is_file():
            missing.append(location)
        files[location] = file
    if outside:
        raise SplitterError(
            "external data is named by a path that leaves the model's folder: "
            + ", ".join(outside),
            where=str(path),
            hint="save the model with its data beside it; links out of the folder do not count",
        )
    if missing:
        raise SplitterError(
            "external data is missing: " + ", ".join(missing),
            where=str(path),
            hint=f"put the file into {path.parent or '.'}, beside the model",
        )
    return files


def _update(digest: hashlib._Hash, file: Path) -> None:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)


def _read_external(path: Path, tensors: list[onnx.TensorProto], files: dict[str, Path]) -> None:
    """Move external data into the tensors, or let it stay (`stored`) where there is much of it.

    All tensors whose range is wrong in one error.
    """
    wrong: list[str] = []
    much = sum(map(_bytes, tensors)) > stored.HELD
    for tensor in tensors:
        entries = _entries(tensor)
        file = files[entries["location"]]
        need = _bytes(tensor)
        try:
            offset = int(entries.get("offset", "0"))
            length = int(entries.get("length", str(need)))
        except ValueError:
            wrong.append(f"{tensor.name} (offset or length is not a number)")
            continue
        size = file.stat().st_size
        if length != need or offset < 0 or offset + length > size:
            wrong.append(
                f"{tensor.name} needs {need:,} bytes, declares {length:,} at {offset:,} of "
                f"{entries['location']} ({size:,} bytes)"
            )
            continue
        if much and stored.stays(tensor, need):
            stored.refer(tensor, file, offset, length)
            continue
        with file.open("rb") as stream:
            stream.seek(offset)
            tensor.raw_data = stream.read(length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    if wrong:
        raise SplitterError(
            "external data has the wrong length: " + "; ".join(wrong[:5]) + _more(wrong),
            where=str(path),
            hint="copy or export the data file again, with the model",
        )


def _bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of the tensor's raw form; 4-bit types are packed two in a byte."""
    count = 1
    for length in tensor.dims:
        count *= length
    four_bit = {onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1}
    if tensor.data_type in four_bit:
        return (count + 1) // 2
    return count * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def _check_lengths(path: Path, proto: onnx.ModelProto) -> None:
    wrong = [
        f"{tensor.name} needs {_bytes(tensor):,} bytes, has {len(tensor.raw_data):,}"
        for tensor in stored.tensors(proto.graph)
        if tensor.HasField("raw_data")
        and tensor.data_type != onnx.TensorProto.STRING
        and len(tensor.raw_data) != _bytes(tensor)
    ]
    if wrong:
        raise SplitterError(
            "weights have the wrong length: " + "; ".join(wrong[:5]) + _more(wrong),
            where=str(path),
            hint="the file is damaged: copy or export it again",
        )


def _check_values(path: Path, graph: onnx.GraphProto) -> None:
    """Every value that a node of the main graph reads, and every output, is made in it."""
    known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    known |= {t.values.name for t in graph.sparse_initializer}
    known |= {name for node in graph.node for name in node.output}
    wrong: list[str] = []
    for node in graph.node:
        label = f"{node.op_type} {node.name}".strip()
        wrong += [f"{name} (read by {label})" for name in node.input if name and name not in known]
    wrong += [f"{v.name} (an output)" for v in graph.output if v.name not in known]
    if wrong:
        raise SplitterError(
            "values are read that nothing makes: " + "; ".join(wrong[:5]) + _more(wrong),
            where=str(path),
            hint="the file is damaged: export the model again",
        )


def _more(items: list[str]) -> str:
    return f"; and {len(items) - 5} more" if len(items) > 5 else ""
