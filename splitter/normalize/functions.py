"""Puts the bodies of the model's own functions where they are called.

onnx's inliner passes the whole model through its C++ side, so the weights stay behind meanwhile.
It leaves out attributes that a call does not give and the function has a default for (seen in
onnx 1.23), so these are written into the calls first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import inliner

from splitter.model import subgraphs

KEPT = 1024  # bytes; smaller tensors may steer the inlining and cost nothing


def inline_functions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions; the given one when it has none. It is not changed."""
    if not proto.functions:
        return proto
    bare = onnx.ModelProto(ir_version=proto.ir_version)
    bare.opset_import.extend(proto.opset_import)
    bare.functions.extend(proto.functions)
    graph = bare.graph
    graph.name = proto.graph.name
    graph.node.extend(proto.graph.node)
    graph.input.extend(proto.graph.input)
    graph.output.extend(proto.graph.output)
    declared = {value.name for value in graph.input}
    for tensor in proto.graph.initializer:
        if tensor.ByteSize() <= KEPT:
            graph.initializer.append(tensor)
        elif tensor.name not in declared:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    defaults = {(f.domain, f.name): list(f.attribute_proto) for f in bare.functions}
    for nodes in (graph.node, *(f.node for f in bare.functions)):
        _fill_defaults(nodes, defaults)
    result = inliner.inline_local_functions(bare)
    del result.graph.input[:], result.graph.initializer[:]
    result.graph.input.extend(proto.graph.input)
    result.graph.initializer.extend(proto.graph.initializer)
    result.graph.sparse_initializer.extend(proto.graph.sparse_initializer)
    return result


def _fill_defaults(
    nodes: Iterable[onnx.NodeProto],
    defaults: Mapping[tuple[str, str], Sequence[onnx.AttributeProto]],
) -> None:
    for node in nodes:
        given = {attribute.name for attribute in node.attribute}
        for default in defaults.get((node.domain, node.op_type), ()):
            if default.name not in given:
                node.attribute.append(default)
        for inner in subgraphs(node):
            _fill_defaults(inner.node, defaults)
