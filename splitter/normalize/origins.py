"""Where rows of a value along an axis come from: through Concats, picks and Transposes.

Decides nothing and changes nothing until `build`; `rows` says what is worth rewriting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitter.draft import Array, Draft, Node, Type


@dataclass(frozen=True)
class Source:
    """One value, in an order of axes (`perm`, none: its own) or several side by side (`parts`,
    along `axis`), of which `rows` are read."""

    value: str
    rows: Array
    perm: tuple[int, ...] = ()
    parts: tuple[Source, ...] = ()
    axis: int = 0


def picked(draft: Draft, node: Node) -> tuple[int, Array] | None:
    """Axis and row numbers of a Slice along one axis, or of a Gather by constant numbers."""
    shape = draft.shape(node.inputs[0]) if node.inputs else None
    if node.domain or not shape or node.inputs[0] in draft.constants:
        return None
    if node.op == "Gather":
        index = draft.constant(node.inputs[1])
        axis = int(node.attrs.get("axis", 0)) % len(shape)
        if index is None or index.ndim != 1 or not index.size:
            return None
        return axis, index.astype(np.int64) % shape[axis]
    return _sliced(draft, node, shape) if node.op == "Slice" else None


def _sliced(draft: Draft, node: Node, shape: tuple[int, ...]) -> tuple[int, Array] | None:
    given = [draft.ints(node.input(i)) if node.input(i) else None for i in (1, 2, 3, 4)]
    if any(node.input(i) and given[i - 1] is None for i in (1, 2, 3, 4)):
        return None
    starts, ends, axes, steps = given
    if starts is None or ends is None or len(starts) != 1:
        return None
    axis = (axes or [0])[0] % len(shape)
    rows = np.arange(shape[axis])[slice(starts[0], ends[0], (steps or [1])[0])]
    return (axis, rows) if rows.size else None


def trace(draft: Draft, value: str, axis: int, rows: Array) -> Source | None:
    """The one place that all these rows come from; None when it is the value itself."""
    maker = draft.producer.get(value)
    if maker is None or maker.domain:
        return None
    if maker.op == "Concat":
        along = int(maker.attrs["axis"]) % (draft.rank(value) or 1)
        return _of_operand(draft, maker, axis, rows) if along == axis else _beside(
            draft, maker, along, axis, rows
        )  # fmt: skip
    if maker.op == "Transpose":
        rank = draft.rank(value) or 0
        perm = tuple(maker.attrs.get("perm") or range(rank)[::-1])
        found = trace(draft, maker.inputs[0], perm[axis], rows)
        return found and Source("", found.rows, perm, (found,), axis)
    known = picked(draft, maker)
    if known is None or known[0] != axis:
        return None
    inner = known[1][rows]
    return trace(draft, maker.inputs[0], axis, inner) or Source(maker.inputs[0], inner)


def _of_operand(draft: Draft, maker: Node, axis: int, rows: Array) -> Source | None:
    start = 0
    for value in maker.inputs:
        stop = start + (draft.shape(value) or ())[axis]
        if rows.min() >= start and rows.max() < stop:
            return trace(draft, value, axis, rows - start) or Source(value, rows - start)
        start = stop
    return None


def _beside(draft: Draft, maker: Node, along: int, axis: int, rows: Array) -> Source | None:
    """Rows of values side by side, where all of some value is read of each: no pick remains."""
    parts = []
    for value in maker.inputs:
        found = trace(draft, value, axis, rows)
        if found is None or not whole(draft, found, axis):
            return None
        parts.append(found)
    return Source("", np.arange(len(rows)), (), tuple(parts), along)


def length(draft: Draft, source: Source, axis: int) -> int:
    """How many rows there are along an axis of the source."""
    if source.perm:
        return length(draft, source.parts[0], source.perm[axis])
    if source.parts:
        return len(source.rows)
    return (draft.shape(source.value) or ())[axis]


def whole(draft: Draft, source: Source, axis: int) -> bool:
    """Whether all rows are read, in order."""
    return np.array_equal(source.rows, np.arange(length(draft, source, axis)))


def build(draft: Draft, source: Source, stem: str, sources: Sequence[str]) -> str:
    """The name of the value that the rows are of, its Transposes and Concats written."""
    if not source.parts:
        return source.value
    values = [build(draft, part, stem, sources) for part in source.parts]
    shapes = [draft.shape(value) or () for value in values]
    attrs: dict[str, object]
    if source.perm:
        shape = tuple(shapes[0][axis] for axis in source.perm)
        op, attrs = "Transpose", {"perm": list(source.perm)}
    else:
        total = sum(one[source.axis] for one in shapes)
        shape = (*shapes[0][: source.axis], total, *shapes[0][source.axis + 1 :])
        op, attrs = "Concat", {"axis": source.axis}
    kind = Type(draft.dtype(values[0]), shape)
    return draft.emit(op, values, kind, stem=stem, sources=tuple(sources), attrs=attrs)
