"""Boxes that are moved apart by class before non-maximum suppression.

Exporters suppress within classes by adding class * step to the boxes: no box of one class overlaps
one of another. In 8 bits such coordinates are worth nothing, so the boxes before, the class numbers
and the step are found here; the integer form adds them in 32 bits, where it costs no precision.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitter.draft import Draft, Node
from splitter.normalize.bounded.state import Rows

SHAPES = frozenset(("Unsqueeze", "Squeeze", "Reshape", "Identity", "Cast", "Expand", "Flatten"))
"""Operators that leave every row the row it is."""


@dataclass(frozen=True, slots=True)
class Apart:
    """boxes [n, 4], classes [n] of an integer type; step: None where it is computed, and then
    larger than all boxes."""

    boxes: str
    classes: str
    step: float | None


def moved_apart(rows: Rows, boxes: str) -> Apart | None:
    """What the boxes of a NonMaxSuppression were made of, if it is that."""
    node = _maker(rows.draft, boxes)
    if node is None or node.op != "Add":
        return None
    for base, offset in (node.inputs, node.inputs[::-1]):
        found = _offset(rows, offset)
        count = rows.shape(boxes)[1]
        if found is None or rows.shape(base)[-2:] != (count, 4):
            continue
        classes, step = found
        if classes in rows.numbers or base in rows.draft.constants:
            continue
        if rows.masks.get(base, None) and rows.masks[base].axis != len(rows.shape(base)) - 2:
            continue
        size = 1
        for length in rows.shape(classes):
            size *= length
        if size == count:
            return Apart(base, classes, step)
    return None


def _offset(rows: Rows, name: str) -> tuple[str, float | None] | None:
    """(class numbers, step) of a product of both."""
    node = _maker(rows.draft, name)
    if node is None or node.op != "Mul":
        return None
    for one, other in (node.inputs, node.inputs[::-1]):
        classes = _integers(rows.draft, one)
        step = rows.draft.scalar(other)
        single = step is not None or all(length == 1 for length in rows.shape(other))
        if classes and single:
            return classes, step
    return None


def _integers(draft: Draft, name: str) -> str:
    """The value of an integer type that a value is the same numbers as; "" when there is none."""
    while draft.dtype(name) not in ("int64", "int32"):
        node = draft.producer.get(name)
        if node is None or node.op not in SHAPES:
            return ""
        name = node.inputs[0]
    while (node := draft.producer.get(name)) is not None and node.op in ("Expand", *SHAPES):
        if draft.dtype(node.inputs[0]) not in ("int64", "int32"):
            break
        name = node.inputs[0]
    return name


def _maker(draft: Draft, name: str) -> Node | None:
    """What makes a value, whatever its shape; a Concat of one thing and nothing is that thing."""
    while (node := draft.producer.get(name)) is not None:
        if node.op == "Concat":
            full = [n for n in node.inputs if 0 not in (draft.shape(n) or ())]
            if len(full) != 1:
                return node
            name = full[0]
        elif node.op in SHAPES:
            name = node.inputs[0]
        else:
            return node
    return None
