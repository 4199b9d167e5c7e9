"""Where(IsNaN(y), c, y) around a Softmax that cannot be NaN is the Softmax.

Exporters guard attention against rows that are masked out entirely. A Softmax of finite values is
finite; values are finite here unless a mask with infinities is added or chosen on the way.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node

FINITE = frozenset(
    [
        "MatMul",
        "Conv",
        "Gemm",
        "LayerNormalization",
        "Softmax",
        "Sigmoid",
        "Tanh",
        "Relu",
        "Clip",
        "Gelu",
        "Gather",
        "Slice",
    ]
)
PASSING = frozenset(["Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Identity", "Cast"])
DEPTH = 8


def drop_nan_guards(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "Where" and not node.domain and draft.alive(node):
            _drop(draft, node)
    draft.prune()


def _drop(draft: Draft, where: Node) -> None:
    test = draft.producer.get(where.inputs[0])
    value = where.inputs[2]
    if test is None or test.op != "IsNaN" or test.inputs[0] != value:
        return
    softmax = draft.producer.get(value)
    if softmax is None or softmax.op != "Softmax" or not _finite(draft, softmax.inputs[0], DEPTH):
        return
    if draft.shape(value) == draft.shape(where.outputs[0]):
        draft.bypass(where, value)


def _finite(draft: Draft, value: str, depth: int, *, strict: bool = False) -> bool:
    """Whether every row keeps a finite entry, for finite inputs; strict: all entries are finite."""
    data = draft.constant(value)
    if data is not None:
        return bool(np.all(np.isfinite(data))) if strict else _some_finite(data)
    node = draft.producer.get(value)
    if node is None:
        return value in draft.inputs
    if node.domain or depth == 0:
        return False
    if node.op in FINITE:
        return True
    if node.op in PASSING:
        return _finite(draft, node.inputs[0], depth - 1, strict=strict)
    if node.op in ("Add", "Mul"):
        left, right = node.inputs
        if all(_finite(draft, v, depth - 1, strict=True) for v in node.inputs):
            return True
        masks = ((left, right), (right, left)) if node.op == "Add" and not strict else ()
        return any(
            _finite(draft, plain, depth - 1, strict=True) and _finite(draft, mask, depth - 1)
            for plain, mask in masks
        )
    return False


def _some_finite(data: Array) -> bool:
    """Every row along the last axis has a finite entry and none is NaN or +inf."""
    if data.ndim == 0:
        return bool(np.isfinite(data))
    if np.any(np.isnan(data)) or np.any(np.isposinf(data)):
        return False
    return bool(np.all(np.any(np.isfinite(data), axis=-1)))
