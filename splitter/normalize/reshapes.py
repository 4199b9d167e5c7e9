"""Moves Reshapes past operators that look at the last axis only, where two then become one.

Window attention folds windows into the batch before its projections and splits heads behind them:
the first Reshape moves down to the second. Behind the projection the same happens upwards.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.arithmetic import constant_side

UNARY = frozenset(
    ("Relu", "Gelu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Neg", "Abs", "HardSwish", "HardSigmoid",
     "Clip", "Erf", "Elu", "LeakyRelu", "Mish", "Softplus", "Cast")
)  # fmt: skip
BINARY = frozenset(("Add", "Mul"))


def move_reshapes(draft: Draft) -> None:
    for node in draft.nodes:
        movable = node.op == "Reshape" and not node.domain and draft.alive(node)
        if movable and not _sink(draft, node):
            _hoist(draft, node)
    draft.prune()


def _sink(draft: Draft, reshape: Node) -> bool:
    """Past all its readers, when every path behind it ends in a Reshape."""
    source, out = reshape.inputs[0], reshape.outputs[0]
    before, after = draft.shape(source), draft.shape(out)
    if before is None or not _keeps_last(before, after) or source in draft.constants:
        return False
    inner = _until_reshapes(draft, out)
    if not inner:
        return False
    for node in draft.users(out):
        for index, value in enumerate(node.inputs):
            if value == out:
                draft.set_input(node, index, source)
        node.sources = tuple(dict.fromkeys((*reshape.sources, *node.sources)))
    for node in inner:
        _retype(draft, node, before[:-1])
    return True


def _until_reshapes(draft: Draft, value: str) -> list[Node] | None:
    """The nodes between a value and the Reshapes behind it; None when a path ends otherwise."""
    users = draft.users(value)
    if draft.pinned(value) or not users:
        return None
    inner: list[Node] = []
    for user in users:
        if user.op == "Reshape" and not user.domain:
            continue
        behind = _until_reshapes(draft, user.outputs[0]) if _pointwise(draft, user, value) else None
        if behind is None:
            return None
        inner += [user, *behind]
    return inner


def _hoist(draft: Draft, reshape: Node) -> bool:
    """Before the operators in front of it, up to the Reshape there."""
    before, after = draft.shape(reshape.inputs[0]), draft.shape(reshape.outputs[0])
    if not _keeps_last(before, after) or after is None:
        return False
    chain: list[Node] = []
    value, reader = reshape.inputs[0], reshape
    while draft.only_user(value) is reader:
        maker = draft.producer.get(value)
        if maker is None or maker.domain:
            return False
        if maker.op == "Reshape":
            if not chain:
                return False
            _retarget(draft, maker, after[:-1])
            for node in reversed(chain):
                _retype(draft, node, after[:-1])
            draft.absorb(reshape, reshape.inputs[0])
            return True
        data = _data(draft, maker)
        if data is None or not _pointwise(draft, maker, data):
            return False
        chain.append(maker)
        value, reader = data, maker
    return False


def _data(draft: Draft, node: Node) -> str | None:
    variable = [v for v in node.inputs if v and v not in draft.constants]
    return variable[0] if len(variable) == 1 and len(node.outputs) == 1 else None


def _keeps_last(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> bool:
    return bool(before and after and before[-1] == after[-1] and 2 <= len(before) <= 4)


def _pointwise(draft: Draft, node: Node, value: str) -> bool:
    """Whether the node treats every row along the last axis of the value by itself."""
    if node.domain or _data(draft, node) != value:
        return False
    rank = draft.rank(value) or 0
    if node.op in UNARY:
        return True
    if node.op in BINARY:
        side = constant_side(draft, node)
        if side is None or draft.shape(node.outputs[0]) != draft.shape(value):
            return False
        return side[1].size == 1 or side[1].size == side[1].shape[-1]
    if node.op == "MatMul":
        weight = draft.constant(node.inputs[1])
        return weight is not None and weight.ndim == 2
    if node.op in ("LayerNormalization", "RMSNormalization"):
        return bool(node.attrs.get("axis", -1) % rank == rank - 1)
    return node.op == "Softmax" and node.attrs.get("axis", -1) % rank == rank - 1


def _retype(draft: Draft, node: Node, lead: tuple[int, ...]) -> None:
    """The node's output has other leading axes now, so another name."""
    out = node.outputs[0]
    known = draft.types[out]
    last = (known.shape or (1,))[-1]
    for index, value in enumerate(node.inputs):
        data = draft.constant(value)
        if node.op in BINARY and data is not None and data.ndim > 1:
            draft.set_input(node, index, draft.constant_of(data.reshape(-1), value))
    if "axis" in node.attrs:
        node.attrs = {**node.attrs, "axis": -1}
    name = draft.rename(out)
    draft.types[name] = Type(known.dtype, (*lead, last))


def _retarget(draft: Draft, reshape: Node, lead: tuple[int, ...]) -> None:
    out = reshape.outputs[0]
    known = draft.types[out]
    shape = (*lead, (known.shape or (1,))[-1])
    target = draft.constant_of(np.asarray(shape, np.int64), f"{reshape.name}/shape")
    draft.set_inputs(reshape, [reshape.inputs[0], target])
    reshape.attrs = {}
    name = draft.rename(out)
    draft.types[name] = Type(known.dtype, shape)
