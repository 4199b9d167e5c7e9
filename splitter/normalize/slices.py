"""Moves Slices towards the inputs, so that constants under them fold and work is not thrown away.

Through Concat along the same axis when the slice lies in one operand; through elementwise nodes
with a constant when all that reads them are Slices (DINOv2: class token and patches are put
together, positions added, and cut apart again; the class token is then a constant), or when the
other operand is broadcast along the axis.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.arithmetic import constant_side


def push_slices(draft: Draft) -> None:
    moved = True
    while moved:
        moved = False
        for node in draft.nodes:
            if node.op == "Slice" and not node.domain and draft.alive(node):
                moved |= _through_concat(draft, node) or _through_elementwise(draft, node)
    draft.prune()


def slice_gathers(draft: Draft) -> None:
    """Gather by constant indices in a row is a Slice (and a Reshape for a single index)."""
    for node in draft.nodes:
        if node.op == "Gather" and not node.domain and draft.alive(node):
            _slice_gather(draft, node)
    draft.prune()


def _slice_gather(draft: Draft, node: Node) -> None:
    shape, target = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    index = draft.constant(node.inputs[1])
    if shape is None or target is None or index is None or index.ndim > 1 or index.size == 0:
        return
    axis = node.attrs.get("axis", 0) % len(shape)
    rows = index.reshape(-1).astype(np.int64) % shape[axis]
    if draft.constant(node.inputs[0]) is not None or np.any(np.diff(rows) != 1):
        return
    ranges = {axis: (int(rows[0]), int(rows[-1]) + 1)}
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    cut = (*shape[:axis], len(rows), *shape[axis + 1 :])
    draft.remove(node)
    value = draft.name(out) if index.ndim == 0 else out
    inputs = [node.inputs[0], *_bounds(draft, node.name, ranges)]
    draft.add(Node("Slice", inputs, [value], {}, node.name, sources=node.sources),
              [Type(known.dtype, cut)])  # fmt: skip
    if index.ndim == 0:
        want = draft.constant_of(np.asarray(target, np.int64), f"{node.name}/shape")
        name = f"{node.name}/squeeze"
        draft.add(
            Node("Reshape", [value, want], [out], {}, name, sources=node.sources),
            [known],
        )


def slice_ranges(draft: Draft, node: Node) -> dict[int, tuple[int, int]] | None:
    """Axis -> (start, stop) of a Slice with steps 1 and constant bounds."""
    parts = [draft.ints(node.input(i)) if node.input(i) else None for i in (1, 2, 3, 4)]
    starts, ends, axes, steps = parts
    shape = draft.shape(node.inputs[0])
    if starts is None or ends is None or shape is None or any(s != 1 for s in steps or []):
        return None
    if (node.input(3) and axes is None) or (node.input(4) and steps is None):
        return None
    result: dict[int, tuple[int, int]] = {}
    for index, axis in enumerate(axes or range(len(starts))):
        start, stop, _ = slice(starts[index], ends[index]).indices(shape[axis])
        if (start, stop) != (0, shape[axis]):
            result[axis % len(shape)] = (start, stop)
    return result


def _through_concat(draft: Draft, node: Node) -> bool:
    concat = draft.producer.get(node.inputs[0])
    ranges = slice_ranges(draft, node)
    if concat is None or concat.op != "Concat" or concat.domain or ranges is None:
        return False
    rank = draft.rank(concat.outputs[0]) or 1
    axis = concat.attrs["axis"] % rank
    if set(ranges) != {axis}:
        return False
    start, stop = ranges[axis]
    offset = 0
    for value in concat.inputs:
        shape = draft.shape(value)
        if shape is None:
            return False
        if offset <= start and stop <= offset + shape[axis]:
            _slice_of(draft, node, value, {axis: (start - offset, stop - offset)})
            return True
        offset += shape[axis]
    return False


def _slice_of(draft: Draft, node: Node, value: str, ranges: dict[int, tuple[int, int]]) -> None:
    """Let the Slice read another value with other bounds; a Slice of everything goes."""
    shape = draft.shape(value) or ()
    if all(ranges[a] == (0, shape[a]) for a in ranges):
        draft.bypass(node, value)
        return
    draft.set_inputs(node, [value, *_bounds(draft, node.name, ranges)])


def _bounds(draft: Draft, stem: str, ranges: dict[int, tuple[int, int]]) -> list[str]:
    columns = [
        [r[0] for r in ranges.values()],
        [r[1] for r in ranges.values()],
        list(ranges),
    ]
    return [
        draft.constant_of(np.asarray(values, np.int64), f"{stem}/{what}")
        for values, what in zip(columns, ("starts", "ends", "axes"), strict=True)
    ]


def _through_elementwise(draft: Draft, node: Node) -> bool:
    """Slice(x + c) -> Slice(x) + c's slice."""
    maker = draft.producer.get(node.inputs[0])
    if maker is None or maker.op not in ("Add", "Mul", "Sub", "Div") or maker.domain:
        return False
    side, ranges = constant_side(draft, maker), slice_ranges(draft, node)
    users = draft.users(maker.outputs[0])
    if side is None or ranges is None or draft.pinned(maker.outputs[0]):
        return False
    if any(user.op != "Slice" for user in users) or not _disjoint(draft, users):
        return False
    index, data = side
    value = maker.inputs[1 - index]
    shape = draft.shape(maker.outputs[0])
    own = draft.shape(value)
    if shape is None or own is None:
        return False
    broadcast = len(own) == len(shape) and all(own[axis] == 1 for axis in ranges)
    if not broadcast and (own != shape or not _reaches_constant(draft, value)):
        return False
    cut = data.reshape((1,) * (len(shape) - data.ndim) + data.shape)
    for axis, (start, stop) in ranges.items():
        if cut.shape[axis] != 1:
            cut = np.take(cut, range(start, stop), axis=axis)
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    draft.remove(node)
    constant = draft.constant_of(np.ascontiguousarray(cut), f"{maker.name}/slice")
    inner = value
    if not broadcast:
        inner = draft.name(out)
        bounds = _bounds(draft, node.name, ranges)
        draft.add(
            Node("Slice", [value, *bounds], [inner], {}, node.name, sources=node.sources),
            [Type(known.dtype, known.shape)],
        )
    inputs = [constant, inner] if index == 0 else [inner, constant]
    name = maker.name if len(users) == 1 else f"{maker.name}/{node.name.split('/')[-1]}"
    draft.add(Node(maker.op, inputs, [out], {}, name, sources=maker.sources), [known])
    return True


def _reaches_constant(draft: Draft, value: str) -> bool:
    """Whether there is a Concat with a constant to gain; else an Add may be a bias: leave it."""
    maker = draft.producer.get(value)
    while maker is not None and maker.op in ("Add", "Mul", "Sub", "Div"):
        side = constant_side(draft, maker)
        if side is None:
            return False
        maker = draft.producer.get(maker.inputs[1 - side[0]])
    return (
        maker is not None
        and maker.op == "Concat"
        and any(draft.constant(v) is not None for v in maker.inputs)
    )


def _disjoint(draft: Draft, users: list[Node]) -> bool:
    """Whether the slices together read no more than there is."""
    total = draft.shape(users[0].inputs[0])
    parts = [draft.shape(user.outputs[0]) for user in users]
    if total is None or any(p is None for p in parts):
        return False
    read = sum(int(np.prod(p, dtype=np.int64)) for p in parts if p is not None)
    return read <= int(np.prod(total, dtype=np.int64))
