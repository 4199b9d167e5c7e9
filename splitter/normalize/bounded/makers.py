"""Operators of which data decides how much they give, in as many rows as there can be.

NonMaxSuppression(boxes, scores, M)  B * C * min(M, N) rows of picks, some of them missing
NonZero(x)                           the places of all elements, those that are 0 missing
Compress(x, condition)               all rows, those without the condition missing
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Node, Type
from splitter.normalize.bounded.classes import moved_apart
from splitter.normalize.bounded.state import Masked, Numbers, Rows, Unbounded
from splitter.ops.boxes import too_many

PICKS = "BoundedNonMaxSuppression"


def non_max_suppression(rows: Rows, node: Node) -> None:
    draft, (boxes, scores) = rows.draft, node.inputs[:2]
    batch, classes, count = rows.shape(scores)
    most, iou, score = (_constant(rows, node, place) for place in (2, 3, 4))
    picks = min(int(most or 0), count, _read_rows(rows, node) if batch * classes == 1 else count)
    if picks <= 0 or not batch * classes * count:
        rows.instead(node, rows.const(np.zeros((0, 3))))
        return
    reason = too_many(batch * classes, count, picks)
    if reason:
        raise Unbounded(reason)
    inputs = [boxes, scores, *_mask(rows, node)]
    mask_of_boxes = inputs[2] if len(inputs) > 2 else ""
    apart = moved_apart(rows, boxes) if batch * classes == 1 else None
    if apart is not None:
        inputs = [boxes, scores, mask_of_boxes, apart.boxes, apart.classes]
    attrs = {
        "step": "" if apart is None or apart.step is None else apart.step,
        "picks": picks,
        "center": int(node.attrs.get("center_point_box", 0)),
        "iou": float(iou or 0.0),
        "score": "" if score is None else float(score),
    }
    total, out = batch * classes * picks, node.outputs[0]
    mask = draft.name(f"{node.name}/there")
    draft.remove(node)
    made = Node(PICKS, inputs, [out, mask], attrs, node.name, sources=node.sources)
    rows.add(made, [Type("int64", (total, 3)), Type("bool", (total,))])
    rows.masks[out] = Masked(0, mask)
    if mask_of_boxes:
        rows.numbers[out] = Numbers(mask_of_boxes, 1, 2)
    if batch * classes == 1:
        rows.mark_packed(mask)


def _constant(rows: Rows, node: Node, place: int) -> float | None:
    name = node.input(place)
    value = rows.draft.scalar(name) if name else None
    if name and value is None and place == 2 and name in rows.lengths:
        parts = rows.lengths[name]
        return float(sum(np.max(part) * (1 if key is None else _most(rows, key))
                         for key, part in parts.items()))  # fmt: skip
    if name and value is None:
        raise Unbounded(f"input {place} of {node.name} is computed ({name})")
    return value


def _most(rows: Rows, key: object) -> int:
    return min(rows.shape(key[0])[0], key[1]) if isinstance(key, tuple) else rows.shape(str(key))[0]


def _mask(rows: Rows, node: Node) -> list[str]:
    """The mask that boxes and scores have along the boxes, if any."""
    boxes, scores = (rows.masks.get(name) for name in node.inputs[:2])
    if boxes is None and scores is None:
        return []
    if boxes is None or scores is None or boxes.mask != scores.mask:
        raise Unbounded(f"boxes and scores of {node.name} differ in which of them there are")
    if (boxes.axis, scores.axis) != (1, 2):
        raise Unbounded(f"{node.name} is over as many batches or classes as the data decides")
    return [boxes.mask]


def _read_rows(rows: Rows, node: Node) -> int:
    """How many of the first picks are read, where all that read them take the first ones."""
    most, waiting = 0, [(node.outputs[0], 0)]
    while waiting:
        name, axis = waiting.pop()
        if rows.draft.pinned(name):
            return 1 << 30
        for user in rows.draft.users(name):
            taken = _first(rows, user, name, axis)
            if taken is not None:
                most = max(most, taken)
            elif user.op == "Gather" and user.inputs[0] == name and _columns(rows, user, axis):
                index = rows.draft.constants[user.inputs[1]]
                waiting.append((user.outputs[0], axis if axis == 0 or index.ndim else axis - 1))
            elif axis == 0 and _keeps(rows, user):
                waiting.append((user.outputs[0], 0))
            else:
                return 1 << 30
    return most


def _columns(rows: Rows, user: Node, axis: int) -> bool:
    return int(user.attrs.get("axis", 0)) != axis and user.inputs[1] in rows.draft.constants


def _keeps(rows: Rows, user: Node) -> bool:
    """Whether the first axis stays the first, with all its rows."""
    if user.op == "Slice":
        return 0 not in _slice_axes(rows, user)
    if user.op != "Squeeze":
        return user.op in ("Cast", "Identity")
    axes = rows.draft.ints(user.input(1)) if user.input(1) else None
    return axes is not None and 0 not in axes


def _slice_axes(rows: Rows, user: Node) -> list[int]:
    axes = rows.draft.ints(user.input(3)) if user.input(3) else None
    starts = rows.draft.ints(user.inputs[1])
    return axes if axes is not None else list(range(len(starts or [0])))


def _first(rows: Rows, user: Node, name: str, axis: int) -> int | None:
    """How many of the first rows a Slice takes."""
    if user.op != "Slice" or user.inputs[0] != name or _slice_axes(rows, user) != [axis]:
        return None
    starts, ends = (rows.draft.ints(user.input(place)) for place in (1, 2))
    steps = rows.draft.ints(user.input(4)) if user.input(4) else [1]
    if starts is None or ends is None or steps != [1] or starts[0] < 0 or ends[0] < 0:
        return None
    return ends[0]


def non_zero(rows: Rows, node: Node) -> None:
    """Elements in the order of the array, which is ONNX's."""
    x, out = node.inputs[0], node.outputs[0]
    known, shape = rows.masks.get(x), rows.shape(x)
    if not shape:
        raise Unbounded(f"{node.name} is of a scalar")
    there = x
    if rows.draft.dtype(x) != "bool":
        there = rows.emit(node, "Cast", [x], to=9)
    if known is not None:
        mask = rows.spread(node, known.mask, known.axis, len(shape))
        there = rows.emit(node, "And", [there, mask])
    total = int(np.prod(shape))
    flat = rows.emit(node, "Reshape", [there, rows.const([total])])
    places = np.indices(shape).reshape(len(shape), total)
    rows.draft.make_constant(node, {out: places.astype(np.int64)})
    rows.masks[out] = Masked(1, flat)
    if known is not None:
        rows.numbers[out] = Numbers(known.mask, 0, known.axis)


def compress(rows: Rows, node: Node) -> None:
    x, condition = node.inputs[:2]
    known, shape, size = rows.masks.get(x), rows.shape(x), rows.shape(condition)[0]
    axis = node.attrs.get("axis")
    if known is not None or condition in rows.masks:
        raise Unbounded(f"{node.name} takes rows of rows that may be missing")
    if axis is None:
        x = rows.emit(node, "Reshape", [x, rows.const([-1])])
        shape, axis = rows.shape(x), 0
    axis = int(axis) % len(shape)
    if size < shape[axis]:
        x = rows.emit(node, "Slice", [x, rows.const([0]), rows.const([size]), rows.const([axis])])
    elif size > shape[axis]:
        ends = [rows.const([0]), rows.const([shape[axis]]), rows.const([0])]
        condition = rows.emit(node, "Slice", [condition, *ends])
    out = node.outputs[0]
    rows.instead(node, x)
    rows.masks[out] = Masked(axis, condition)


MAKERS: dict[str, Callable[[Rows, Node], None]] = {
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "Compress": compress,
}
