"""ScatterND at constant places that form a box is what the programmer wrote: x[:, 2:5, 1:] = y.

The box becomes Slices of what stays and a Concat, which later passes take apart or fold; every
other step along ONE axis (x[..., ::2] = y) becomes a Gather of the data and the updates put side by
side. A ScatterND of other places, or that meets a place twice, stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitter.draft import Array, Draft, Node, Type

COMBINE = {"none": "", "add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}

Range = tuple[int, int, int]
"""Start, count, step."""


@dataclass(frozen=True)
class _Target:
    """Where an assignment is written: the node, its box and the full shape of the data."""

    node: Node
    box: tuple[Range, ...]
    shape: tuple[int, ...]
    dtype: str


def write_assignments(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "ScatterND" and not node.domain and draft.alive(node):
            _rewrite(draft, node)
    draft.prune()


def box_of(indices: Array, lengths: Sequence[int]) -> tuple[Range, ...] | None:
    """The box that index tuples [..., q] name in row-major order, axis by axis; None for others."""
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth).astype(np.int64)
    rows = np.where(rows < 0, rows + np.asarray(lengths[:depth]), rows)
    ranges: list[Range] = []
    for axis in range(depth):
        values = np.unique(rows[:, axis])
        steps = np.unique(np.diff(values))
        if len(steps) > 1:
            return None
        ranges.append((int(values[0]), len(values), int(steps[0]) if len(steps) else 1))
    if int(np.prod([count for _, count, _ in ranges])) != len(rows):
        return None
    grid = np.indices([count for _, count, _ in ranges]).reshape(depth, -1).T
    start, step = np.asarray([(r[0], r[2]) for r in ranges]).T
    return tuple(ranges) if np.array_equal(grid * step + start, rows) else None


def _rewrite(draft: Draft, node: Node) -> None:
    data, indices, updates = node.inputs
    shape, places = draft.shape(data), draft.constant(indices)
    reduction = node.attrs.get("reduction", "none")
    if shape is None or places is None or not places.size or reduction not in COMBINE:
        return
    box = box_of(places, shape)
    if box is None:
        return
    box += tuple((0, length, 1) for length in shape[len(box) :])
    partial = [a for a, (r, n) in enumerate(zip(box, shape, strict=True)) if r != (0, n, 1)]
    strided = [a for a in partial if box[a][2] != 1]
    if strided and (len(partial) > 1 or reduction != "none"):
        return
    target = _Target(node, box, shape, draft.dtype(data))
    out = node.outputs[0]
    draft.remove(node)
    value = _reshaped(draft, target, updates)
    if strided:
        value = _interleaved(draft, target, data, value, strided[0])
    else:
        value = _placed(draft, target, data, value, partial, COMBINE[reduction])
    draft.types.pop(out, None)
    draft.replace(out, value)


def _reshaped(draft: Draft, target: _Target, updates: str) -> str:
    """The updates in the shape of the box."""
    wanted = tuple(count for _, count, _ in target.box)
    if draft.shape(updates) == wanted:
        return updates
    shape = draft.constant_of(np.asarray(wanted, np.int64), f"{target.node.name}/box")
    return _emit(draft, target, "Reshape", [updates, shape], wanted)


def _placed(
    draft: Draft, target: _Target, data: str, value: str, axes: Sequence[int], combine: str
) -> str:
    """What stays before and after along the first axis, and between them the rest of the box."""
    if not axes:
        shape = tuple(count for _, count, _ in target.box)
        return _emit(draft, target, combine, [data, value], shape) if combine else value
    axis, whole = axes[0], draft.shape(data) or ()
    start, count, _ = target.box[axis]
    stop = start + count
    inner = data
    if len(axes) > 1 or combine:
        inner = _slice(draft, target, data, axis, (start, stop))
    pieces = [_placed(draft, target, inner, value, axes[1:], combine)]
    if start:
        pieces.insert(0, _slice(draft, target, data, axis, (0, start)))
    if stop < whole[axis]:
        pieces.append(_slice(draft, target, data, axis, (stop, whole[axis])))
    return _emit(draft, target, "Concat", pieces, whole, axis=axis)


def _interleaved(draft: Draft, target: _Target, data: str, value: str, axis: int) -> str:
    start, count, step = target.box[axis]
    length = target.shape[axis]
    both = (*target.shape[:axis], length + count, *target.shape[axis + 1 :])
    joined = _emit(draft, target, "Concat", [data, value], both, axis=axis)
    order = np.arange(length)
    order[start : start + (count - 1) * step + 1 : step] = length + np.arange(count)
    index = draft.constant_of(order.astype(np.int64), f"{target.node.name}/order")
    return _emit(draft, target, "Gather", [joined, index], target.shape, axis=axis)


def _slice(draft: Draft, target: _Target, data: str, axis: int, span: tuple[int, int]) -> str:
    shape = list(draft.shape(data) or ())
    shape[axis] = span[1] - span[0]
    bounds = [
        draft.constant_of(np.asarray([number], np.int64), f"{target.node.name}/bound")
        for number in (*span, axis)
    ]
    return _emit(draft, target, "Slice", [data, *bounds], tuple(shape))


def _emit(
    draft: Draft,
    target: _Target,
    op: str,
    inputs: Sequence[str],
    shape: tuple[int, ...],
    **attrs: int,
) -> str:
    return draft.emit(
        op,
        inputs,
        Type(target.dtype, shape),
        stem=target.node.name or target.node.outputs[0],
        sources=target.node.sources,
        attrs=attrs,
    )
