"""Einsum of two operands -> Transpose, Reshape, MatMul, Reshape, Transpose.

Indices are of four kinds: in both and in the result (batch), in both and not in it (contracted),
in one operand and in the result (its rows or columns). What does not fit stays an Einsum.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.draft import Draft, Node, Type


def expand_einsum(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "Einsum" and not node.domain:
            _rewrite(draft, node)
    draft.prune()


def _rewrite(draft: Draft, node: Node) -> None:
    terms = _terms(str(node.attrs["equation"]))
    shapes = [draft.shape(value) for value in node.inputs]
    if terms is None or len(node.inputs) != 2 or any(s is None for s in shapes):
        return
    (left, right), result = terms
    if any(len(set(t)) != len(t) for t in (left, right, result)):
        return
    if len(left) != len(shapes[0] or ()) or len(right) != len(shapes[1] or ()):
        return
    size: dict[str, int] = {}
    for term, shape in zip((left, right), shapes, strict=True):
        for letter, length in zip(term, shape or (), strict=True):
            if size.setdefault(letter, length) != length:
                return  # broadcasting of length 1
    batch = [c for c in result if c in left and c in right]
    contracted = [c for c in left if c in right and c not in result]
    rows = [c for c in result if c in left and c not in right]
    columns = [c for c in result if c in right and c not in left]
    if set(left) != {*batch, *contracted, *rows} or set(right) != {
        *batch,
        *contracted,
        *columns,
    }:
        return
    _write(draft, node, (left, right, result), (batch, contracted, rows, columns), size)


def _terms(equation: str) -> tuple[tuple[str, str], str] | None:
    text = equation.replace(" ", "")
    if "." in text or text.count(",") != 1:
        return None
    operands, arrow, result = text.partition("->")
    left, right = operands.split(",")
    if not arrow:
        letters = sorted(set(left + right))
        result = "".join(c for c in letters if (left + right).count(c) == 1)
    return (left, right), result


def _write(
    draft: Draft,
    node: Node,
    terms: tuple[str, str, str],
    kinds: tuple[list[str], list[str], list[str], list[str]],
    size: dict[str, int],
) -> None:
    batch, contracted, rows, columns = kinds
    left, right, result = terms
    dtype, out = draft.dtype(node.inputs[0]), node.outputs[0]
    known = draft.types[out]
    draft.remove(node)
    lead = tuple(size[c] for c in batch)
    inner, m, n = (prod(size[c] for c in group) for group in (contracted, rows, columns))
    a = _arranged(
        draft,
        node,
        node.inputs[0],
        left,
        [*batch, *rows, *contracted],
        (*lead, m, inner),
        size,
    )
    b = _arranged(
        draft,
        node,
        node.inputs[1],
        right,
        [*batch, *contracted, *columns],
        (*lead, inner, n),
        size,
    )
    product = draft.name(out)
    draft.add(Node("MatMul", [a, b], [product], {}, node.name, sources=node.sources),
              [Type(dtype, (*lead, m, n))])  # fmt: skip
    order = [*batch, *rows, *columns]
    spread = _reshaped(draft, node, product, tuple(size[c] for c in order))
    perm = [order.index(c) for c in result]
    draft.add(Node("Transpose", [spread], [out], {"perm": perm}, f"{node.name}/result",
                   sources=node.sources), [known])  # fmt: skip


def _arranged(
    draft: Draft,
    node: Node,
    value: str,
    term: str,
    order: list[str],
    shape: tuple[int, ...],
    size: dict[str, int],
) -> str:
    perm = [term.index(c) for c in order]
    if perm != sorted(perm):
        known = Type(draft.dtype(value), tuple(size[c] for c in order))
        value = draft.emit("Transpose", [value], known, stem=f"{node.name}/operand",
                           attrs={"perm": perm}, sources=node.sources)  # fmt: skip
    return _reshaped(draft, node, value, shape)


def _reshaped(draft: Draft, node: Node, value: str, shape: tuple[int, ...]) -> str:
    if draft.shape(value) == shape:
        return value
    target = draft.constant_of(np.asarray(shape, np.int64), f"{node.name}/shape")
    known = Type(draft.dtype(value), shape)
    return draft.emit("Reshape", [value, target], known, stem=f"{node.name}/view",
                      sources=node.sources)  # fmt: skip
