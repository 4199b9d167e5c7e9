"""Sequences of tensors are lists that fold away: what remains are their members.

TorchScript writes Python lists this way (split, append in a loop, stack). `Draft.sequences` knows
the members of each sequence; the operators on sequences are resolved as the folding walk meets
them. A sequence of unknown length has no static form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Draft, Node

Members = tuple[str, ...]


def open_sequence(draft: Draft, node: Node) -> bool:
    """Resolve an operator on sequences. False when its members or places are not known."""
    return RULES[node.op](draft, node)


def _position(draft: Draft, node: Node, index: int, default: int) -> int | None:
    if not node.input(index):
        return default
    value = draft.scalar(node.inputs[index])
    return None if value is None else int(value)


def _set(draft: Draft, node: Node, members: Members) -> bool:
    draft.remove(node)
    draft.sequences[node.outputs[0]] = members
    return True


def _empty(draft: Draft, node: Node) -> bool:
    return _set(draft, node, ())


def _construct(draft: Draft, node: Node) -> bool:
    return _set(draft, node, tuple(node.inputs))


def _identity(draft: Draft, node: Node) -> bool:
    members = draft.sequences.get(node.inputs[0])
    return members is not None and _set(draft, node, members)


def _insert(draft: Draft, node: Node) -> bool:
    members = draft.sequences.get(node.inputs[0])
    if members is None:
        return False
    place = _position(draft, node, 2, len(members))
    if place is None:
        return False
    return _set(draft, node, (*members[:place], node.inputs[1], *members[place:]))


def _erase(draft: Draft, node: Node) -> bool:
    members = draft.sequences.get(node.inputs[0])
    place = _position(draft, node, 1, -1)
    if not members or place is None:
        return False
    place %= len(members)
    return _set(draft, node, (*members[:place], *members[place + 1 :]))


def _at(draft: Draft, node: Node) -> bool:
    members, place = draft.sequences.get(node.inputs[0]), draft.scalar(node.inputs[1])
    if not members or place is None:
        return False
    out = node.outputs[0]
    draft.types.pop(out, None)
    draft.bypass(node, members[int(place)])
    return True


def _length(draft: Draft, node: Node) -> bool:
    members = draft.sequences.get(node.inputs[0])
    if members is None:
        return False
    draft.make_constant(node, {node.outputs[0]: np.asarray(len(members), np.int64)})
    return True


def _concat(draft: Draft, node: Node) -> bool:
    members = draft.sequences.get(node.inputs[0])
    if not members:
        return False
    axis, rows = node.attrs["axis"], list(members)
    draft.remove(node)
    if node.attrs.get("new_axis", 0):
        axes = draft.constant_of(np.asarray([axis], np.int64), f"{node.name}/axis")
        rows = [_unary(draft, node, "Unsqueeze", [name, axes]) for name in rows]
    draft.add(Node("Concat", rows, node.outputs, {"axis": axis}, node.name, sources=node.sources))
    return True


def _split(draft: Draft, node: Node) -> bool:
    source = node.inputs[0]
    shape = draft.shape(source)
    if shape is None:
        return False
    axis = node.attrs.get("axis", 0) % len(shape)
    sizes = _sizes(draft, node, shape[axis])
    if sizes is None:
        return False
    names = [draft.name(f"{node.outputs[0]}/{index}") for index in range(len(sizes))]
    split = draft.constant_of(np.asarray(sizes, np.int64), f"{node.name}/sizes")
    draft.add(
        Node("Split", [source, split], names, {"axis": axis}, f"{node.name}/split",
             sources=node.sources)
    )  # fmt: skip
    if not node.input(1) and not node.attrs.get("keepdims", 1):
        axes = draft.constant_of(np.asarray([axis], np.int64), f"{node.name}/axis")
        names = [_unary(draft, node, "Squeeze", [name, axes]) for name in names]
    return _set(draft, node, tuple(names))


def _sizes(draft: Draft, node: Node, length: int) -> list[int] | None:
    """One a member; by a single number as many of that length as fit, and the rest."""
    if not node.input(1):
        return [1] * length
    given = draft.constant(node.inputs[1])
    if given is None:
        return None
    if given.ndim:
        return [int(size) for size in given]
    size = int(given)
    return [min(size, length - start) for start in range(0, length, size)]


def _unary(draft: Draft, node: Node, op: str, inputs: list[str]) -> str:
    out = draft.name(f"{node.outputs[0]}/{op.lower()}")
    draft.add(Node(op, inputs, [out], {}, out, sources=node.sources))
    return out


RULES: dict[str, Callable[[Draft, Node], bool]] = {
    "SequenceEmpty": _empty,
    "SequenceConstruct": _construct,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
    "Identity": _identity,
}

__all__ = ["RULES", "open_sequence"]
