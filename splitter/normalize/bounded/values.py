"""How rows that may be missing pass through operators that calculate.

One by one: the rows stay where they are. Along the rows: missing ones get the number that changes
nothing. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Node
from splitter.normalize.bounded.lengths import most
from splitter.normalize.bounded.state import LOWEST, Masked, Numbers, Rows, Unbounded

ELEMENTWISE = frozenset(
    ("Abs", "Acos", "Add", "And", "Asin", "Atan", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "Cast",
     "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater",
     "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu",
     "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
     "Pow", "PRelu", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus",
     "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh", "Where", "Xor")
)  # fmt: skip
KEEP_NUMBERS = frozenset(("Cast", "Identity"))
ALONG = frozenset(("Softmax", "LogSoftmax", "LayerNormalization", "CumSum", "Hardmax"))
"""Operators along an axis attribute (or from it on), or along a constant axis."""

NEUTRAL = {
    "ReduceMax": LOWEST, "ReduceMin": -LOWEST, "ReduceSum": 0.0, "ReduceProd": 1.0,
    "ReduceL1": 0.0, "ReduceL2": 0.0, "ReduceSumSquare": 0.0, "ArgMax": LOWEST, "ArgMin": -LOWEST,
}  # fmt: skip


def elementwise(rows: Rows, node: Node) -> None:
    """Masked inputs must be masked alike; others may only be broadcast along the rows."""
    if node.op not in KEEP_NUMBERS:
        rows.draft.set_inputs(node, [rows.real(node, n) if n else n for n in node.inputs])
    rank = max(len(rows.shape(name)) for name in node.inputs if name)
    found = {Masked(rows.masks[n].axis + rank - len(rows.shape(n)), rows.masks[n].mask)
             for n in node.inputs if n in rows.masks}  # fmt: skip
    if len(found) > 1:
        raise Unbounded(f"{node.op} {node.name} joins values whose rows are missing independently")
    for known in found:
        for name in node.inputs:
            axis = known.axis - rank + (len(rows.shape(name)) if name else 0)
            if name and name not in rows.masks and axis >= 0 and rows.shape(name)[axis] != 1:
                raise Unbounded(f"{node.op} {node.name} joins {name} to rows that may be missing")
    rows.refresh(node)
    for known in found:
        rows.masks[node.outputs[0]] = known
    if node.op in KEEP_NUMBERS and node.inputs[0] in rows.numbers:
        rows.numbers[node.outputs[0]] = rows.numbers[node.inputs[0]]


def along(rows: Rows, node: Node) -> None:
    """Along another axis than the rows."""
    x = node.inputs[0]
    rows.plain(node, x)
    known, rank = rows.masks[x], len(rows.shape(x))
    axis = rows.draft.scalar(node.inputs[1]) if node.op == "CumSum" else node.attrs.get("axis", -1)
    if axis is None or any(name in rows.masks for name in node.inputs[1:]):
        raise Unbounded(f"{node.op} {node.name} reads other rows that may be missing")
    first = int(axis) % rank
    if node.op == "CumSum" and first == known.axis and not node.attrs.get("reverse", 0):
        rows.draft.set_input(node, 0, rows.filled(node, x, 0))
    elif first == known.axis or (node.op == "LayerNormalization" and known.axis > first):
        raise Unbounded(f"{node.op} {node.name} is along rows that may be missing")
    rows.refresh(node)
    rows.masks[node.outputs[0]] = known


def matmul(rows: Rows, node: Node) -> None:
    """Rows of the first operand that are rows of the product."""
    a, b = node.inputs[:2]
    rows.plain(node, a)
    known = rows.masks.get(a)
    if known is None or b in rows.masks or known.axis != len(rows.shape(a)) - 2:
        raise Unbounded(f"{node.op} {node.name} sums over rows that may be missing")
    if node.op == "Gemm" and (node.attrs.get("transA", 0) or len(rows.shape(node.input(2))) > 1):
        raise Unbounded(f"{node.op} {node.name} sums over rows that may be missing")
    rows.refresh(node)
    rows.masks[node.outputs[0]] = Masked(len(rows.shape(node.outputs[0])) - 2, known.mask)


def reduction(rows: Rows, node: Node) -> None:
    x, out = rows.real(node, node.inputs[0]), node.outputs[0]
    known, rank = rows.masks.get(x), len(rows.shape(x))
    if known is None:
        raise Unbounded(f"the axes of {node.name} are computed")
    picks = node.op in ("ArgMax", "ArgMin")
    if picks:
        axes = [int(node.attrs.get("axis", 0))]
    else:
        given = rows.draft.ints(node.inputs[1]) if node.input(1) else list(range(rank))
        if given is None:
            raise Unbounded(f"the axes of {node.name} are computed")
        axes = given or list(range(rank))
    axes = [axis % rank for axis in axes]
    if known.axis in axes:
        x = _neutral(rows, node, x)
    rows.draft.set_input(node, 0, x)
    rows.refresh(node)
    if known.axis in axes:
        if picks:
            rows.numbers[out] = Numbers(known.mask)
        return
    gone = 0 if node.attrs.get("keepdims", 1) else sum(axis < known.axis for axis in axes)
    rows.masks[out] = Masked(known.axis - gone, known.mask)


def _neutral(rows: Rows, node: Node, x: str) -> str:
    if node.op not in NEUTRAL:
        raise Unbounded(f"{node.op} {node.name} is over rows that may be missing")
    kind = np.dtype(rows.draft.dtype(x))
    value = NEUTRAL[node.op]
    if kind.kind in "iu":
        value = float(np.clip(value, np.iinfo(np.int32).min, np.iinfo(np.int32).max))
    return rows.filled(node, x, value)


def top_k(rows: Rows, node: Node) -> None:
    """Missing rows rank last; so many as ONNX gives of them are there."""
    x, k = node.inputs[:2]
    known, shape = rows.masks.get(x), rows.shape(x)
    axis = int(node.attrs.get("axis", -1)) % len(shape)
    parts = rows.lengths.get(k)
    fixed = rows.draft.ints(k)
    if known is None or (parts is None and fixed is None):
        raise Unbounded(f"{node.op} {node.name} gives as many values as is computed")
    rows.plain(node, x)
    if known.axis != axis:
        rows.refresh(node)
        for out in filter(None, node.outputs):
            rows.masks[out] = known
        return
    count, mask = shape[axis], known.mask
    if fixed is not None:
        count = min(count, fixed[0])
    elif parts is not None:
        keys = [key for key, part in parts.items() if key is not None and part.any()]
        if len(keys) != 1 or parts[None].any() or int(parts[keys[0]].reshape(-1)[0]) != 1:
            raise Unbounded(f"{node.op} {node.name} gives as many values as is computed")
        if (keys[0][0] if isinstance(keys[0], tuple) else keys[0]) != mask:
            raise Unbounded(f"{node.op} {node.name} counts other rows than its own")
        count = min(count, most(rows, keys[0]))
    largest = bool(node.attrs.get("largest", 1))
    filled = rows.filled(node, x, LOWEST if largest else -LOWEST)
    rows.draft.set_inputs(node, [filled, rows.const([count])])
    rows.refresh(node)
    _ranked(rows, node, known, fixed is not None)


def _ranked(rows: Rows, node: Node, known: Masked, full: bool) -> None:
    """Where the rows of the result are; all of them are there when ONNX gives so many always."""
    values, indices = node.outputs
    if not indices:
        node.outputs[1] = indices = rows.draft.name(f"{node.name}/indices")
        rows.refresh(node)
    rows.numbers[indices] = Numbers(known.mask)
    if full:
        return
    shape = rows.shape(indices)
    if int(np.prod(shape)) != shape[known.axis]:
        raise Unbounded(f"{node.op} {node.name} ranks several rows of rows that may be missing")
    flat = rows.emit(node, "Reshape", [indices, rows.const([-1])])
    mask = rows.emit(node, "Gather", [known.mask, flat], axis=0)
    for out in (values, indices):
        if out:
            rows.masks[out] = Masked(known.axis, mask)


VALUES: dict[str, Callable[[Rows, Node], None]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(ALONG, along),
    **dict.fromkeys(NEUTRAL, reduction),
    **dict.fromkeys(("ReduceMean", "ReduceLogSumExp", "ReduceLogSum"), reduction),
    **dict.fromkeys(("MatMul", "Gemm"), matmul),
    "TopK": top_k,
}
