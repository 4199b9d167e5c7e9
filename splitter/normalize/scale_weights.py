"""Mul and Add by constants behind a linear operator go into its weights and bias.

Linear operators: MatMul with a constant right side (and its Add), Conv and ConvTranspose. A factor
that is one number also passes Reshape, Transpose, Slice, and the product with another value; one
for each output channel passes Reshapes that keep the last axis. Every step has one reader.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.normalize.arithmetic import constant_side, is_float

SCALAR_PASSES = frozenset(("Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Split"))


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear operator and, for MatMul, the Add of its bias (constant, last axis only)."""

    node: Node
    add: Node | None

    @property
    def out(self) -> str:
        return (self.add or self.node).outputs[0]


Found = tuple[Linear, list[str]]  # and the values from it to the reader, which all change


def scale_weights(draft: Draft) -> None:
    """Until nothing moves: a fold can bring the next constant next to the weights."""
    moved = True
    while moved:
        moved = False
        for node in draft.nodes:
            if draft.alive(node) and node.op in ("Mul", "Add") and not node.domain:
                moved |= _fold(draft, node)
    draft.prune()


def linear_of(draft: Draft, value: str) -> Linear | None:
    """The linear operator that makes the value, when the value is all that is read of it."""
    node = draft.producer.get(value)
    add = None
    if node is not None and node.op == "Add" and (side := constant_side(draft, node)) is not None:
        inner = node.inputs[1 - side[0]]
        maker = draft.producer.get(inner)
        if maker is None or maker.op != "MatMul" or draft.only_user(inner) is not node:
            return None
        if draft.shape(inner) != draft.shape(value) or not _last_axis(draft, value, side[1]):
            return None
        node, add = maker, node
    if node is None or node.domain:
        return None
    weight = draft.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if weight is None or not is_float(draft, value):
        return None
    if node.op == "MatMul" and weight.ndim == 2 and draft.constant(node.inputs[0]) is None:
        return Linear(node, add)
    if node.op in ("Conv", "ConvTranspose") and (
        not node.input(2) or draft.constant(node.input(2)) is not None
    ):
        return Linear(node, None)
    return None


def _last_axis(draft: Draft, value: str, data: Array) -> bool:
    return data.size == 1 or (data.size == data.shape[-1] == (draft.shape(value) or (0,))[-1])


def _fold(draft: Draft, node: Node) -> bool:
    side = constant_side(draft, node)
    if side is None or draft.shape(node.outputs[0]) != draft.shape(node.inputs[1 - side[0]]):
        return False
    index, data = side
    value = node.inputs[1 - index]
    find = _reach if node.op == "Mul" and data.size == 1 else _reach_channels
    found = find(draft, value, node)
    if found is None:
        return False
    linear, between = found
    if node.op == "Add" and linear.node.op == "MatMul" and linear.add is None:
        return False
    vector = _per_channel(draft, linear, node, data)
    if vector is None:
        return False
    if node.op == "Mul":
        scale_linear(draft, linear, vector)
    else:
        shift_linear(draft, linear, vector)
    linear.node.sources = tuple(dict.fromkeys((*linear.node.sources, *node.sources)))
    if linear.add is not None and node.op == "Mul":
        between = [linear.node.outputs[0], *between]
    draft.absorb(node, value)
    for changed in between:
        if changed != value:
            draft.rename(changed)
    return True


def _reach(draft: Draft, value: str, reader: Node) -> Found | None:
    """Walk back from a scalar factor to the linear operator it may move into."""
    between: list[str] = []
    for _ in range(16):
        if draft.only_user(value) is not reader:
            return None
        between.append(value)
        linear = linear_of(draft, value)
        if linear is not None:
            return linear, between
        maker = draft.producer.get(value)
        if maker is None or maker.domain:
            return None
        if maker.op in SCALAR_PASSES and len(maker.outputs) == 1:
            value, reader = maker.inputs[0], maker
        elif maker.op == "Mul" and constant_side(draft, maker) is None:
            sides = [_reach(draft, v, maker) for v in maker.inputs]
            found = next((f for f in sides if f is not None), None)
            return None if found is None else (found[0], [*found[1], *between])
        else:
            return None
    return None


def _reach_channels(draft: Draft, value: str, reader: Node) -> Found | None:
    between: list[str] = []
    while True:
        if draft.only_user(value) is not reader:
            return None
        between.append(value)
        linear = linear_of(draft, value)
        if linear is not None:
            return linear, between
        maker = draft.producer.get(value)
        if maker is None or maker.op != "Reshape" or maker.domain:
            return None
        before, after = draft.shape(maker.inputs[0]), draft.shape(value)
        if not before or not after or before[-1] != after[-1]:
            return None
        value, reader = maker.inputs[0], maker


def _per_channel(draft: Draft, linear: Linear, node: Node, data: Array) -> Array | None:
    """The constant as one number for each output channel; None when it varies elsewhere."""
    shape = draft.shape(node.outputs[0]) or ()
    channels = _channels(draft, linear)
    if data.size == 1:
        return np.full(channels, data.reshape(-1)[0], np.float64)
    convolution = linear.node.op != "MatMul"
    if convolution and draft.shape(linear.out) != shape:
        return None
    axis = 1 if convolution else len(shape) - 1
    full = data.reshape((1,) * (len(shape) - data.ndim) + data.shape)
    if full.ndim != len(shape) or full.shape[axis] != channels or full.size != channels:
        return None
    return full.reshape(-1).astype(np.float64)


def _channels(draft: Draft, linear: Linear) -> int:
    weight = draft.constants[linear.node.inputs[1]]
    if linear.node.op == "MatMul":
        return int(weight.shape[1])
    if linear.node.op == "Conv":
        return int(weight.shape[0])
    return int(weight.shape[1]) * int(linear.node.attrs.get("group", 1))


def scale_linear(draft: Draft, linear: Linear, vector: Array) -> None:
    """Multiply every output channel: weights and bias."""
    node = linear.node
    weight = draft.constants[node.inputs[1]]
    wide = weight.astype(np.float64)
    if node.op == "MatMul":
        scaled = wide * vector
    elif node.op == "Conv":
        scaled = wide * vector.reshape((-1,) + (1,) * (weight.ndim - 1))
    else:
        group = int(node.attrs.get("group", 1))
        parts = wide.reshape((group, -1, *weight.shape[1:]))
        factor = vector.reshape((group, 1, -1) + (1,) * (weight.ndim - 2))
        scaled = (parts * factor).reshape(weight.shape)
    name = draft.constant_of(scaled.astype(weight.dtype), node.inputs[1].split("~")[0])
    draft.set_input(node, 1, name)
    _change_bias(draft, linear, lambda bias: bias * vector)


def shift_linear(draft: Draft, linear: Linear, vector: Array) -> None:
    """Add to every output channel."""
    node = linear.node
    if node.op != "MatMul" and not node.input(2):
        dtype = draft.constants[node.inputs[1]].dtype
        zero = draft.constant_of(np.zeros(len(vector), dtype), f"{node.name}/bias")
        draft.set_inputs(node, [*node.inputs[:2], zero])
    _change_bias(draft, linear, lambda bias: bias + vector)


def _change_bias(draft: Draft, linear: Linear, change: object) -> None:
    node = linear.node if linear.node.op != "MatMul" else linear.add
    if node is None:
        return
    index = 2
    if linear.add is not None:
        side = constant_side(draft, linear.add)
        assert side is not None  # that is how the Add was found
        index = side[0]
    elif not node.input(2):
        return
    old = draft.constants[node.inputs[index]]
    new = change(np.broadcast_to(old.reshape(-1), (_channels(draft, linear),)).astype(np.float64))  # type: ignore[operator]
    name = draft.constant_of(new.astype(old.dtype), node.inputs[index].split("~")[0])
    draft.set_input(node, index, name)
