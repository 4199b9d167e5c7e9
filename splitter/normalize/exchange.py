"""ModelProto <-> Draft. Decides nothing: names, attributes and weights pass through unchanged.

Nodes without a name are called OPTYPE_OUTPUT, so that every node can be spoken of. The names of
the original nodes travel through ONNX as node metadata (key `SOURCES`, one a line).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from splitter.draft import Draft, Node, Type
from splitter.model import subgraphs
from splitter.stored import array_of, place_of, refer

SOURCES = "splitter.sources"
MARK = "splitter.mark."
IR_VERSION = 10  # the first with node metadata

Array = NDArray[Any]


def to_draft(proto: onnx.ModelProto) -> Draft:
    """The main graph. Constant nodes and initializers become constants of the draft."""
    graph = proto.graph
    constants = {t.name: array_of(t) for t in graph.initializer}
    constants |= {t.values.name: _dense(t) for t in graph.sparse_initializer}
    domains = {o.domain or "": o.version for o in proto.opset_import}
    domains[""] = domains.pop("ai.onnx", domains.get("", 1))
    inputs = [v.name for v in graph.input if v.name not in constants]
    draft = Draft(inputs, [v.name for v in graph.output], domains[""], domains)
    draft.constants = constants
    for info in (*graph.input, *graph.output):
        if info.name not in constants and info.type.HasField("tensor_type"):
            draft.types[info.name] = type_of(info.type)
    add_nodes(draft, graph.node, "")
    return draft


def add_nodes(draft: Draft, nodes: Iterable[onnx.NodeProto], prefix: str) -> list[Node]:
    """Add the nodes in order; `prefix` goes before the names of nodes (for inlined graphs).

    Returns those added; Constant nodes become constants and are not among them.
    """
    taken = {node.name for node in draft.nodes}
    added = []
    for proto in nodes:
        node = _node(proto, prefix)
        while node.name in taken:
            node.name += "_"
        taken.add(node.name)
        if not node.sources:
            node.sources = (node.name,)
        if node.op == "Constant" and not node.domain:
            draft.constants[node.outputs[0]] = _constant(node)
        else:
            added.append(draft.add(node))
    return added


def type_of(proto: onnx.TypeProto) -> Type:
    tensor = proto.tensor_type
    dtype = dtype_name(tensor.elem_type) if tensor.elem_type else ""
    if not tensor.HasField("shape"):
        return Type(dtype, None)
    return Type(
        dtype,
        tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim),
    )


def dtype_name(elem_type: int) -> str:
    return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)


def elem_type(dtype: str) -> int:
    if dtype in ("object", "str") or dtype.startswith("str"):
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def type_proto(known: Type) -> onnx.TypeProto:
    shape = known.shape if known.shape is None else list(known.shape)
    return onnx.helper.make_tensor_type_proto(elem_type(known.dtype), shape)


def node_proto(node: Node) -> onnx.NodeProto:
    """The node without its marks and sources."""
    proto = onnx.NodeProto(
        op_type=node.op,
        domain=node.domain,
        name=node.name,
        input=node.inputs,
        output=node.outputs,
    )
    for key, value in node.attrs.items():
        proto.attribute.append(_attribute(key, value))
    return proto


def to_proto(draft: Draft, like: onnx.ModelProto) -> onnx.ModelProto:
    """The draft as a model: static types on every value, weights as raw data."""
    proto = onnx.ModelProto(ir_version=max(IR_VERSION, like.ir_version), producer_name="splitter")
    for domain, version in {**draft.domains, "": draft.opset}.items():
        proto.opset_import.add(domain=domain, version=version)
    graph = proto.graph
    graph.name = like.graph.name or "graph"
    for name in draft.inputs:
        graph.input.append(_value_info(name, draft.types[name]))
    for name in draft.outputs:
        graph.output.append(_value_info(name, _known(draft, name)))
    used: dict[str, None] = {}
    for node in draft.nodes:
        graph.node.append(_full_node(node))
        used.update(dict.fromkeys([*node.inputs, *node.captured]))
        for out in node.outputs:
            if out and out not in draft.outputs and draft.types[out].dtype:
                graph.value_info.append(_value_info(out, draft.types[out]))
    used.update(dict.fromkeys(draft.outputs))
    for name in used:
        if name in draft.constants:
            _store(graph.initializer.add(), name, draft.constants[name])
    return proto


def _full_node(node: Node) -> onnx.NodeProto:
    proto = node_proto(node)
    proto.metadata_props.add(key=SOURCES, value="\n".join(node.sources))
    for key, value in node.marks.items():
        proto.metadata_props.add(key=MARK + key, value=value)
    return proto


def _store(tensor: onnx.TensorProto, name: str, data: Array) -> None:
    """Fill a tensor in place: a message that is appended would be copied once more."""
    if data.dtype == object or data.dtype.kind in "US":
        tensor.CopyFrom(tensor_proto(data, name))
        return
    tensor.name = name
    tensor.dims.extend(data.shape)
    tensor.data_type = elem_type(data.dtype.name)
    place = place_of(data)
    if place is not None:
        refer(tensor, *place, data.nbytes)
    else:
        tensor.raw_data = data.tobytes()


def tensor_proto(data: Array, name: str) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(data).reshape(data.shape), name)


def captured(graph: onnx.GraphProto) -> Iterator[str]:
    """Values a subgraph reads from outside."""
    known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        yield from (name for name in node.input if name and name not in known)
        for inner in subgraphs(node):
            yield from (name for name in captured(inner) if name not in known)
        known.update(node.output)
    yield from (v.name for v in graph.output if v.name not in known)


def _known(draft: Draft, name: str) -> Type:
    return draft.types.get(name) or Type(draft.dtype(name), draft.shape(name))


def _value_info(name: str, known: Type) -> onnx.ValueInfoProto:
    return onnx.helper.make_value_info(name, type_proto(known))


def _node(proto: onnx.NodeProto, prefix: str) -> Node:
    outputs = list(proto.output)
    first = next((out for out in outputs if out), "")
    marks = {p.key: p.value for p in proto.metadata_props}
    reads: dict[str, None] = {}
    for inner in subgraphs(proto):
        reads.update(dict.fromkeys(captured(inner)))
    return Node(
        proto.op_type,
        list(proto.input),
        outputs,
        {a.name: _attribute_value(a) for a in proto.attribute},
        prefix + (proto.name or f"{proto.op_type}_{first}"),
        "" if proto.domain == "ai.onnx" else proto.domain,
        tuple(marks[SOURCES].split("\n")) if marks.get(SOURCES) else (),
        tuple(reads),
        {k.removeprefix(MARK): v for k, v in marks.items() if k.startswith(MARK)},
    )


def _attribute_value(attribute: onnx.AttributeProto) -> Any:
    kind = attribute.type
    if kind == onnx.AttributeProto.TENSOR:
        return array_of(attribute.t)
    if kind == onnx.AttributeProto.SPARSE_TENSOR:
        return _dense(attribute.sparse_tensor)
    value = onnx.helper.get_attribute_value(attribute)
    if kind == onnx.AttributeProto.STRING:
        return value.decode("utf-8", "surrogateescape")
    if kind == onnx.AttributeProto.STRINGS:
        return [item.decode("utf-8", "surrogateescape") for item in value]
    if kind in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    return value


def _attribute(key: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        value = tensor_proto(value, "")
    if isinstance(value, list) and not value:
        return onnx.AttributeProto(name=key, type=onnx.AttributeProto.INTS)
    return onnx.helper.make_attribute(key, value)


def _constant(node: Node) -> Array:
    key, value = next(iter(node.attrs.items()))
    if key in ("value", "sparse_value"):
        return np.asarray(value)
    dtype = {"value_float": np.float32, "value_floats": np.float32}.get(key, np.int64)
    if key in ("value_string", "value_strings"):
        return np.asarray(value, dtype=object)
    return np.asarray(value, dtype=dtype)


def _dense(sparse: onnx.SparseTensorProto) -> Array:
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    data = np.zeros(tuple(sparse.dims), dtype=values.dtype)
    if indices.ndim == 1:
        data.reshape(-1)[indices] = values
    else:
        data[tuple(indices.T)] = values
    return data
