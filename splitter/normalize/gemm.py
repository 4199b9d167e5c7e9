"""Gemm -> MatMul + Add: alpha, beta and the transposes go into the constants."""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type


def split_gemm(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "Gemm" and not node.domain:
            _rewrite(draft, node)
    draft.prune()


def _rewrite(draft: Draft, node: Node) -> None:
    left, right, bias = node.inputs[0], node.inputs[1], node.input(2)
    alpha, beta = (
        float(node.attrs.get("alpha", 1.0)),
        float(node.attrs.get("beta", 1.0)),
    )
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    draft.remove(node)
    left = _operand(draft, left, bool(node.attrs.get("transA", 0)), 1.0, node)
    right = _operand(draft, right, bool(node.attrs.get("transB", 0)), alpha, node)
    if bias and beta != 0.0:
        bias = _operand(draft, bias, False, beta, node)
        product = draft.name(f"{out}/product")
    else:
        bias, product = "", out
    draft.add(
        Node("MatMul", [left, right], [product], {}, node.name, sources=node.sources),
        [known],
    )
    if bias:
        name = f"{node.name}/bias"
        draft.add(Node("Add", [product, bias], [out], {}, name, sources=node.sources), [known])


def _operand(draft: Draft, value: str, transpose: bool, factor: float, node: Node) -> str:
    """The operand transposed and scaled: a new constant, or nodes when it is computed."""
    data = draft.constant(value)
    if data is not None:
        if not transpose and factor == 1.0:
            return value
        new = data.T if transpose else data
        if factor != 1.0:
            new = (new.astype(np.float64) * factor).astype(data.dtype)
        return draft.constant_of(np.ascontiguousarray(new), value)
    shape, dtype = draft.shape(value) or (), draft.dtype(value)
    if transpose:
        known = Type(dtype, shape[::-1])
        value = draft.emit("Transpose", [value], known, stem=value, attrs={"perm": [1, 0]},
                           sources=node.sources)  # fmt: skip
        shape = shape[::-1]
    if factor != 1.0:
        scale = draft.constant_of(np.asarray(factor, dtype), f"{node.name}/factor")
        value = draft.emit("Mul", [value, scale], Type(dtype, shape), stem=value,
                           sources=node.sources)  # fmt: skip
    return value
