"""Units of several nodes: MatMul with weights (and bias) is FullyConnected; fused activations."""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node

ACTIVATED = frozenset(
    ("Conv", "ConvTranspose", "FullyConnected", "Add", "Sub", "Mul", "MaxPool", "AveragePool")
)


def fuse_units(draft: Draft) -> None:
    """MatMul (+ Add) -> FullyConnected, Conv + Add of a bias, then activations."""
    for node in draft.nodes:
        if draft.alive(node) and node.op == "MatMul":
            _fully_connected(draft, node)
    for node in draft.nodes:
        if draft.alive(node) and node.op in ("Add", "Sub", "Mul"):
            node.attrs = {"activation": ""}
    for node in draft.nodes:
        if draft.alive(node) and (name := activation(node)):
            _activate(draft, node, name)
    draft.prune()


def activation(node: Node) -> str:
    """The TFLite activation this unit is, or ""."""
    if node.op == "Relu":
        return "RELU"
    if node.op != "Clip":
        return ""
    bounds = (node.attrs["min"], node.attrs["max"])
    known = {(0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, None): "RELU"}
    return known.get(bounds, "")


def _fully_connected(draft: Draft, node: Node) -> None:
    left, right = node.inputs
    weight = draft.constant(right)
    if weight is None or draft.constant(left) is not None or (draft.rank(left) or 0) < 2:
        return
    if weight.ndim < 2 or any(d != 1 for d in weight.shape[:-2]):
        return
    if weight.ndim > (draft.rank(left) or 0):
        return
    matrix = weight.reshape(weight.shape[-2:]).T
    name = f"{right}/transposed"
    draft.constants.setdefault(name, matrix)
    node.op, node.attrs = "FullyConnected", {"activation": ""}
    draft.set_inputs(node, [left, name])
    _bias(draft, node)


def _bias(draft: Draft, node: Node) -> None:
    add = draft.only_user(node.outputs[0])
    if add is None or add.op != "Add":
        return
    other = add.inputs[1] if add.inputs[0] == node.outputs[0] else add.inputs[0]
    bias = draft.constant(other)
    units = draft.constants[node.inputs[1]].shape[0]
    if bias is None or bias.size not in (1, units) or bias.shape[-1:] not in ((units,), (1,), ()):
        return
    if draft.shape(add.outputs[0]) != draft.shape(node.outputs[0]):
        return
    if bias.shape != (units,):
        other = draft.constant_of(np.broadcast_to(bias.reshape(-1), (units,)).copy(), other)
    draft.set_inputs(node, [*node.inputs[:2], other])
    _take_output(draft, node, add)


def _activate(draft: Draft, node: Node, name: str) -> None:
    maker = draft.producer.get(node.inputs[0])
    if maker is None or maker.op not in ACTIVATED or maker.attrs.get("activation"):
        return
    if draft.only_user(node.inputs[0]) is not node or draft.dtype(node.inputs[0]) != "float32":
        return
    maker.attrs = {**maker.attrs, "activation": name}
    _take_output(draft, maker, node)


def _take_output(draft: Draft, node: Node, last: Node) -> None:
    """`node` now makes what `last` made."""
    out, known = last.outputs[0], draft.types[last.outputs[0]]
    inputs, attrs, sources = node.inputs, node.attrs, (*node.sources, *last.sources)
    draft.remove(last)
    draft.remove(node)
    node.inputs, node.outputs, node.attrs = list(inputs), [out], attrs
    node.sources = tuple(dict.fromkeys(sources))
    draft.add(node, [known])
