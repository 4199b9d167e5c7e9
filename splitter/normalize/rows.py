"""Rows picked from rows that were picked, or put together, are picked from where they come from.

Detectors put boxes and scores together, turn them, and take them apart again to rank the scores;
key points are written to every third column and read from the next ones. None of it need pass
through a tensor of both, which has one scale for pixels and scores. Several assignments in a row
become one Concat of what is left of each, and one Gather that puts it in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitter.draft import Array, Draft, Node, Type
from splitter.normalize.origins import build, picked, trace


@dataclass(frozen=True)
class _Mixed:
    """For each row along an axis: which of the leaves it is of, and its number there."""

    leaves: tuple[str, ...]
    leaf: Array
    number: Array
    picks: int


def pick_rows(draft: Draft) -> None:
    """Rewrite every Split, Slice along one axis and Gather by constants that reads such rows."""
    for node in reversed(draft.nodes):
        if not draft.alive(node) or node.domain:
            continue
        if node.op == "Split":
            _split(draft, node)
        elif (known := picked(draft, node)) is not None:
            _pick(draft, node, *known)
    draft.prune()


def _split(draft: Draft, node: Node) -> None:
    """A Split of what was put together gives back what it was put together from."""
    shapes = [draft.shape(out) for out in node.outputs]
    axis = int(node.attrs.get("axis", 0)) % (draft.rank(node.inputs[0]) or 1)
    if any(shape is None for shape in shapes) or not all(node.outputs):
        return
    stops = np.cumsum([(shape or ())[axis] for shape in shapes])
    spans = [np.arange(stop)[before:] for before, stop in zip([0, *stops], stops, strict=False)]
    if all(trace(draft, node.inputs[0], axis, rows) is None for rows in spans if rows.size):
        return
    outputs = list(node.outputs)
    draft.remove(node)
    for out, rows in zip(outputs, spans, strict=True):
        made = Node("Slice", [node.inputs[0]], [out], {}, f"{node.name}/{out}",
                    sources=node.sources)  # fmt: skip
        if not _from_one(draft, made, axis, rows):
            _write(draft, made, node.inputs[0], axis, rows)


def _pick(draft: Draft, node: Node, axis: int, rows: Array) -> None:
    if _from_one(draft, node, axis, rows):
        return
    source = node.inputs[0]
    found = _origins(draft, source, axis, rows, 0)
    operands = draft.producer[source].inputs if source in draft.producer else []
    if not found.picks and len(found.leaves) >= len(operands):
        return
    if len(found.leaves) < 2 or len(draft.users(source)) > 1 or draft.pinned(source):
        return
    shape = list(draft.shape(source) or ())
    lengths = [(draft.shape(leaf) or ())[axis] for leaf in found.leaves]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    shape[axis] = int(starts[-1])
    kind = Type(draft.dtype(source), tuple(shape))
    draft.remove(node)
    value = draft.emit("Concat", found.leaves, kind, stem=f"{node.name}/rows",
                       sources=node.sources, attrs={"axis": axis})  # fmt: skip
    _write(draft, node, value, axis, starts[found.leaf] + found.number)


def _from_one(draft: Draft, node: Node, axis: int, rows: Array) -> bool:
    """Read the rows where they come from, when that is one place."""
    found = trace(draft, node.inputs[0], axis, rows)
    if found is None:
        return False
    if draft.alive(node):
        draft.remove(node)
    value = build(draft, found, f"{node.name}/from", node.sources)
    _write(draft, node, value, axis, found.rows)
    return True


def _write(draft: Draft, node: Node, value: str, axis: int, rows: Array) -> None:
    """The removed node's output as rows of a value: a Slice where they are at equal distances."""
    out, shape = node.outputs[0], list(draft.shape(value) or ())
    if np.array_equal(rows, np.arange(shape[axis])):
        draft.types.pop(out, None)
        draft.replace(out, value)
        return
    shape[axis] = len(rows)
    steps = np.unique(np.diff(rows))
    op, attrs, parameters = "Gather", {"axis": axis}, [rows.astype(np.int64)]
    if len(steps) <= 1 and np.all(steps > 0):
        step = int(steps[0]) if len(steps) else 1
        op, attrs = "Slice", {}
        bounds = (int(rows[0]), int(rows[-1]) + 1, axis, step)
        parameters = [np.asarray([number], np.int64) for number in bounds]
    inputs = [value, *(draft.constant_of(p, f"{node.name}/rows") for p in parameters)]
    made = Node(op, inputs, [out], dict(attrs), node.name, sources=node.sources)
    draft.add(made, [Type(draft.dtype(value), tuple(shape))])


def _origins(draft: Draft, value: str, axis: int, rows: Array, picks: int) -> _Mixed:
    """Where these rows of a value come from, when from several places."""
    maker = draft.producer.get(value)
    if maker is None or maker.domain:
        return _Mixed((value,), np.zeros(len(rows), np.int64), rows, picks)
    if maker.op == "Concat" and int(maker.attrs["axis"]) % (draft.rank(value) or 1) == axis:
        return _joined(draft, maker, axis, rows, picks)
    known = picked(draft, maker)
    if known is not None and known[0] == axis:
        return _origins(draft, maker.inputs[0], axis, known[1][rows], picks + 1)
    return _Mixed((value,), np.zeros(len(rows), np.int64), rows, picks)


def _joined(draft: Draft, maker: Node, axis: int, rows: Array, picks: int) -> _Mixed:
    leaves: dict[str, int] = {}
    leaf, number, most = np.zeros_like(rows), np.zeros_like(rows), picks
    start = 0
    for value in maker.inputs:
        stop = start + (draft.shape(value) or ())[axis]
        inside = (rows >= start) & (rows < stop)
        if inside.any():
            found = _origins(draft, value, axis, rows[inside] - start, picks)
            ids = np.asarray([leaves.setdefault(name, len(leaves)) for name in found.leaves])
            leaf[inside], number[inside] = ids[found.leaf], found.number
            most = max(most, found.picks)
        start = stop
    return _Mixed(tuple(leaves), leaf, number, most)
