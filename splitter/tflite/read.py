"""The bytes of a .tflite file -> LiteGraph, from any writer, damaged or hostile files included.

Decides what counts as damaged: an offset, a length, a type or an index that the file cannot hold.
Constants are views of the bytes, not copies. Reads the main subgraph (the first, as runtimes do);
`header` says how many there are. Leaves judging the content to `splitter.inspect`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from splitter.diagnostics import SplitterError
from splitter.tflite.options import CUSTOM_OPTIONS, INTERMEDIATES, code_name, unpack
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor

Array = NDArray[Any]

_IDENTIFIER = b"TFL3"
_SCHEMA_VERSION = 3

_BITS = {"int4": 4, "uint4": 4, "int2": 2}
"""Types packed into bytes, low bits first; their constants are given as one number a byte."""

_STORED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Types that numpy does not have, and what their bits are given as."""

_OPAQUE = frozenset({"string", "resource", "variant"})
"""Types whose constants are given as raw bytes."""


@dataclass(frozen=True)
class Header:
    """What a file says of itself beside its main subgraph."""

    description: str
    subgraphs: int
    signatures: tuple[str, ...]
    metadata: tuple[str, ...]


def read(data: bytes, *, where: str = "") -> LiteGraph:
    """The main subgraph of a .tflite file.

    Tensors without a name, or with one that is taken, get `NAME#INDEX`. SplitterError when the
    bytes are no TFLite file or a damaged one; `where` names the file in it.
    """
    with _parsing(where):
        return _File(data, where).graph()


def header(data: bytes, *, where: str = "") -> Header:
    """Description, number of subgraphs, names of signatures and metadata. Errors as `read`."""
    with _parsing(where):
        return _File(data, where).header()


@contextmanager
def _parsing(where: str) -> Iterator[None]:
    """Turn what the flatbuffers library raises on a bad offset into one clear message."""
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError, OverflowError) as error:
        raise _damaged(where, str(error)) from error


def _damaged(where: str, detail: str) -> SplitterError:
    return SplitterError(
        f"the TFLite file is damaged ({detail})",
        where=where,
        hint="copy or convert it again, and compare its size and sha256 with the original",
    )


class _File:
    """Accessors over one file. Every vector is counted before it is walked."""

    def __init__(self, data: bytes, where: str) -> None:
        self._where = where
        if len(data) < 8 or data[4:8] != _IDENTIFIER:
            raise SplitterError(
                "this is not a TFLite file (the identifier TFL3 is missing)",
                where=where,
                hint="give a .tflite file, as the tool or a converter writes it",
            )
        self._data = data
        self._walked = 0
        self._model = schema.Model.GetRootAs(data, 0)
        if self._model.Version() != _SCHEMA_VERSION:
            raise _damaged(where, f"schema version {self._model.Version()}, not {_SCHEMA_VERSION}")

    def header(self) -> Header:
        model = self._model
        signatures = range(self._count(model.SignatureDefsLength()))
        metadata = range(self._count(model.MetadataLength()))
        return Header(
            description=_text(model.Description()),
            subgraphs=self._count(model.SubgraphsLength()),
            signatures=tuple(_text(model.SignatureDefs(i).SignatureKey()) for i in signatures),
            metadata=tuple(_text(model.Metadata(i).Name()) for i in metadata),
        )

    def graph(self) -> LiteGraph:
        if self._count(self._model.SubgraphsLength()) == 0:
            raise _damaged(self._where, "it holds no subgraph")
        subgraph = self._model.Subgraphs(0)
        buffers = self._buffers()
        codes = self._codes()
        count = self._count(subgraph.TensorsLength())
        raw = [subgraph.Tensors(i) for i in range(count)]
        names = _unique([self._name(tensor.Name()) for tensor in raw])
        tensors = {
            name: self._tensor(tensor, name, buffers)
            for name, tensor in zip(names, raw, strict=True)
        }
        operators = [
            self._operator(subgraph.Operators(i), codes, names)
            for i in range(self._count(subgraph.OperatorsLength()))
        ]
        return LiteGraph(
            inputs=self._named(subgraph.InputsAsNumpy(), names),
            outputs=self._named(subgraph.OutputsAsNumpy(), names),
            tensors=tensors,
            operators=tuple(operators),
        )

    def _count(self, length: int) -> int:
        """A vector's length. No file holds more elements than bytes, however its offsets cross."""
        self._walked += length
        if self._walked > len(self._data):
            raise _damaged(self._where, "its vectors are longer than the file")
        return length

    def _name(self, name: bytes | None) -> str:
        self._count(len(name or b""))
        return _text(name)

    def _vector(self, vector: Any) -> list[Any]:
        """A vector of numbers; the generated code gives 0 for an absent one."""
        if isinstance(vector, int):
            return []
        self._count(len(vector))
        return list(vector.tolist())

    def _buffers(self) -> list[Array]:
        found = []
        for index in range(self._count(self._model.BuffersLength())):
            buffer = self._model.Buffers(index)
            offset, size = buffer.Offset(), buffer.Size()
            content = buffer.DataAsNumpy()
            if offset > 1:  # kept behind the flatbuffer: files over 2 GB
                content = np.frombuffer(self._data, np.uint8, size, offset)
            found.append(np.zeros(0, np.uint8) if isinstance(content, int) else content)
        return found

    def _codes(self) -> list[str]:
        codes = []
        for index in range(self._count(self._model.OperatorCodesLength())):
            code = self._model.OperatorCodes(index)
            number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            name = code_name(number) or f"UNKNOWN_{number}"
            codes.append(f"CUSTOM:{self._name(code.CustomCode())}" if name == "CUSTOM" else name)
        return codes

    def _tensor(self, tensor: Any, name: str, buffers: list[Array]) -> Tensor:
        shape = tuple(self._vector(tensor.ShapeAsNumpy()))
        if any(size < 0 for size in shape):
            raise _damaged(self._where, f"tensor {name} has the shape {list(shape)}")
        dtype = _DTYPES.get(tensor.Type())
        if dtype is None:
            raise _damaged(self._where, f"tensor {name} has the unknown type {tensor.Type()}")
        return Tensor(
            name,
            shape,
            dtype,
            self._constant(tensor, name, dtype, shape, buffers),
            self._quantization(tensor.Quantization()),
        )

    def _constant(
        self,
        tensor: Any,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        buffers: list[Array],
    ) -> Array | None:
        index = tensor.Buffer()
        if index >= len(buffers):
            raise _damaged(self._where, f"tensor {name} refers to buffer {index}")
        content: Array = buffers[index]
        elements = _elements(shape)
        if index == 0 or (not content.size and elements):
            return None
        if dtype in _OPAQUE or tensor.Sparsity() is not None:
            return content
        if dtype in _BITS:
            return self._unpacked(content, name, dtype, shape)
        stored = np.dtype(_STORED.get(dtype, dtype))
        if content.nbytes != elements * stored.itemsize:
            raise _damaged(
                self._where,
                f"constant {name} is {dtype}{list(shape)} but holds {content.nbytes} bytes",
            )
        constant: Array = content.view(stored).reshape(shape)
        return constant

    def _unpacked(self, content: Array, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        bits = _BITS[dtype]
        in_byte = 8 // bits
        elements = _elements(shape)
        if content.size != -(-elements // in_byte):
            raise _damaged(self._where, f"constant {name} holds {content.size} bytes")
        shifts = np.arange(in_byte, dtype=np.uint8) * bits
        numbers: Array = ((content[:, None] >> shifts) & (2**bits - 1)).reshape(-1)[:elements]
        if not dtype.startswith("u"):
            signed = numbers.astype(np.int8)
            numbers = np.where(signed >= 2 ** (bits - 1), signed - 2**bits, signed)
        unpacked: Array = numbers.reshape(shape)
        return unpacked

    def _quantization(self, quantization: Any) -> Quantization | None:
        if quantization is None:
            return None
        scale = self._vector(quantization.ScaleAsNumpy())
        zero_point = self._vector(quantization.ZeroPointAsNumpy())
        if not scale:
            return None
        if len(zero_point) != len(scale):  # some writers give one, or none, for all channels
            zero_point = (zero_point[:1] or [0]) * len(scale)
        return Quantization(tuple(scale), tuple(zero_point), quantization.QuantizedDimension())

    def _operator(self, op: Any, codes: list[str], names: list[str]) -> Operator:
        if op.OpcodeIndex() >= len(codes):
            raise _damaged(self._where, f"an operator refers to code {op.OpcodeIndex()}")
        options = unpack(op.BuiltinOptionsType(), op.BuiltinOptions())
        options.update(unpack(op.BuiltinOptions2Type(), op.BuiltinOptions2(), second=True))
        custom = op.CustomOptionsAsNumpy()
        if not isinstance(custom, int):
            self._count(len(custom))
            options[CUSTOM_OPTIONS] = custom.tobytes()
        inner = self._named(op.IntermediatesAsNumpy(), names)
        if inner:
            options[INTERMEDIATES] = inner
        return Operator(
            codes[op.OpcodeIndex()],
            self._named(op.InputsAsNumpy(), names),
            self._named(op.OutputsAsNumpy(), names),
            options,
        )

    def _named(self, indices: Any, names: list[str]) -> tuple[str, ...]:
        numbers = self._vector(indices)
        for number in numbers:
            if not -1 <= number < len(names):
                raise _damaged(self._where, f"there is no tensor {number}")
        return tuple("" if number == -1 else names[number] for number in numbers)


_DTYPES = {
    number: name.lower()
    for name, number in vars(schema.TensorType).items()
    if not name.startswith("_")
}


def _text(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", errors="replace")


def _elements(shape: tuple[int, ...]) -> int:
    elements = 1
    for size in shape:  # Python numbers: a hostile shape must not wrap around
        elements *= size
    return elements


def _unique(names: list[str]) -> list[str]:
    taken: set[str] = set()
    result = []
    for index, name in enumerate(names):
        chosen = name if name and name not in taken else f"{name}#{index}"
        while chosen in taken:
            chosen += "#"
        taken.add(chosen)
        result.append(chosen)
    return result
