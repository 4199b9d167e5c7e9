"""Computes what is constant and finds the static shape of every value, in one walk.

One walk in topological order: a node whose inputs are constant is computed, Shape of a static value
is a constant, If with a constant condition is its branch, a Loop is its turns; for the others
ONNX's own inference of that operator gives the types. So a chain Shape -> Gather -> Concat ->
Reshape is resolved as met.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import onnx
from onnx import shape_inference

from splitter.draft import Draft, Node, Type
from splitter.normalize.evaluate import evaluate
from splitter.normalize.exchange import (
    dtype_name,
    node_proto,
    tensor_proto,
    type_of,
    type_proto,
)
from splitter.normalize.inline import inline
from splitter.normalize.loops import PROGRESS, open_loop, open_scan
from splitter.normalize.sequences import RULES as SEQUENCE_RULES
from splitter.normalize.sequences import open_sequence

GROWTH = 8  # a constant may be this many times its inputs,
FREE = 1 << 20  # or this many bytes, before it stays an operator;
FREE_INDEX = 1 << 26  # of integers, which are places to read and write: later passes look at them
LIKE_INPUT = frozenset(("GroupNormalization",))  # ONNX's inference does not know its output
DECIDE_LENGTHS = frozenset(("NonZero", "NonMaxSuppression", "Unique", "Compress", "Loop", "Scan"))
"""Operators of which data decides how much they give."""
SELECTS = "selects"
"""The mark of a Where that stands for an If: it takes one or the other, and broadcasts neither."""
SMALL = 1024  # elements of a constant that shape inference may want to read


def fold_constants(draft: Draft) -> None:
    """Fold and infer. Values that stay dynamic have no static type afterwards."""
    settled: set[Node] = set()
    while _walk(draft, settled):
        pass
    draft.prune()


def _walk(draft: Draft, settled: set[Node]) -> bool:
    """Up to the first node that is replaced by others, whose order is not known yet."""
    for node in draft.nodes:
        if node in settled or not draft.alive(node):
            continue
        rule = OPENED.get(node.op) if not node.domain else None
        if rule is not None and rule(draft, node):
            return True
        if not fold_node(draft, node):
            infer(draft, node)
        settled.add(node)
    return False


def infer(draft: Draft, node: Node) -> None:
    """Set the types of the node's outputs from ONNX's inference for this one operator.

    What it has against the operator on these inputs is in `draft.rejected`.
    """
    if node.op in LIKE_INPUT and not node.domain and node.inputs[0] in draft.types:
        draft.types[node.outputs[0]] = draft.types[node.inputs[0]]
        return
    if SELECTS in node.marks:
        _infer_selected(draft, node)
        return
    if not onnx.defs.has(node.op, node.domain) or PROGRESS in node.attrs:
        return  # a Loop some of whose turns are written has no ONNX form; its types stay
    version = draft.domains.get(node.domain, 1) if node.domain else draft.opset
    schema = onnx.defs.get_schema(node.op, version, node.domain)
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name in dict.fromkeys(node.inputs):
        constant = draft.constants.get(name)
        known = draft.types.get(name)
        if constant is not None:
            types[name] = type_proto(Type(constant.dtype.name, constant.shape))
            if constant.size <= SMALL:
                data[name] = tensor_proto(constant, name)
        elif known is not None and known.dtype:
            types[name] = type_proto(known)
    if any(name and name not in types for name in node.inputs):
        return  # the type of an input is not known yet
    imports = [
        onnx.helper.make_opsetid(d, v) for d, v in {**draft.domains, "": draft.opset}.items()
    ]
    try:
        found = shape_inference.infer_node_outputs(
            schema, node_proto(node), types, data, opset_imports=imports
        )
    except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        draft.rejected[node] = _said(error)
        return
    except RuntimeError:
        return
    draft.rejected.pop(node, None)
    for name, proto in found.items():
        if name and proto.HasField("tensor_type"):
            draft.types[name] = type_of(proto)
    if node.op == "Resize" and not node.domain:
        _scaled(draft, node)


def _scaled(draft: Draft, node: Node) -> None:
    """The lengths that scales give, by a product of float32 as ONNX Runtime has it: 20 x 2.05 is
    41, and 40 in ONNX's own inference (onnxruntime/core/providers/cpu/tensor/upsamplebase.h)."""
    scales = draft.constants.get(node.input(2)) if node.input(2) else None
    source = draft.shape(node.inputs[0])
    if scales is None or not scales.size or source is None:
        return
    lengths = list(source)
    for axis, scale in zip(node.attrs.get("axes") or range(len(source)), scales, strict=True):
        lengths[axis] = int(np.float32(source[axis]) * np.float32(scale))
    draft.types[node.outputs[0]] = Type(draft.dtype(node.inputs[0]), tuple(lengths))


def _said(error: Exception) -> str:
    """Without the kind of error that ONNX writes before it."""
    return re.sub(r"\[\w+Error\] ", "", str(error)).strip()


def _infer_selected(draft: Draft, node: Node) -> None:
    """No shape where the branches cannot be known to have the same: data decides it."""
    one, other = draft.known(node.inputs[1]), draft.known(node.inputs[2])
    if one is not None and other is not None and one.dtype == other.dtype:
        draft.types[node.outputs[0]] = Type(one.dtype, agreed(draft, *node.inputs[1:]))


def agreed(draft: Draft, a: str, b: str) -> tuple[int | None, ...] | None:
    """The shape of two values of which either may be taken; None where they do not agree.

    A length that inference alone does not know is the other's, unless data decides it.
    """
    one, other = draft.known(a), draft.known(b)
    if one is None or other is None or one.shape is None or other.shape is None:
        return None
    if one.shape == other.shape:
        return one.shape
    if len(one.shape) != len(other.shape) or _by_data(draft, a) or _by_data(draft, b):
        return None
    lengths: list[int | None] = []
    for pair in zip(one.shape, other.shape, strict=True):
        known = {length for length in pair if length is not None}
        if len(known) > 1 or 0 in known:
            return None
        lengths.append(known.pop() if known else None)
    return tuple(lengths)


def _by_data(draft: Draft, value: str) -> bool:
    """Whether the numbers, not the shapes, of something decide how much of the value there is."""
    waiting, seen = [value], set[str]()
    while waiting:
        node = draft.producer.get(waiting.pop())
        if node is not None and node.outputs[0] not in seen:
            if node.op in DECIDE_LENGTHS:
                return True
            seen.add(node.outputs[0])
            waiting += [name for name in node.inputs if name]
    return False


def fold_node(draft: Draft, node: Node) -> bool:
    """Make a node the constants it computes; whether it could be."""
    if node.op in ("Shape", "Size") and not node.domain:
        return _fold_shape(draft, node)
    if any(name and name not in draft.constants for name in node.inputs) or node.captured:
        return False
    if _too_large(draft, node):
        _as_expand(draft, node)
        return False
    values = evaluate(draft, node)
    if values is None:
        return False
    draft.make_constant(node, {n: v for n, v in zip(node.outputs, values, strict=True) if n})
    return True


def _fold_shape(draft: Draft, node: Node) -> bool:
    shape = draft.shape(node.inputs[0])
    if shape is None:
        return False
    if node.op == "Size":
        data = np.asarray(int(np.prod(shape, dtype=np.int64)), np.int64)
    else:
        data = np.asarray(shape[node.attrs.get("start", 0) : node.attrs.get("end")], np.int64)
    draft.make_constant(node, {node.outputs[0]: data})
    return True


def _too_large(draft: Draft, node: Node) -> bool:
    """Whether the constant would be many times what it is computed from."""
    infer(draft, node)
    have = sum(draft.constants[n].nbytes for n in node.inputs if n)
    need, free = 0, FREE_INDEX
    for name in node.outputs:
        shape = draft.shape(name)
        if name and shape is not None and draft.types[name].dtype:
            dtype = np.dtype(draft.types[name].dtype)
            need += int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            free = free if dtype.kind in "iu" else FREE
    return need > max(free, GROWTH * have)


def _as_expand(draft: Draft, node: Node) -> None:
    """ConstantOfShape that stays is the Expand of one number: then all that stay have one form."""
    if node.op != "ConstantOfShape":
        return
    value = np.asarray(node.attrs.get("value", np.zeros(1, np.float32))).reshape(-1)[:1]
    node.op, node.attrs = "Expand", {}
    rank = draft.constants[node.inputs[0]].size
    name = draft.constant_of(value.reshape((1,) * rank), f"{node.name}/value")
    draft.set_inputs(node, [name, node.inputs[0]])


def _take_branch(draft: Draft, node: Node) -> bool:
    condition = draft.scalar(node.inputs[0])
    if condition is None:
        return False
    graph = node.attrs["then_branch" if condition else "else_branch"]
    draft.remove(node)
    for out, inner in zip(node.outputs, inline(draft, graph, f"{node.name}/"), strict=True):
        if out:
            draft.types.pop(out, None)
            draft.replace(out, inner)
    return True


OPENED: dict[str, Callable[[Draft, Node], bool]] = {
    "If": _take_branch,
    "Loop": open_loop,
    "Scan": open_scan,
    **dict.fromkeys(SEQUENCE_RULES, open_sequence),
}
"""Operators that are replaced by others when what they hang on is known."""

__all__ = ["SELECTS", "agreed", "dtype_name", "fold_constants", "fold_node", "infer"]
