"""Takes bfloat16 out of a file: every value and weight of that type is float32 here.

Neither NumPy's arrays nor ONNX Runtime's kernels on a CPU have it. Weights keep their very numbers;
what the file would round between operators is not rounded, so inputs, outputs and the comparison
with ONNX Runtime are float32's. Decides nothing else; other types without arrays (float8, 4 bits)
are refused by `normalize`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from splitter.model import Model, subgraphs, value_of
from splitter.stored import array_of

OLD, NEW = TensorProto.BFLOAT16, TensorProto.FLOAT
TYPES = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")
"""Attributes that name a type by its number."""


def plain_types(model: Model) -> Model:
    """The model in float32 where it was in bfloat16; the given one without any. It is not changed.

    Inputs and outputs of that type become float32.
    """
    if not _has(model.proto):
        return model
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for graph in (proto.graph, *_inner(proto.graph.node)):
        _rewrite_graph(graph)
    for function in proto.functions:
        _rewrite_nodes(function.node)
        for graph in _inner(function.node):
            _rewrite_graph(graph)
    given = {value.name for value in model.inputs}
    return replace(
        model,
        proto=proto,
        inputs=tuple(value_of(info) for info in proto.graph.input if info.name in given),
        outputs=tuple(value_of(info) for info in proto.graph.output),
    )


def type_notes(model: Model) -> tuple[str, ...]:
    """What the report must say of a file in bfloat16."""
    if not _has(model.proto):
        return ()
    ends = (*model.proto.graph.input, *model.proto.graph.output)
    names = [info.name for info in ends if _elem(info) == OLD]
    borders = f"; {', '.join(names)} are float32 at the border" if names else ""
    return (
        "the file holds bfloat16; weights keep their numbers, and all is computed in float32 "
        f"here, in ONNX Runtime too{borders}",
    )


def _has(proto: onnx.ModelProto) -> bool:
    nodes = [*proto.graph.node, *(node for f in proto.functions for node in f.node)]
    return any(_graph_has(graph) for graph in (proto.graph, *_inner(nodes))) or any(
        _node_has(node) for function in proto.functions for node in function.node
    )


def _graph_has(graph: onnx.GraphProto) -> bool:
    infos = (*graph.input, *graph.output, *graph.value_info)
    return (
        any(_elem(info) == OLD for info in infos)
        or any(tensor.data_type == OLD for tensor in graph.initializer)
        or any(map(_node_has, graph.node))
    )


def _node_has(node: onnx.NodeProto) -> bool:
    return any(a.t.data_type == OLD or (a.name in TYPES and a.i == OLD) for a in node.attribute)


def _inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for node in nodes:
        for inner in subgraphs(node):
            yield inner
            yield from _inner(inner.node)


def _rewrite_graph(graph: onnx.GraphProto) -> None:
    for info in (*graph.input, *graph.output, *graph.value_info):
        if _elem(info) == OLD:
            _tensor_type(info.type).elem_type = NEW
    for tensor in graph.initializer:
        _rewrite_tensor(tensor)
    _rewrite_nodes(graph.node)


def _rewrite_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in TYPES and attribute.i == OLD:
                attribute.i = NEW
            if attribute.HasField("t"):
                _rewrite_tensor(attribute.t)


def _rewrite_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == OLD:
        data = np.asarray(array_of(tensor)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(data, tensor.name))


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """Of a tensor, an optional one or a sequence of them."""
    if kind.HasField("optional_type"):
        return _tensor_type(kind.optional_type.elem_type)
    if kind.HasField("sequence_type"):
        return _tensor_type(kind.sequence_type.elem_type)
    return kind.tensor_type


def _elem(info: onnx.ValueInfoProto) -> int:
    return int(_tensor_type(info.type).elem_type)
