"""LiteGraph -> the bytes of a .tflite file.

Decides how the file is laid out: constants 16-byte aligned and each distinct content once, operator
codes in order of first use with the version each needs, one signature "serving_default" that names
inputs and outputs by their tensors. The same graph gives the same bytes. Leaves options to
`options`, versions to `versions`; changes nothing of the graph but what `in_place` must, lest the
runtime computes another one. Source: schema.fbs of LiteRT.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from splitter.diagnostics import SplitterError
from splitter.tflite.check import check, state
from splitter.tflite.in_place import keep_readable
from splitter.tflite.options import (
    CUSTOM_OPTIONS,
    INTERMEDIATES,
    Packed,
    code_number,
    pack,
    snake,
)
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.versions import operator_version

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
SIGNATURE = "serving_default"
LIMIT = 2**31 - 1
"""Bytes of a file: offsets of a flatbuffer are 32 bits, signed where vtables are read."""

LARGE = 1 << 16
"""Bytes of a constant that goes behind the flatbuffer where not all fit into it."""

_ALIGNMENT = 16
"""Bytes; `force_align: 16` of Buffer.data in the schema."""

_PLACEHOLDER = 127
"""Operator codes above this are written beside it: the old field holds one signed byte."""


Places = Mapping[int, int]
"""Where in the file a constant is that lies behind the flatbuffer, by the number of its buffer."""


def write(graph: LiteGraph, *, description: str = "", beyond: bool = False) -> bytes:
    """The .tflite file of a graph. `description` goes into the file's own description field.

    SplitterError when the file would be over 2 GB, unless it may go `beyond`: then large constants
    lie behind the flatbuffer (Buffer.offset), which LiteRT reads and older runtimes and compilers
    do not. ValueError (a bug of the caller) when the graph
    contradicts itself: a name without a tensor, data of another shape or type than its tensor, an
    option that the operator does not have.
    """
    check(graph)
    if not beyond:
        _check_size(graph)
    graph = keep_readable(graph)
    pool = _Pool(graph.tensors.values())
    if pool.nbytes < LIMIT:
        return _flatbuffer(graph, pool, description, {})
    behind = pool.places(0)
    start = len(_flatbuffer(graph, pool, description, behind))
    behind = pool.places(start)
    pieces: list[bytes | memoryview] = [_flatbuffer(graph, pool, description, behind)]
    for number, offset in behind.items():
        pieces += [bytes(offset - start), pool.contents[number - 1]]
        start = offset + len(pool.contents[number - 1])
    return b"".join(pieces)


def _flatbuffer(graph: LiteGraph, pool: _Pool, description: str, behind: Places) -> bytes:
    """The file, or all of it that comes before the constants `behind` it."""
    builder = flatbuffers.Builder(_estimate(graph, pool, behind))
    buffers = _buffers(builder, pool, behind)
    codes, subgraph = _subgraph(builder, graph, pool)
    signature = _signature(builder, graph)
    text = builder.CreateString(description)

    schema.ModelStart(builder)
    schema.ModelAddVersion(builder, SCHEMA_VERSION)
    schema.ModelAddOperatorCodes(builder, codes)
    schema.ModelAddSubgraphs(builder, subgraph)
    schema.ModelAddDescription(builder, text)
    schema.ModelAddBuffers(builder, buffers)
    schema.ModelAddSignatureDefs(builder, signature)
    builder.Finish(schema.ModelEnd(builder), file_identifier=IDENTIFIER)
    # Not builder.Output(): that copies once more on the way to bytes.
    return bytes(memoryview(builder.Bytes)[builder.Head() :])


class _Pool:
    """Distinct contents of constants. Number 0 is the empty buffer of everything variable."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.contents: list[bytes | memoryview] = []
        self.number: dict[str, int] = {}
        seen: dict[bytes, int] = {}
        for tensor in tensors:
            if tensor.data is None:
                continue
            content = _content(tensor.data)
            digest = hashlib.blake2b(content, digest_size=32).digest()
            if digest not in seen:
                self.contents.append(content)
                seen[digest] = len(self.contents)
            self.number[tensor.name] = seen[digest]

    @property
    def nbytes(self) -> int:
        return sum(len(content) + _ALIGNMENT for content in self.contents)

    def places(self, start: int) -> dict[int, int]:
        """Offsets of the large constants one after another from `start`, by buffer number."""
        found: dict[int, int] = {}
        for number, content in enumerate(self.contents, 1):
            if len(content) >= LARGE:
                found[number] = -(-start // _ALIGNMENT) * _ALIGNMENT or _ALIGNMENT
                start = found[number] + len(content)
        return found


def _content(data: Any) -> memoryview | bytes:
    """The bytes in the file's order, without a copy where the array has them already."""
    array: Any = np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("<"))
    # An empty array has no address that memoryview could cast.
    return memoryview(array.reshape(-1).view(np.uint8)) if array.size else b""


def _check_size(graph: LiteGraph) -> None:
    total = sum(t.data.nbytes for t in graph.tensors.values() if t.data is not None)
    if total >= LIMIT:
        raise SplitterError(
            f"the constants take {total / 1e9:.2f} GB; a .tflite file holds at most 2 GB",
            hint="a part of fewer operators, or int8 weights, makes a smaller file",
        )


def _estimate(graph: LiteGraph, pool: _Pool, behind: Places) -> int:
    """Bytes to reserve: a builder that runs out doubles, with all constants in it."""
    names = sum(len(name) for name in graph.tensors)
    scales = sum(len(t.quantization.scale) for t in graph.tensors.values() if t.quantization)
    entries = len(graph.tensors) + len(graph.operators) + len(pool.contents)
    inside = pool.nbytes - sum(len(pool.contents[number - 1]) for number in behind)
    return min(inside + 8 * names + 16 * scales + 512 * entries + 65536, LIMIT)


def _buffers(builder: Any, pool: _Pool, behind: Places) -> int:
    tables = [
        _buffer(builder, content, behind.get(number, 0))
        for number, content in enumerate((b"", *pool.contents))
    ]
    return _offsets(builder, tables)


def _buffer(builder: Any, content: bytes | memoryview, offset: int) -> int:
    data = 0
    if len(content) and not offset:
        builder.Prep(_ALIGNMENT, len(content))
        data = builder.CreateByteVector(bytes(content))
    schema.BufferStart(builder)
    if data:
        schema.BufferAddData(builder, data)
    if offset:
        schema.BufferAddOffset(builder, offset)
        schema.BufferAddSize(builder, len(content))
    return int(schema.BufferEnd(builder))


def _subgraph(builder: Any, graph: LiteGraph, pool: _Pool) -> tuple[int, int]:
    """The vectors of operator codes and of the one subgraph."""
    index = {name: number for number, name in enumerate(graph.tensors)}
    variable = state(graph)
    tensors = [
        _tensor(builder, tensor, pool.number.get(name, 0), variable=name in variable)
        for name, tensor in graph.tensors.items()
    ]
    codes: dict[tuple[str, int], int] = {}
    operators = [_operator(builder, op, graph, index, codes) for op in graph.operators]
    code_vector = _offsets(builder, [_code(builder, *key) for key in codes])
    tensor_vector = _offsets(builder, tensors)
    operator_vector = _offsets(builder, operators)
    inputs = _numbers(builder, [index[name] for name in graph.inputs], np.int32)
    outputs = _numbers(builder, [index[name] for name in graph.outputs], np.int32)
    name = builder.CreateString("main")
    schema.SubGraphStart(builder)
    schema.SubGraphAddTensors(builder, tensor_vector)
    schema.SubGraphAddInputs(builder, inputs)
    schema.SubGraphAddOutputs(builder, outputs)
    schema.SubGraphAddOperators(builder, operator_vector)
    schema.SubGraphAddName(builder, name)
    return code_vector, _offsets(builder, [schema.SubGraphEnd(builder)])


def _tensor(builder: Any, tensor: Tensor, buffer: int, *, variable: bool) -> int:
    kind = getattr(schema.TensorType, tensor.dtype.upper(), None)
    if kind is None:
        raise ValueError(f"{tensor.name}: TFLite has no type {tensor.dtype}")
    quantization = _quantization(builder, tensor.quantization) if tensor.quantization else 0
    shape = _numbers(builder, tensor.shape, np.int32)
    open_shape = _numbers(builder, (-1, *tensor.shape[1:]), np.int32) if tensor.open else 0
    name = builder.CreateString(tensor.name)
    schema.TensorStart(builder)
    schema.TensorAddShape(builder, shape)
    schema.TensorAddType(builder, kind)
    schema.TensorAddBuffer(builder, buffer)
    schema.TensorAddName(builder, name)
    if quantization:
        schema.TensorAddQuantization(builder, quantization)
    schema.TensorAddIsVariable(builder, variable)
    if open_shape:
        schema.TensorAddShapeSignature(builder, open_shape)
    schema.TensorAddHasRank(builder, True)
    return int(schema.TensorEnd(builder))


def _quantization(builder: Any, quantization: Quantization) -> int:
    scale = _numbers(builder, quantization.scale, np.float32)
    zero_point = _numbers(builder, quantization.zero_point, np.int64)
    schema.QuantizationParametersStart(builder)
    schema.QuantizationParametersAddScale(builder, scale)
    schema.QuantizationParametersAddZeroPoint(builder, zero_point)
    schema.QuantizationParametersAddQuantizedDimension(builder, quantization.axis)
    return int(schema.QuantizationParametersEnd(builder))


def _operator(
    builder: Any,
    op: Operator,
    graph: LiteGraph,
    index: Mapping[str, int],
    codes: dict[tuple[str, int], int],
) -> int:
    custom = op.code.startswith("CUSTOM:")
    packed = None if custom else pack(op, graph.tensors)
    version = 1 if custom else operator_version(op, graph.tensors, _numeric(packed))
    code = codes.setdefault((op.code, version), len(codes))
    inner = _numbers(builder, [index[n] for n in op.options.get(INTERMEDIATES, ())], np.int32)
    custom_options = _custom_options(builder, op) if custom else 0
    table = packed.table.Pack(builder) if packed else 0
    inputs = _numbers(builder, [index[name] if name else -1 for name in op.inputs], np.int32)
    outputs = _numbers(builder, [index[name] for name in op.outputs], np.int32)
    schema.OperatorStart(builder)
    schema.OperatorAddOpcodeIndex(builder, code)
    schema.OperatorAddInputs(builder, inputs)
    schema.OperatorAddOutputs(builder, outputs)
    if packed and packed.second:
        schema.OperatorAddBuiltinOptions2Type(builder, packed.tag)
        schema.OperatorAddBuiltinOptions2(builder, table)
    elif packed:
        schema.OperatorAddBuiltinOptionsType(builder, packed.tag)
        schema.OperatorAddBuiltinOptions(builder, table)
    if custom_options:
        schema.OperatorAddCustomOptions(builder, custom_options)
    if INTERMEDIATES in op.options:
        schema.OperatorAddIntermediates(builder, inner)
    return int(schema.OperatorEnd(builder))


def _numeric(packed: Packed | None) -> dict[str, Any]:
    if packed is None:
        return {}
    return {snake(name): value for name, value in vars(packed.table).items()}


def _custom_options(builder: Any, op: Operator) -> int:
    unknown = set(op.options) - {CUSTOM_OPTIONS, INTERMEDIATES}
    if unknown:
        raise ValueError(f"{op.code} takes {CUSTOM_OPTIONS} as bytes, not {sorted(unknown)}")
    content = bytes(op.options.get(CUSTOM_OPTIONS, b""))
    if not content:
        return 0
    builder.Prep(_ALIGNMENT, len(content))
    return int(builder.CreateByteVector(content))


def _code(builder: Any, code: str, version: int) -> int:
    builtin, _, custom = code.partition(":")
    number = code_number(builtin)
    name = builder.CreateString(custom) if custom else 0
    schema.OperatorCodeStart(builder)
    schema.OperatorCodeAddDeprecatedBuiltinCode(builder, min(number, _PLACEHOLDER))
    if name:
        schema.OperatorCodeAddCustomCode(builder, name)
    schema.OperatorCodeAddVersion(builder, version)
    schema.OperatorCodeAddBuiltinCode(builder, number)
    return int(schema.OperatorCodeEnd(builder))


def _signature(builder: Any, graph: LiteGraph) -> int:
    index = {name: number for number, name in enumerate(graph.tensors)}
    inputs = _offsets(builder, [_named(builder, name, index[name]) for name in graph.inputs])
    outputs = _offsets(builder, [_named(builder, name, index[name]) for name in graph.outputs])
    key = builder.CreateString(SIGNATURE)
    schema.SignatureDefStart(builder)
    schema.SignatureDefAddInputs(builder, inputs)
    schema.SignatureDefAddOutputs(builder, outputs)
    schema.SignatureDefAddSignatureKey(builder, key)
    return _offsets(builder, [schema.SignatureDefEnd(builder)])


def _named(builder: Any, name: str, index: int) -> int:
    text = builder.CreateString(name)
    schema.TensorMapStart(builder)
    schema.TensorMapAddName(builder, text)
    schema.TensorMapAddTensorIndex(builder, index)
    return int(schema.TensorMapEnd(builder))


def _offsets(builder: Any, items: Sequence[int]) -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return int(builder.EndVector())


def _numbers(builder: Any, values: Iterable[float], dtype: type[np.generic]) -> int:
    return int(builder.CreateNumpyVector(np.asarray(list(values), dtype=dtype)))
