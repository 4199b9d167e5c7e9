"""Weights that stay in their files: a model of several gigabytes is mapped, not held in copies.

Decides how such a tensor is written down between stages: as external data with the full path of its
file, which no file of ours is saved with. `array_of` maps it, `tensor_of` recognizes an array that
is still the file's bytes, `for_runtime` and `inlined` write it for others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[Any]

HELD = 1 << 30
"""Bytes of external data that are read into memory; of a model with more, large tensors stay."""

LARGE = 1 << 20
"""Bytes of a tensor that stays."""


def stays(tensor: onnx.TensorProto, nbytes: int) -> bool:
    """Whether a tensor of this size can be mapped: numbers that numpy has itself."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    four_bit = {onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1}
    plain = dtype.kind in "fiub" and tensor.data_type not in four_bit
    return plain and nbytes >= LARGE


def refer(tensor: onnx.TensorProto, file: Path, offset: int, nbytes: int) -> None:
    """Say where the tensor's bytes are, by the full path of the file."""
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", str(file)), ("offset", offset), ("length", nbytes)):
        tensor.external_data.add(key=key, value=str(value))


def array_of(tensor: onnx.TensorProto) -> Array:
    """The tensor's numbers, mapped from its file where they stayed there."""
    if not _is_stored(tensor):
        return numpy_helper.to_array(tensor)
    file, offset, _ = _entries(tensor)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    shape = tuple(tensor.dims)
    return np.asarray(np.memmap(file, dtype.newbyteorder("<"), "r", offset, shape))


def place_of(array: Array) -> tuple[Path, int] | None:
    """File and offset, when the array is all the bytes of a mapped tensor in their order."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None:
        return None
    same = array.ctypes.data == base.ctypes.data and array.nbytes == base.nbytes
    if not same or not array.flags.c_contiguous or array.dtype != base.dtype:
        return None
    return Path(base.filename), int(base.offset)


def for_runtime(model: onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """The model with paths that start in the folder beside it; ("" and the given one for none)."""
    stored = [tensor for tensor in tensors(model.graph) if _is_stored(tensor)]
    if not stored:
        return model, ""
    folder = os.path.commonpath([str(_entries(tensor)[0].parent) for tensor in stored])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in tensors(copy.graph):
        if _is_stored(tensor):
            file, offset, nbytes = _entries(tensor)
            refer(tensor, file.relative_to(folder), offset, nbytes)
    return copy, folder


def inlined(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """The tensor with its bytes in it."""
    if not _is_stored(tensor):
        return tensor
    return numpy_helper.from_array(array_of(tensor), tensor.name)


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor stored in a graph and its subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from _of_attribute(attribute)


def _of_attribute(attribute: onnx.AttributeProto) -> Iterable[onnx.TensorProto]:
    if attribute.type == onnx.AttributeProto.TENSOR:
        yield attribute.t
    elif attribute.type == onnx.AttributeProto.TENSORS:
        yield from attribute.tensors
    elif attribute.type == onnx.AttributeProto.GRAPH:
        yield from tensors(attribute.g)
    elif attribute.type == onnx.AttributeProto.GRAPHS:
        for inner in attribute.graphs:
            yield from tensors(inner)


def _is_stored(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _entries(tensor: onnx.TensorProto) -> tuple[Path, int, int]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return Path(entries["location"]), int(entries["offset"]), int(entries["length"])
