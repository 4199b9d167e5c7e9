"""RF-DETR Nano at full size (107 MB) out of its stripped graph (446 kB), the same bytes every time.

    python models/build_nano.py [OUT.onnx]

The stripped file keeps the whole graph of rfdetr 1.11.2's own export; each tensor of more than 1 kB
lost its data. The metadata property "refill" says how to make it again, as JSON: a key "i:NAME" is
an initializer, "c:OUTPUT" the Constant node with that output; a record is one of

    ["k", v]                          every element is v
    ["n", seed, mean, std, {...}]     normal; options "ax" the axis of output channels, "ctr" zero
                                      mean over the fan-in, "cs" the log-std of a scale drawn for
                                      each channel, "g" a gain on everything
    ["l", seed, mu, sigma]            log-normal, for what must be positive
    ["z", base64]                     zlib of the little-endian bytes, all first bytes of the
                                      elements first, then all second bytes, and so on

The weights have each layer's own statistics, so activations stay sane; what the network detects
means nothing. numpy.random.RandomState is used because numpy froze its stream.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]
Record = list[Any]

HERE = Path(__file__).resolve().parent
STRIPPED = HERE / "rfdetr_nano_384.stripped.onnx"
BUILT = HERE / "built" / "rfdetr_nano_384.onnx"
PROPERTY = "refill"


def is_stripped(model: onnx.ModelProto) -> bool:
    """Whether the file says that its weights were taken out."""
    return any(entry.key == PROPERTY for entry in model.metadata_props)


def refill(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model with every recorded tensor filled again."""
    full = onnx.ModelProto()
    full.CopyFrom(model)
    records = json.loads(next(p.value for p in model.metadata_props if p.key == PROPERTY))
    for key, tensor in stripped_tensors(full.graph):
        if key in records:
            fill(tensor, records[key])
    kept = [p for p in full.metadata_props if p.key != PROPERTY]
    del full.metadata_props[:]
    full.metadata_props.extend(kept)
    return full


def stripped_tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Each tensor that may have a record, with its key; subgraphs included."""
    for tensor in graph.initializer:
        yield f"i:{tensor.name}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield f"c:{node.output[0]}", attribute.t
            for subgraph in (attribute.g, *attribute.graphs):
                yield from stripped_tensors(subgraph)


def fill(tensor: onnx.TensorProto, record: Record) -> None:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    data = make(record, tuple(tensor.dims), dtype)
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(data), tensor.name))


def make(record: Record, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The data that a record describes."""
    kind, *rest = record
    if kind == "k":
        return np.full(shape, rest[0], dtype=dtype)
    if kind == "z":
        return unshuffle(rest[0], dtype).reshape(shape)
    random = np.random.RandomState(rest[0] % 2**32)
    if kind == "l":
        drawn = random.standard_normal(int(np.prod(shape)))
        positive: Array = np.exp(rest[1] + rest[2] * drawn).reshape(shape).astype(dtype)
        return positive
    if kind == "n":
        options = rest[3] if len(rest) > 3 else {}
        noise = standardize(draw_channels(random, shape, options))
        scaled: Array = ((rest[1] + rest[2] * noise) * options.get("g", 1.0)).astype(dtype)
        return scaled
    raise ValueError(f"a refill record of unknown kind {kind!r}")


def unshuffle(text: str, dtype: np.dtype[Any]) -> Array:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.ascontiguousarray(planes.reshape(dtype.itemsize, -1).T).view(dtype)


def draw_channels(
    random: np.random.RandomState, shape: tuple[int, ...], options: Mapping[str, Any]
) -> Array:
    """Normal noise; centered and scaled by output channel where the options say so."""
    noise: Array = random.standard_normal(int(np.prod(shape))).reshape(shape)
    axis = options.get("ax")
    if axis is None or len(shape) < 2:
        return noise
    fan_in = tuple(other for other in range(len(shape)) if other != axis)
    if options.get("ctr") and noise.size // shape[axis] > 16:
        noise = noise - noise.mean(axis=fan_in, keepdims=True)
    if options.get("cs"):
        scale = np.exp(options["cs"] * random.standard_normal(shape[axis]))
        scale /= np.sqrt((scale**2).mean())
        noise = noise * np.expand_dims(scale, fan_in)
    return noise


def standardize(noise: Array) -> Array:
    spread = noise.std()
    return noise / spread if noise.size > 16 and spread > 0 else noise


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(refill(onnx.load(STRIPPED)).SerializeToString())
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
