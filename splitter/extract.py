"""A part of an ONNX model as a model: the file's own operators between values, in its own opset.

Decides nothing. What folds to a constant once shapes are known (a chain of Shape, Gather, Concat)
is a constant in the part, so that it does not read what comes before its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from splitter.draft import Draft
from splitter.model import subgraphs
from splitter.normalize.exchange import captured, tensor_proto, type_proto
from splitter.stored import inlined


def extract(
    source: onnx.ModelProto, draft: Draft, ends: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    """The operators between `ends` and `outputs`, without declared outputs.

    source: without functions. draft: the same model as `normalize.opened` gives it.
    """
    graph = source.graph
    makers = {out: node for node in graph.node for out in node.output if out}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    given = set(ends) | {info.name for info in graph.input if info.name not in weights}
    proto = onnx.ModelProto(ir_version=source.ir_version, producer_name="splitter")
    proto.opset_import.extend(source.opset_import)
    proto.graph.name = graph.name or "graph"
    seen: set[str] = set()
    kept: set[str] = set()
    stack = list(outputs)
    while stack:
        name = stack.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        if name in given:
            continue
        if name in weights:
            proto.graph.initializer.append(inlined(weights[name]))
        elif (constant := _constant(draft, makers[name], name)) is not None:
            proto.graph.initializer.append(constant)
        else:
            kept.add(name)
            stack.extend(_reads(makers[name]))
    proto.graph.node.extend(node for node in graph.node if kept.intersection(node.output))
    _name(proto.graph.node)
    for name in dict.fromkeys([*ends, *draft.inputs]):
        if name in seen and name in given:
            proto.graph.input.append(
                onnx.helper.make_value_info(name, type_proto(draft.types[name]))
            )
    return proto


def _name(nodes: Sequence[onnx.NodeProto]) -> None:
    """As refusals do (`normalize.exchange`), so that ONNX Runtime's errors name the node too."""
    for node in nodes:
        node.name = node.name or f"{node.op_type}_{next(filter(None, node.output))}"


def _constant(draft: Draft, node: onnx.NodeProto, name: str) -> onnx.TensorProto | None:
    """The value as a tensor, where it is known once shapes are."""
    data = draft.constants.get(name)
    if data is None and node.op_type == "Shape" and not node.attribute:
        shape = draft.shape(node.input[0])
        data = None if shape is None else np.asarray(shape, np.int64)
    return None if data is None else tensor_proto(data, name)


def _reads(node: onnx.NodeProto) -> list[str]:
    reads = list(node.input)
    for inner in subgraphs(node):
        reads.extend(captured(inner))
    return reads
