"""Integers made of how many rows there are: shapes, ends of slices, numbers of picks.

Such a value is computed at run time like any other, from the number of rows that the mask has.
Beside that it is known here as a sum of numbers of rows, as long as it is moved, added and
multiplied by constants: an operator that asks for a length gets the most it can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitter.draft import Array, Node
from splitter.normalize.bounded.state import Parts, Rows, Unbounded
from splitter.normalize.evaluate import evaluate


def bounds(rows: Rows, node: Node, name: str) -> list[int]:
    """The most that each element of a value can be."""
    if name in rows.draft.constants:
        return rows.draft.ints(name) or []
    parts = rows.lengths.get(name)
    if parts is None:
        raise Unbounded(f"{node.op} {node.name} asks for a length that is computed ({name})")
    total = parts[None].reshape(-1).astype(np.int64)
    for key, part in parts.items():
        flat = part.reshape(-1).astype(np.int64)
        if key is not None and (flat < 0).any():
            raise Unbounded(f"{node.op} {node.name} asks for a length less a number of rows")
        total = total + (0 if key is None else flat * most(rows, key))
    return [int(n) for n in total]


def most(rows: Rows, key: Any) -> int:
    """The most that one number of rows can be."""
    if isinstance(key, tuple):
        return min(rows.shape(key[0])[0], int(key[1]))
    return rows.shape(key)[0]


def shape(rows: Rows, node: Node) -> None:
    """Shape of a masked value: computed of the mask, and known as a length."""
    x, out = node.inputs[0], node.outputs[0]
    known, lengths = rows.masks[x], rows.shape(x)
    span = slice(node.attrs.get("start", 0), node.attrs.get("end"))
    fixed = np.array(lengths, np.int64)
    fixed[known.axis] = 0
    counted = np.zeros(len(lengths), np.int64)
    counted[known.axis] = 1
    parts = {None: fixed[span], known.mask: counted[span]}
    if not parts[known.mask].any():
        rows.draft.make_constant(node, {out: parts[None]})
        return
    place = int(np.flatnonzero(parts[known.mask])[0])
    pieces = [rows.count(node, known.mask) if i == place else rows.const([n])
              for i, n in enumerate(parts[None])]  # fmt: skip
    value = pieces[0] if len(pieces) == 1 else rows.emit(node, "Concat", pieces, axis=0)
    rows.instead(node, value)
    rows.lengths[out] = parts


def size(rows: Rows, node: Node) -> None:
    x, out = node.inputs[0], node.outputs[0]
    known, lengths = rows.masks[x], rows.shape(x)
    times = int(np.prod(lengths)) // max(lengths[known.axis], 1)
    count = rows.emit(node, "Reshape", [rows.count(node, known.mask), rows.const([], "int64")])
    value = rows.emit(node, "Mul", [count, rows.const(times)])
    rows.instead(node, value)
    rows.lengths[out] = {None: np.zeros((), np.int64), known.mask: np.array(times, np.int64)}


LINEAR = frozenset(
    ("Concat", "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Cast",
     "Identity", "Add", "Sub", "Mul", "Neg", "Flatten", "Expand", "Floor", "Ceil", "Where")
)  # fmt: skip
"""Operators that make sums of sums; Floor and Ceil change no whole number."""
LEAST = frozenset(("Min", "ReduceMin"))


def follow(rows: Rows, node: Node) -> None:
    """Say what an operator makes of lengths, where it is known; its result is computed anyway."""
    rows.refresh(node)
    if node.op == "Equal" and _never_equal(rows, node):
        out = node.outputs[0]
        rows.draft.make_constant(node, {out: np.zeros(rows.shape(out), bool)})
        return
    if node.op in LEAST:
        _least(rows, node)
        return
    if node.op not in LINEAR or len(node.outputs) > 1:
        return
    labelled = [name for name in node.inputs if name in rows.lengths]
    if node.op == "Mul" and len(labelled) > 1:
        return
    if any(n and n not in rows.lengths and n not in rows.draft.constants for n in node.inputs):
        return
    keys = dict.fromkeys(key for name in labelled for key in rows.lengths[name])
    made = {key: _part(rows, node, key) for key in keys}
    parts = {key: part for key, part in made.items() if part is not None}
    if len(parts) < len(made):
        return
    if not any(key is not None and part.any() for key, part in parts.items()):
        rows.draft.make_constant(node, {node.outputs[0]: parts[None]})
        return
    rows.lengths[node.outputs[0]] = parts


def _never_equal(rows: Rows, node: Node) -> bool:
    """Whether a length is compared with what no length is (exporters ask for -1)."""
    one = [name for name in node.inputs if name in rows.draft.constants]
    other = [name for name in node.inputs if name in rows.lengths]
    if len(one) != 1 or len(other) != 1:
        return False
    least = all((part >= 0).all() for part in rows.lengths[other[0]].values())
    return least and bool((rows.draft.constants[one[0]] < 0).all())


def _part(rows: Rows, node: Node, key: Any) -> Array | None:
    """The operator on one summand of its inputs; constants that are no parameters count for the
    constant summand alone."""
    draft = rows.draft
    adds = node.op in ("Concat", "Add", "Sub", "Where")
    names = []
    for place, name in enumerate(node.inputs):
        if node.op == "Where" and not place:
            if name not in draft.constants:
                return None
            names.append(name)
            continue
        if name in rows.lengths:
            parts = rows.lengths[name]
            names.append(rows.const(parts.get(key, np.zeros_like(parts[None])),
                                    str(parts[None].dtype)))  # fmt: skip
        elif name and adds and key is not None:
            names.append(rows.const(np.zeros_like(draft.constants[name]), draft.dtype(name)))
        else:
            names.append(name)
    made = Node(node.op, names, list(node.outputs), node.attrs, node.name)
    values = evaluate(draft, made)
    return None if values is None else np.asarray(values[0])


def _least(rows: Rows, node: Node) -> None:
    """The smaller of a constant and one number of rows."""
    numbers: list[int] = []
    masks: list[str] = []
    for name in node.inputs if node.op == "Min" else node.inputs[:1]:
        if name in rows.draft.constants:
            numbers += rows.draft.ints(name) or []
            continue
        parts = rows.lengths.get(name)
        if parts is None:
            return
        for place in range(parts[None].size):
            keys = [k for k, p in parts.items() if k is not None and p.reshape(-1)[place]]
            if not keys:
                numbers.append(int(parts[None].reshape(-1)[place]))
            elif len(keys) == 1 and isinstance(keys[0], str) and _alone(parts, keys[0], place):
                masks.append(keys[0])
            else:
                return
    out = node.outputs[0]
    if len(set(masks)) != 1 or not numbers or int(np.prod(rows.shape(out))) != 1:
        return
    kind, lengths = rows.draft.dtype(out), rows.shape(out)
    rows.lengths[out] = {
        None: np.zeros(lengths, kind),
        (masks[0], min(numbers)): np.ones(lengths, kind),
    }


def _alone(parts: Parts, key: str, place: int) -> bool:
    return parts[key].reshape(-1)[place] == 1 and not parts[None].reshape(-1)[place]


COUNTING: dict[str, Callable[[Rows, Node], None]] = {"Shape": shape, "Size": size}
