"""An If between nothing and rows, decided by whether there are rows to make them of.

Exporters guard steps that do not take empty input: no box at all gives no box, anything else goes
through non-maximum suppression. With a mask the step takes no row as well, and gives none. So the
branch that makes rows is taken always, where the condition is the number of rows being 0 and all
that the branch gives hangs on the mask of these rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from splitter.draft import Array, Node
from splitter.normalize.bounded.lengths import most
from splitter.normalize.bounded.state import Rows, Unbounded
from splitter.normalize.evaluate import evaluate
from splitter.normalize.inline import inline

BRANCHES = ("then_branch", "else_branch")


def take_rows(rows: Rows, node: Node) -> tuple[list[str], str]:
    """Replace the If by its branch that makes rows; their values, and the mask they must hang on.
    Errors: Unbounded when it is another If."""
    condition = node.inputs[0]
    empty = _empty_branch(node)
    key = _only_count(rows, condition)
    if empty is None or key is None:
        raise Unbounded(f"If {node.name} is between rows that may be missing")
    counts = sorted({0, 1, 2, most(rows, key)})
    answers = {count: _answer(rows, condition, key, count) for count in counts}
    if any(answer is not ((count == 0) == (empty == 0)) for count, answer in answers.items()):
        raise Unbounded(f"If {node.name} asks for something else than rows to be there")
    draft = rows.draft
    graph = node.attrs[BRANCHES[1 - empty]]
    draft.remove(node)
    names = []
    for out, inner in zip(node.outputs, inline(draft, graph, f"{node.name}/"), strict=True):
        if out:
            names.append(out if draft.pinned(out) else inner)
            draft.types.pop(out, None)
            draft.replace(out, inner)
    return names, key[0] if isinstance(key, tuple) else str(key)


def require_hanging(rows: Rows, name: str, mask: str) -> None:
    """Errors: Unbounded unless which rows of a value there are follows from another mask."""
    known = rows.masks.get(name)
    waiting, seen = [known.mask if known else ""], set[str]()
    while waiting:
        value = waiting.pop()
        if value == mask:
            return
        node = rows.draft.producer.get(value)
        if node is not None and value not in seen:
            seen.add(value)
            waiting += [one for one in node.inputs if one]
    raise Unbounded(f"{name} may have rows where there are none to make them of")


def _empty_branch(node: Node) -> int | None:
    """Which of both gives constants without elements, and nothing else."""
    for place, name in enumerate(BRANCHES):
        graph = node.attrs[name]
        shapes = {
            inner.output[0]: list(inner.attribute[0].t.dims)
            for inner in graph.node
            if inner.op_type == "Constant" and inner.attribute[0].name == "value"
        }
        shapes |= {one.name: list(one.dims) for one in graph.initializer}
        if all(0 in shapes.get(out.name, [1]) for out in graph.output):
            return place
    return None


def _only_count(rows: Rows, name: str) -> Any:
    """The one number of rows that a value is computed of; None when it is of more than that."""
    found: set[Any] = set()
    waiting = [name]
    while waiting:
        value = waiting.pop()
        if value in rows.lengths:
            found |= {k for k, part in rows.lengths[value].items() if k is not None and part.any()}
        elif value not in rows.draft.constants:
            node = rows.draft.producer.get(value)
            if node is None:
                return None
            waiting += [one for one in node.inputs if one]
    return found.pop() if len(found) == 1 else None


def _answer(rows: Rows, name: str, key: Any, count: int) -> bool | None:
    """A condition with so many rows."""
    value = _with_count(rows, name, key, count)
    return None if value is None or value.size != 1 else bool(value.reshape(-1)[0])


def _with_count(rows: Rows, name: str, key: Any, count: int) -> Array | None:
    if name in rows.draft.constants:
        return rows.draft.constants[name]
    if name in rows.lengths:
        parts = rows.lengths[name]
        return np.asarray(parts[None] + parts.get(key, np.zeros_like(parts[None])) * count)
    node = rows.draft.producer[name]
    given = [_with_count(rows, one, key, count) if one else None for one in node.inputs]
    if any(one and array is None for one, array in zip(node.inputs, given, strict=True)):
        return None
    names = ["" if array is None else rows.const(array, array.dtype.name) for array in given]
    values = evaluate(rows.draft, Node(node.op, names, list(node.outputs), node.attrs, node.name))
    return None if values is None else values[node.outputs.index(name)]
