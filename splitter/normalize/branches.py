"""An If that is decided at run time: both branches are computed, the condition selects.

Exact where both branches give the same static shapes, since ONNX operators have no side effects.
It costs the time of both; a branch that needs other shapes than the inputs have is refused by
name. An If whose condition is known once shapes are is `fold`'s and costs nothing.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.fold import SELECTS, agreed, fold_constants
from splitter.normalize.inline import inline

BOTH = ("then_branch", "else_branch")
DIFFER = "differ"
"""The mark of an If that stays."""

Lengths = tuple[int | None, ...] | None
"""What is known of a shape."""


def select_branches(draft: Draft) -> None:
    """Replace every If whose condition is computed from inputs, outermost first.

    One with branches of different shapes or types stays, and has the reason as its mark `DIFFER`.
    """
    while (node := _next(draft)) is not None:
        former, name = draft.snapshot(), node.name
        values = [inline(draft, node.attrs[key], f"{node.name}/{key[:4]}/") for key in BOTH]
        condition = _scalar(draft, node)
        draft.remove(node)
        selected = []
        for out, a, b in zip(node.outputs, *values, strict=True):
            if out:
                draft.types.pop(out, None)
                selected.append(Node("Where", [condition, a, b], [out], {}, f"{node.name}/{out}",
                                     sources=node.sources, marks={SELECTS: "an If"}))  # fmt: skip
                draft.add(selected[-1])
        fold_constants(draft)
        different = _different(draft, selected)
        if different:
            draft.restore(former)
            kept = next(n for n in draft.nodes if n.name == name)
            kept.marks[DIFFER] = different


def _next(draft: Draft) -> Node | None:
    """The first If in order; those behind it may still be decided by shapes it gives."""
    return next((n for n in draft.nodes if n.op == "If" and DIFFER not in n.marks
                 and draft.shape(n.inputs[0]) is not None), None)  # fmt: skip


def _scalar(draft: Draft, node: Node) -> str:
    """The condition without axes, so that it leaves the shape of what it selects alone."""
    condition = node.inputs[0]
    if not draft.shape(condition):
        return condition
    shape = draft.constant_of(np.zeros(0, np.int64), f"{node.name}/scalar")
    return draft.emit("Reshape", [condition, shape], Type("bool", ()), stem=f"{node.name}/if",
                      sources=node.sources)  # fmt: skip


def _different(draft: Draft, selected: list[Node]) -> str:
    """How the branches differ, "" where they do not."""
    lines = []
    for where in selected:
        if not draft.alive(where):
            continue
        (_, a, b), out = where.inputs, where.outputs[0]
        one, other = _lengths(draft, a), _lengths(draft, b)
        unknown = one is None and other is None  # named by require_static, with its node
        apart = not unknown and agreed(draft, a, b) is None
        if apart or draft.dtype(a) != draft.dtype(b):
            lines.append(f"{out} is {_written(one)} in one and {_written(other)} in the other")
    return f"its branches differ: {', '.join(lines)}" if lines else ""


def _lengths(draft: Draft, value: str) -> Lengths:
    known = draft.known(value)
    return None if known is None else known.shape


def _written(lengths: Lengths) -> str:
    """ "(2, ?)": a length that data decides is not known."""
    if lengths is None:
        return "of a shape that data decides"
    return str(tuple("?" if d is None else d for d in lengths)).replace("'", "")
