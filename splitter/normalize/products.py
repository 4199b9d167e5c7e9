"""Takes matrix products apart whose columns are read apart and come from apart.

Linear attention pads its values with ones, multiplies, and slices the sums of weights off the last
column again, to divide by them (EfficientViT). In integers both would share one scale, and the
divisor would be a few steps of it. As two products each has its own; the ones are then a constant.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.slices import slice_ranges


def split_products(draft: Draft) -> None:
    for node in draft.nodes:
        if draft.alive(node) and _is_product(draft, node) and not draft.pinned(node.outputs[0]):
            _split(draft, node)
    draft.prune()


def _is_product(draft: Draft, node: Node) -> bool:
    """Of two variables: with a constant it is a weight, whose columns have scales of their own."""
    if node.op != "MatMul" or node.domain:
        return False
    known = all(draft.shape(name) is not None for name in (*node.inputs, node.outputs[0]))
    ranks = {draft.rank(name) for name in (*node.inputs, node.outputs[0])}
    return known and len(ranks) == 1 and all(draft.constant(n) is None for n in node.inputs)


def _split(draft: Draft, node: Node) -> None:
    """One product for each Slice, when each reads exactly one piece."""
    lengths = _pieces(draft, node.inputs[1])
    users = draft.users(node.outputs[0])
    if len(lengths) < 2 or any(user.op != "Slice" or user.domain for user in users):
        return
    ends = list(accumulate(lengths))
    places = {
        (end - length, end): i for i, (length, end) in enumerate(zip(lengths, ends, strict=True))
    }
    last = (draft.rank(node.outputs[0]) or 1) - 1
    chosen: list[tuple[Node, int]] = []
    for user in users:
        ranges = slice_ranges(draft, user)
        if ranges is None or set(ranges) != {last} or ranges[last] not in places:
            return
        chosen.append((user, places[ranges[last]]))
    for user, index in chosen:
        out, known = user.outputs[0], draft.types[user.outputs[0]]
        right = _piece(draft, node.inputs[1], index)
        draft.remove(user)
        sources = tuple(dict.fromkeys((*node.sources, *user.sources)))
        name = f"{node.name}/{index}"
        draft.add(
            Node("MatMul", [node.inputs[0], right], [out], {}, name, sources=sources), [known]
        )


def _pieces(draft: Draft, value: str) -> list[int]:
    """Lengths of what the value's columns are put together from; one when that is not known."""
    shape, maker = draft.shape(value) or (1,), draft.producer.get(value)
    whole = [shape[-1]]
    if maker is None or maker.domain or draft.only_user(value) is None:
        return whole
    if maker.op == "Concat" and maker.attrs["axis"] % len(shape) == len(shape) - 1:
        shapes = [draft.shape(name) for name in maker.inputs]
        return [one[-1] for one in shapes if one is not None] if all(shapes) else whole
    if maker.op == "Pad":
        return _padded(draft, maker) or whole
    return _pieces(draft, maker.inputs[1]) if _is_product(draft, maker) else whole


def _padded(draft: Draft, pad: Node) -> list[int] | None:
    """Columns of a Pad by a constant behind the last axis alone: the value's, the constant's."""
    shape, amounts = draft.shape(pad.inputs[0]), draft.ints(pad.inputs[1])
    if shape is None or amounts is None or pad.attrs.get("mode", "constant") != "constant":
        return None
    axes = draft.ints(pad.input(3)) if pad.input(3) else list(range(len(shape)))
    if axes is None or (pad.input(2) and draft.scalar(pad.input(2)) is None):
        return None
    behind = {axis % len(shape): amounts[i + len(axes)] for i, axis in enumerate(axes)}
    if any(amounts[: len(axes)]) or any(n for axis, n in behind.items() if axis != len(shape) - 1):
        return None
    after = behind.get(len(shape) - 1, 0)
    return [shape[-1], after] if after > 0 else None


def _piece(draft: Draft, value: str, index: int) -> str:
    """The value with one of its `_pieces`."""
    maker = draft.producer[value]
    if maker.op == "Concat":
        return maker.inputs[index]
    if maker.op == "Pad":
        return maker.inputs[0] if index == 0 else _constant(draft, maker)
    right = _piece(draft, maker.inputs[1], index)
    known = draft.types[value]
    columns = (draft.shape(right) or (1,))[-1]
    out = draft.name(value)
    draft.add(
        Node(
            "MatMul",
            [maker.inputs[0], right],
            [out],
            {},
            f"{maker.name}/{index}",
            sources=maker.sources,
        ),
        [Type(known.dtype, (*(draft.shape(value) or ())[:-1], columns))],
    )
    return out


def _constant(draft: Draft, pad: Node) -> str:
    """What a Pad put behind: the same for all of a batch."""
    shape = draft.shape(pad.outputs[0]) or ()
    number = draft.scalar(pad.input(2)) if pad.input(2) else 0.0
    columns = (_padded(draft, pad) or [0, 0])[1]
    data = np.full((shape[-2], columns), number, draft.dtype(pad.outputs[0]))
    return draft.constant_of(data, f"{pad.name}/padding")
