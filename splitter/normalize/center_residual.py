"""Makes residual streams that only LayerNormalizations read have mean zero over the channels.

LN(x) = LN(x - mean(x)), so when every reader of a stream is a LayerNormalization over the channels,
the mean may be taken out where the stream is made: out of the columns of the weights, the biases
and the constants that are added. Then the mean need not be computed at run time, and 8-bit values
do not spend their range on it. Exact in float.

A stream: values joined by Add, Concat, Slice, Split, Pad, Tile, Expand, Gather, Reshape, Transpose
that keep the channel axis whole. Made only by MatMul and Conv weights, constants, and
LayerNormalizations without scale and bias (their output has mean zero already). The norms that read
it get the mark "centered".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from splitter.draft import Array, Draft, Node

Spot = tuple[str, int]  # a value and its channel axis


@dataclass
class _Stream:
    """What one flood found. `broken`: something in it forbids centering."""

    spots: dict[str, int] = field(default_factory=dict)
    makers: list[tuple[Node, int]] = field(default_factory=list)
    constants: list[tuple[Node, int, int]] = field(default_factory=list)
    norms: list[Node] = field(default_factory=list)
    broken: bool = False


def center_residual(draft: Draft) -> None:
    """Center every stream that allows it."""
    done: set[Node] = set()
    for node in draft.nodes:
        if node.op != "LayerNormalization" or node.domain or node in done:
            continue
        rank = draft.rank(node.inputs[0])
        if rank is None or node.attrs.get("axis", -1) % rank != rank - 1:
            continue
        stream = _flood(draft, (node.inputs[0], rank - 1))
        done.update(stream.norms)
        if not stream.broken and (stream.makers or stream.constants):
            _center(draft, stream)
    draft.prune()


def _flood(draft: Draft, start: Spot) -> _Stream:
    stream = _Stream()
    queue = [start]
    while queue:
        value, axis = queue.pop()
        if stream.spots.setdefault(value, axis) != axis or draft.pinned(value):
            stream.broken = True
        if stream.broken:
            return stream
        for spot in (
            *_behind(draft, stream, value, axis),
            *_ahead(draft, stream, value, axis),
        ):
            if spot[0] not in stream.spots:
                queue.append(spot)
            elif stream.spots[spot[0]] != spot[1]:
                stream.broken = True
    return stream


def _behind(draft: Draft, stream: _Stream, value: str, axis: int) -> list[Spot]:
    """How the value is made: variable inputs in the stream; weights and constants are noted."""
    node = draft.producer.get(value)
    if node is None or node.domain:
        stream.broken = True
        return []
    if _is_maker(draft, node, value, axis):
        if (node, axis) not in stream.makers:
            stream.makers.append((node, axis))
        return []
    if node.op == "LayerNormalization" and _is_plain(draft, node, axis):
        return []
    rule = _INSIDE.get(node.op)
    spots = rule(draft, node, axis) if rule else None
    if spots is None:
        stream.broken = True
        return []
    result: list[Spot] = []
    for index, name, where in spots:
        data = draft.constant(name)
        if data is None:
            result.append((name, where))
        elif (node, index, where) not in stream.constants:
            stream.constants.append((node, index, where))
    return result


def _ahead(draft: Draft, stream: _Stream, value: str, axis: int) -> list[Spot]:
    """Who reads the value: norms, or nodes whose output is then in the stream."""
    result: list[Spot] = []
    for node in draft.users(value):
        rank = draft.rank(value) or 0
        if node.op == "LayerNormalization" and node.inputs[0] == value and not node.domain:
            if node.attrs.get("axis", -1) % rank != rank - 1 or axis != rank - 1:
                stream.broken = True
            elif node not in stream.norms:
                stream.norms.append(node)
            continue
        rule = _INSIDE.get(node.op) if not node.domain else None
        moved = _forward(draft, node, value, axis) if rule else None
        if moved is None:
            stream.broken = True
            continue
        result.extend((out, moved) for out in node.outputs if out)
    return result


def _forward(draft: Draft, node: Node, value: str, axis: int) -> int | None:
    """The channel axis of the node's outputs, the one that leads back to this input and axis."""
    rank = draft.rank(node.outputs[0]) or 0
    for candidate in range(rank):
        spots = _INSIDE[node.op](draft, node, candidate)
        if spots and any(name == value and where == axis for _, name, where in spots):
            return candidate
    return None


def _is_maker(draft: Draft, node: Node, value: str, axis: int) -> bool:
    weight = draft.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if weight is None or draft.constant(node.inputs[0]) is not None:
        return False
    if node.op == "MatMul":
        return weight.ndim == 2 and axis == (draft.rank(value) or 0) - 1
    if node.op == "Conv":
        known = not node.input(2) or draft.constant(node.input(2)) is not None
        return axis == 1 and node.attrs.get("group", 1) == 1 and known
    return False


def _is_plain(draft: Draft, node: Node, axis: int) -> bool:
    """A norm over the channels whose output has mean zero: scale equal everywhere, no bias."""
    scale = draft.constant(node.inputs[1])
    bias = draft.constant(node.input(2)) if node.input(2) else np.zeros(1)
    rank = draft.rank(node.outputs[0]) or 0
    if scale is None or bias is None or axis != rank - 1 or scale.size == 0:
        return False
    last = node.attrs.get("axis", -1) % rank == rank - 1
    return bool(last and np.all(scale == scale.reshape(-1)[0]) and not np.any(bias))


Inside = Callable[[Draft, Node, int], "list[tuple[int, str, int]] | None"]


def _add(draft: Draft, node: Node, axis: int) -> list[tuple[int, str, int]] | None:
    shape = draft.shape(node.outputs[0])
    if shape is None:
        return None
    spots = []
    for index, name in enumerate(node.inputs):
        own = draft.shape(name) or ()
        where = axis - (len(shape) - len(own))
        if where < 0 or own[where] != shape[axis]:
            return None
        spots.append((index, name, where))
    return spots


def _along(draft: Draft, node: Node, axis: int) -> list[tuple[int, str, int]] | None:
    """Concat, Split, Slice, Pad, Tile, Expand, Gather: anything but along the channels."""
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if before is None or after is None:
        return None
    if node.op == "Concat":
        if node.attrs["axis"] % len(after) == axis:
            return None
        return [(i, name, axis) for i, name in enumerate(node.inputs)]
    if node.op == "Gather":
        return _gather(draft, node, axis, len(before))
    where = axis - (len(after) - len(before))
    if where < 0 or before[where] != after[axis]:
        return None
    if node.op == "Split" and node.attrs.get("axis", 0) % len(before) == axis:
        return None
    if node.op == "Pad" and node.attrs.get("mode", "constant") == "constant":
        value = draft.scalar(node.input(2)) if node.input(2) else 0.0
        if value != 0.0:
            return None
    if node.op == "Slice":
        steps = draft.ints(node.input(4)) if node.input(4) else [1]
        if steps is None or any(step < 0 for step in steps):
            return None
    return [(0, node.inputs[0], where)]


def _gather(draft: Draft, node: Node, axis: int, rank: int) -> list[tuple[int, str, int]] | None:
    index_rank = draft.rank(node.inputs[1])
    along = node.attrs.get("axis", 0) % rank
    if index_rank is None or along <= axis < along + index_rank:
        return None
    where = axis if axis < along else axis - index_rank + 1
    return [(0, node.inputs[0], where)]


def _reshape(draft: Draft, node: Node, axis: int) -> list[tuple[int, str, int]] | None:
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if before is None or after is None:
        return None
    ahead = int(np.prod(after[:axis], dtype=np.int64))
    product = 1
    for where, length in enumerate(before):
        if product == ahead and length == after[axis] and length > 1:
            return [(0, node.inputs[0], where)]
        product *= length
    return None


def _transpose(draft: Draft, node: Node, axis: int) -> list[tuple[int, str, int]] | None:
    return [(0, node.inputs[0], int(node.attrs["perm"][axis]))]


_INSIDE: dict[str, Inside] = {
    "Add": _add, "Reshape": _reshape, "Transpose": _transpose,
    **dict.fromkeys(("Concat", "Split", "Slice", "Pad", "Tile", "Expand", "Gather"), _along),
}  # fmt: skip


def _center(draft: Draft, stream: _Stream) -> None:
    for node, _ in stream.makers:
        weight = draft.constants[node.inputs[1]]
        axis = 1 if node.op == "MatMul" else 0
        _replace(draft, node, 1, _centered(weight, axis))
        if node.op == "Conv" and node.input(2):
            _replace(draft, node, 2, _centered(draft.constants[node.inputs[2]], 0))
    for node, index, axis in stream.constants:
        _replace(draft, node, index, _centered(draft.constants[node.inputs[index]], axis))
    for norm in stream.norms:
        norm.marks["centered"] = "1"
    plain = {norm.outputs[0] for norm in draft.nodes if norm.op == "LayerNormalization"}
    for value in stream.spots:
        if value not in plain and value in draft.producer:
            draft.rename(value)


def _centered(data: Array, axis: int) -> Array:
    wide = data.astype(np.float64)
    return np.asarray((wide - wide.mean(axis=axis, keepdims=True)).astype(data.dtype))


def _replace(draft: Draft, node: Node, index: int, data: Array) -> None:
    name = draft.constant_of(data, node.inputs[index].split("~")[0])
    draft.set_input(node, index, name)
