"""An If that is decided at run time: both branches are computed, the condition selects.

Exact where both branches give the same static shapes, since ONNX operators have no side effects.
It costs the time of both; a branch that needs other shapes than the inputs have is refused by
name. An If whose condition is known once shapes are is `fold`'s and costs nothing.
"""

from __future__ import annotations

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.draft import Draft, Node, Type
from splitter.normalize.fold import fold_constants
from splitter.normalize.inline import inline

BOTH = ("then_branch", "else_branch")


def select_branches(draft: Draft) -> None:
    """Replace every If whose condition is computed from inputs, outermost first.

    Errors: SplitterError for branches of different, or unknown, shapes or types.
    """
    while (node := _next(draft)) is not None:
        values = [inline(draft, node.attrs[key], f"{node.name}/{key[:4]}/") for key in BOTH]
        condition = _scalar(draft, node)
        draft.remove(node)
        selected = []
        for out, a, b in zip(node.outputs, *values, strict=True):
            if out:
                draft.types.pop(out, None)
                selected.append(Node("Where", [condition, a, b], [out], {}, f"{node.name}/{out}",
                                     sources=node.sources))  # fmt: skip
                draft.add(selected[-1])
        fold_constants(draft)
        _refuse_different(draft, node, selected)


def _next(draft: Draft) -> Node | None:
    """The first If in order; those behind it may still be decided by shapes it gives."""
    return next((n for n in draft.nodes if n.op == "If" and draft.shape(n.inputs[0]) is not None),
                None)  # fmt: skip


def _scalar(draft: Draft, node: Node) -> str:
    """The condition without axes, so that it leaves the shape of what it selects alone."""
    condition = node.inputs[0]
    if not draft.shape(condition):
        return condition
    shape = draft.constant_of(np.zeros(0, np.int64), f"{node.name}/scalar")
    return draft.emit("Reshape", [condition, shape], Type("bool", ()), stem=f"{node.name}/if",
                      sources=node.sources)  # fmt: skip


def _refuse_different(draft: Draft, node: Node, selected: list[Node]) -> None:
    lines = []
    for where in selected:
        if not draft.alive(where):
            continue
        (_, a, b), out = where.inputs, where.outputs[0]
        shapes = draft.shape(a), draft.shape(b)
        if None in shapes:
            continue  # named by require_static, with the node that makes it so
        if shapes[0] != shapes[1] or draft.dtype(a) != draft.dtype(b):
            lines.append(f"{out} is {shapes[0]} in one and {shapes[1]} in the other")
    if lines:
        raise SplitterError(
            "the branches of an If that is decided at run time differ: " + "; ".join(lines),
            where=node.name,
            hint="export the model with the branch that you need, or bind other shapes",
        )
