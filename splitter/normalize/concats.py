"""Concat of values that went the same way: put together first, then go that way once.

Four window un-partitions (Reshape, Transpose, Reshape) in front of one Concat are one behind it.
Only when nothing else reads the values, so that no work is doubled.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type

KEPT = 2  # a Slice may leave out at most this part of its input, else the Concat would grow


def hoist_concats(draft: Draft) -> None:
    for node in draft.nodes:
        while draft.alive(node) and node.op == "Concat" and not node.domain:
            if not _hoist(draft, node):
                break
    draft.prune()


def _hoist(draft: Draft, concat: Node) -> bool:
    """Move the Concat before the nodes that make its operands, when they are all alike."""
    makers = [draft.producer.get(value) for value in concat.inputs]
    shape = draft.shape(concat.outputs[0])
    if len(makers) < 2 or shape is None:
        return False
    nodes = [m for m in makers if m is not None and not m.domain]
    if len(nodes) != len(makers) or len(set(nodes)) != len(nodes):
        return False
    if any(draft.only_user(node.outputs[0]) is not concat for node in nodes):
        return False
    if any(node.inputs[0] in draft.constants for node in nodes):
        return False
    axis = concat.attrs["axis"] % len(shape)
    where = _source_axis(draft, nodes, axis)
    if where is None or not _alike(draft, nodes, where):
        return False
    _move(draft, concat, nodes, where, shape)
    return True


def _source_axis(draft: Draft, nodes: list[Node], axis: int) -> int | None:
    """The axis of the nodes' inputs that becomes `axis` behind each of them."""
    first = nodes[0]
    if any(node.op != first.op for node in nodes):
        return None
    if first.op == "Transpose":
        same = all(node.attrs["perm"] == first.attrs["perm"] for node in nodes)
        return int(first.attrs["perm"][axis]) if same else None
    if first.op == "Slice":
        same = all(_bounds(draft, node) == _bounds(draft, first) for node in nodes)
        return axis if same and all(_keeps(draft, node, axis) for node in nodes) else None
    if first.op == "Reshape":
        found = {_reshape_axis(draft, node, axis) for node in nodes}
        return found.pop() if len(found) == 1 else None
    return None


def _alike(draft: Draft, nodes: list[Node], where: int) -> bool:
    """Whether the inputs differ in the length of that axis only."""
    shapes = [draft.shape(node.inputs[0]) or () for node in nodes]
    return len({s[:where] + s[where + 1 :] for s in shapes}) == 1


def _bounds(draft: Draft, node: Node) -> list[list[int] | None]:
    return [draft.ints(name) if name else None for name in node.inputs[1:]]


def _keeps(draft: Draft, node: Node, axis: int) -> bool:
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if before is None or after is None or before[axis] != after[axis]:
        return False
    steps = draft.ints(node.input(4)) if node.input(4) else [1]
    bounds = [node.input(i) in draft.constants for i in (1, 2)]
    size = np.prod(after, dtype=np.int64) * KEPT
    return (
        all(bounds)
        and steps == [1] * len(steps or [])
        and bool(size >= np.prod(before, dtype=np.int64))
    )


def _reshape_axis(draft: Draft, node: Node, axis: int) -> int | None:
    """The input axis that is the output axis: same length, same number of elements before it."""
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if before is None or after is None:
        return None
    ahead = int(np.prod(after[:axis], dtype=np.int64))
    product = 1
    for where, length in enumerate(before):
        if product == ahead and length == after[axis]:
            return where
        product *= length
    return None


def _move(
    draft: Draft, concat: Node, nodes: list[Node], where: int, shape: tuple[int, ...]
) -> None:
    first = nodes[0]
    values = [node.inputs[0] for node in nodes]
    shapes = [draft.shape(value) or () for value in values]
    joined = list(shapes[0])
    joined[where] = sum(s[where] for s in shapes)
    out, known = concat.outputs[0], draft.types[concat.outputs[0]]
    inner = draft.name(out)
    sources = tuple(dict.fromkeys(s for node in nodes for s in node.sources))
    rest = list(first.inputs[1:])
    if first.op == "Reshape":
        rest = [draft.constant_of(np.asarray(shape, np.int64), f"{out}/shape")]
    for node in (concat, *nodes):
        draft.remove(node)
    joined_type = Type(known.dtype, tuple(joined))
    concat.inputs, concat.outputs, concat.attrs = values, [inner], {"axis": where}
    draft.add(concat, [joined_type])
    attrs = {} if first.op == "Reshape" else dict(first.attrs)
    draft.add(
        Node(first.op, [inner, *rest], [out], attrs, first.name, sources=sources),
        [known],
    )
