"""Weights for ONNX files that were stripped of theirs.

A stripped file keeps its graph; every tensor over 1 kB lost its data and has a record in the
model's metadata property "refill" (JSON), by "i:NAME" for an initializer and "c:OUTPUT" for a
Constant node, in any subgraph:

    ["k", v]                      every element v
    ["n", seed, mean, std, {...}] normal; "ax" the axis of output channels, "cs" log-std of the
                                  scale of each, "ctr" mean zero over the fan-in, "g" gain
    ["l", seed, mu, sigma]        log-normal
    ["z", base64]                 zlib of the little-endian bytes, shuffled by byte

numpy.random.RandomState is used because its stream is frozen by numpy's policy.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

KEY = "refill"


def is_stripped(model: onnx.ModelProto) -> bool:
    """Whether the file says that its weights were taken out."""
    return any(entry.key == KEY for entry in model.metadata_props)


def refill(model: onnx.ModelProto) -> None:
    """Put the recorded weights into the model, in place; the same ones every time."""
    records = json.loads(next(p.value for p in model.metadata_props if p.key == KEY))
    for key, tensor in _tensors(model.graph):
        if key in records:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            array = np.ascontiguousarray(_draw(records[key], tuple(tensor.dims), dtype))
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for index in reversed(range(len(model.metadata_props))):
        if model.metadata_props[index].key == KEY:
            del model.metadata_props[index]


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        yield f"i:{tensor.name}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield f"c:{node.output[0]}", attribute.t
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _draw(record: list[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if record[0] == "k":
        return np.full(shape, record[1], dtype)
    if record[0] == "z":
        data = np.frombuffer(zlib.decompress(base64.b64decode(record[1])), np.uint8)
        return np.ascontiguousarray(data.reshape(dtype.itemsize, -1).T).view(dtype).reshape(shape)
    count = int(np.prod(shape)) if shape else 1
    random = np.random.RandomState(record[1] % 2**32)
    if record[0] == "l":
        values = np.exp(record[2] + record[3] * random.standard_normal(count))
        return np.asarray(values.reshape(shape).astype(dtype))
    options = record[4] if len(record) > 4 else {}
    values = _by_channel(random.standard_normal(count).reshape(shape), options, random)
    deviation = values.std()
    if count > 16 and deviation > 0:
        values = values / deviation
    scaled = (record[2] + record[3] * values) * options.get("g", 1.0)
    return np.asarray(scaled.astype(dtype))


def _by_channel(
    values: NDArray[Any], options: dict[str, Any], random: np.random.RandomState
) -> NDArray[Any]:
    axis = options.get("ax")
    if axis is None or values.ndim < 2:
        return values
    channels = values.shape[axis]
    if options.get("ctr") and values.size // channels > 16:
        others = tuple(i for i in range(values.ndim) if i != axis)
        values = values - values.mean(axis=others, keepdims=True)
    if options.get("cs"):
        scale = np.exp(options["cs"] * random.standard_normal(channels))
        scale /= np.sqrt((scale**2).mean())
        values = values * scale.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return values
