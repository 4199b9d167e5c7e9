"""What no TFLite operator can do, and all that follows from it, as an ONNX part for ONNX Runtime.

Decides where a model ends for TFLite and what the ONNX part behind it holds. It is cut out of the
file's own operators, in its own opset, so that an older ONNX Runtime takes it; what folds to a
constant once shapes are known (a chain of Shape, Gather, Concat) is a constant in it. The part is
float. Where values enter it from the integer parts, the glue dequantizes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from splitter.diagnostics import SplitterError
from splitter.draft import Draft
from splitter.model import Model, ending_at
from splitter.normalize import opened
from splitter.normalize.exchange import captured, tensor_proto, type_of, type_proto
from splitter.normalize.frontier import frontier
from splitter.normalize.functions import inline_functions
from splitter.normalize.static import Obstacle, is_static, listed, obstacles

Shape = tuple[int | None, ...] | None

MOST = 64
"""Values that the TFLite parts may hand on, at most: with more there is no cut worth the name."""


@dataclass(frozen=True, slots=True)
class Port:
    """A value at the border of the ONNX part; a length is None where data decides it."""

    name: str
    dtype: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Cause:
    """An operator without a TFLite form, by the name of its node, and why."""

    op: str
    node: str
    why: str


@dataclass(frozen=True)
class Remainder:
    """The ONNX part behind the TFLite parts.

    inputs: values the TFLite parts make, and model inputs. outputs: what it makes of the model's
    outputs. results: all outputs of the model in their order. whole: the model it was cut from.
    causes: the operators that have no TFLite form; the others come after them.
    """

    proto: onnx.ModelProto
    whole: Model
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    results: tuple[str, ...]
    causes: tuple[Cause, ...]

    @property
    def operators(self) -> int:
        return len(self.proto.graph.node)


def split_off(
    model: Model, *, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Model, Remainder | None]:
    """The model up to where TFLite can go, and the rest; (model, None) when it can go to the end.

    Errors: SplitterError when nothing is left for TFLite, or no few values lie between.
    """
    draft = opened(model, shapes=shapes)
    causes = obstacles(draft)
    if not causes:
        return model, None
    makers = model.makers
    ends = frontier(
        draft,
        [cause.node for cause in causes],
        lambda name: name in makers and is_static(draft, name),
    )
    if not 0 < len(ends) <= MOST:
        raise SplitterError(
            f"nothing comes before what has no TFLite form: {listed(causes)}",
            where="--cpu-runtime",
            hint="ONNX Runtime runs the whole file as it is; there is nothing to split",
        )
    return ending_at(model, ends), _behind(model, draft, ends, causes)


def _behind(
    model: Model, draft: Draft, ends: Sequence[str], causes: Sequence[Obstacle]
) -> Remainder:
    source = inline_functions(model.proto)
    own = [info for info in source.graph.output if info.name not in ends]
    proto = _cut(source, draft, ends, [info.name for info in own])
    proto.graph.output.extend(own)
    return Remainder(
        proto=proto,
        whole=replace(model, proto=source),
        inputs=tuple(_port(info) for info in proto.graph.input),
        outputs=tuple(_port(info) for info in own),
        results=tuple(info.name for info in source.graph.output),
        causes=tuple(Cause(c.node.op, c.node.name, c.why) for c in causes),
    )


def _cut(
    source: onnx.ModelProto, draft: Draft, ends: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    """The operators between `ends` and `outputs`, without declared outputs."""
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
            proto.graph.initializer.append(weights[name])
        elif (constant := _constant(draft, makers[name], name)) is not None:
            proto.graph.initializer.append(constant)
        else:
            kept.add(name)
            stack.extend(_reads(makers[name]))
    proto.graph.node.extend(node for node in graph.node if kept.intersection(node.output))
    for name in [*ends, *draft.inputs]:
        if name in seen and name in given:
            proto.graph.input.append(
                onnx.helper.make_value_info(name, type_proto(draft.types[name]))
            )
    return proto


def _constant(draft: Draft, node: onnx.NodeProto, name: str) -> onnx.TensorProto | None:
    """The value as a tensor, where it is known once shapes are."""
    data = draft.constants.get(name)
    if data is None and node.op_type == "Shape" and not node.attribute:
        shape = draft.shape(node.input[0])
        data = None if shape is None else np.asarray(shape, np.int64)
    return None if data is None else tensor_proto(data, name)


def _reads(node: onnx.NodeProto) -> list[str]:
    reads = list(node.input)
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            reads.extend(captured(inner))
    return reads


def _port(info: onnx.ValueInfoProto) -> Port:
    known = type_of(info.type)
    return Port(info.name, known.dtype, known.shape)
