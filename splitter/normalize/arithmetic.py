"""Writes arithmetic in few forms and merges chains of constants.

Division by a constant is Mul, subtraction of a constant is Add, small powers are products, Sum, Min
and Max have two operands, Where with a constant condition is one of its branches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Array, Draft, Node, Type


def simplify_arithmetic(draft: Draft) -> None:
    """The forms; nothing is merged yet, so that patterns of exporters are still whole."""
    for node in draft.nodes:
        rule = _RULES.get(node.op) if not node.domain else None
        if rule is not None and draft.alive(node):
            rule(draft, node)
    draft.prune()


def merge_constants(draft: Draft) -> None:
    """Mul of Mul, Add of Add by constants are one; Mul by 1 and Add of 0 are none."""
    for node in draft.nodes:
        if node.op in ("Mul", "Add") and not node.domain and draft.alive(node):
            _merge(draft, node)
    for node in draft.nodes:
        if node.op in ("Mul", "Add") and not node.domain and draft.alive(node):
            _drop_neutral(draft, node)
    draft.prune()


def constant_side(draft: Draft, node: Node) -> tuple[int, Array] | None:
    """(index, data) of the one constant operand of a node with two operands."""
    if len(node.inputs) != 2:
        return None
    left, right = draft.constant(node.inputs[0]), draft.constant(node.inputs[1])
    if (left is None) == (right is None):
        return None
    return (0, left) if left is not None else (1, right)  # type: ignore[return-value]


def is_float(draft: Draft, value: str) -> bool:
    return draft.dtype(value) in ("float32", "float64", "float16")


def _div(draft: Draft, node: Node) -> None:
    divisor = draft.constant(node.inputs[1])
    if divisor is None or not is_float(draft, node.inputs[1]) or np.any(divisor == 0):
        return
    inverse = (1.0 / divisor.astype(np.float64)).astype(divisor.dtype)
    if not np.all(np.isfinite(inverse)):
        return
    name = draft.constant_of(inverse, f"{node.inputs[1]}/inverse")
    node.op = "Mul"
    draft.set_input(node, 1, name)


def _sub(draft: Draft, node: Node) -> None:
    term = draft.constant(node.inputs[1])
    if term is None or not is_float(draft, node.inputs[1]):
        return
    name = draft.constant_of(np.asarray(-term), f"{node.inputs[1]}/negative")
    node.op = "Add"
    draft.set_input(node, 1, name)


def _pow(draft: Draft, node: Node) -> None:
    exponent = draft.scalar(node.inputs[1])
    base, out = node.inputs[0], node.outputs[0]
    known = draft.types.get(out)
    if exponent is None or known is None or not is_float(draft, base):
        return
    if known.shape != draft.types[base].shape or known.dtype != draft.dtype(base):
        return
    if exponent == 1.0:
        draft.bypass(node, base)
    elif exponent == 2.0:
        node.op = "Mul"
        draft.set_inputs(node, [base, base])
    elif exponent == 3.0:
        square = draft.emit("Mul", [base, base], known, stem=out, sources=node.sources)
        node.op = "Mul"
        draft.set_inputs(node, [square, base])
    elif exponent in (0.5, -0.5, -1.0):
        source = base
        if exponent == -0.5:
            source = draft.emit("Sqrt", [base], known, stem=out, sources=node.sources)
        node.op = "Sqrt" if exponent == 0.5 else "Reciprocal"
        draft.set_inputs(node, [source])


def _variadic(op: str) -> Callable[[Draft, Node], None]:
    """Sum, Min, Max of many operands as a chain of two."""

    def rule(draft: Draft, node: Node) -> None:
        values = list(node.inputs)
        dtype = draft.dtype(node.outputs[0])
        while len(values) > 2:
            shape = np.broadcast_shapes(draft.shape(values[0]) or (), draft.shape(values[1]) or ())
            pair = draft.emit(op, values[:2], Type(dtype, shape), stem=node.outputs[0],
                              sources=node.sources)  # fmt: skip
            values = [pair, *values[2:]]
        node.op = op if len(values) == 2 else "Identity"
        draft.set_inputs(node, values)
        if len(values) == 1:
            draft.bypass(node, values[0])

    return rule


def _mean(draft: Draft, node: Node) -> None:
    count, out = len(node.inputs), node.outputs[0]
    known = draft.types[out]
    if count == 1:
        draft.bypass(node, node.inputs[0])
        return
    total = draft.name(f"{out}/sum")
    add = draft.add(
        Node("Sum", list(node.inputs), [total], {}, total, sources=node.sources),
        [known],
    )
    share = draft.constant_of(np.asarray(1.0 / count, known.dtype), f"{out}/share")
    node.op = "Mul"
    draft.set_inputs(node, [total, share])
    _variadic("Add")(draft, add)


def _where(draft: Draft, node: Node) -> None:
    condition = draft.constant(node.inputs[0])
    if condition is None or condition.size == 0 or condition.all() != condition.any():
        return
    chosen = node.inputs[1 if condition.all() else 2]
    shape = draft.shape(node.outputs[0])
    if shape is None:
        return
    if draft.shape(chosen) == shape:
        draft.bypass(node, chosen)
        return
    node.op = "Expand"
    target = draft.constant_of(np.asarray(shape, np.int64), f"{node.name}/shape")
    draft.set_inputs(node, [chosen, target])


def _max(draft: Draft, node: Node) -> None:
    """Max(x, 0) is Relu."""
    side = constant_side(draft, node)
    if side is not None and side[1].size == 1 and float(side[1].reshape(-1)[0]) == 0.0:
        value = node.inputs[1 - side[0]]
        if is_float(draft, value) and draft.shape(value) == draft.shape(node.outputs[0]):
            node.op = "Relu"
            draft.set_inputs(node, [value])
            return
    _variadic("Max")(draft, node)


def _clip(draft: Draft, node: Node) -> None:
    """Bounds at infinity are none; 0 alone below is Relu; computed bounds are Max and Min."""
    if any(name and draft.constant(name) is None for name in node.inputs[1:3]):
        _clip_by_values(draft, node)
        return
    bounds: list[str] = []
    for index in (1, 2):
        name = node.input(index)
        data = draft.scalar(name) if name else None
        bounds.append("" if data is not None and np.isinf(data) else name)
    draft.set_inputs(node, [node.inputs[0], *bounds])
    if not any(bounds):
        draft.bypass(node, node.inputs[0])
    elif not bounds[1] and draft.scalar(bounds[0]) == 0.0 and is_float(draft, node.inputs[0]):
        node.op = "Relu"
        draft.set_inputs(node, node.inputs[:1])


def _clip_by_values(draft: Draft, node: Node) -> None:
    """max(x, low), then min(.., high): the order ONNX states for bounds that cross."""
    value, low, high = node.inputs[0], node.input(1), node.input(2)
    known = draft.types[node.outputs[0]]
    if low and high:
        value = draft.emit("Max", [value, low], known, stem=node.outputs[0], sources=node.sources)
    node.op = "Min" if high else "Max"
    draft.set_inputs(node, [value, high or low])


def _merge(draft: Draft, node: Node) -> None:
    side = constant_side(draft, node)
    if side is None or not is_float(draft, node.outputs[0]):
        return
    index, outer = side
    maker = draft.producer.get(node.inputs[1 - index])
    if maker is not None and maker.op in _VIEWS and not maker.domain:
        _merge_through(draft, node, index, outer)
        return
    if maker is None or maker.op != node.op or maker.domain:
        return
    inner_side = constant_side(draft, maker)
    if inner_side is None or draft.only_user(maker.outputs[0]) is not node:
        return
    inner_index, inner = inner_side
    if inner.size != 1 and outer.size != 1 and inner.shape != outer.shape:
        return
    value = maker.inputs[1 - inner_index]
    function = np.multiply if node.op == "Mul" else np.add
    merged = function(inner.astype(np.float64), outer.astype(np.float64)).astype(outer.dtype)
    name = draft.constant_of(merged, f"{node.name}/merged")
    node.sources = tuple(dict.fromkeys((*maker.sources, *node.sources)))
    draft.set_inputs(node, [value, name])


def _merge_through(draft: Draft, node: Node, index: int, outer: Array) -> None:
    """An inner constant of one number passes Reshape, Transpose and Slice."""
    value, reader = node.inputs[1 - index], node
    between: list[str] = []
    while draft.only_user(value) is reader:
        maker = draft.producer.get(value)
        if maker is None or maker.domain or maker.op not in (*_VIEWS, node.op):
            return
        if maker.op in _VIEWS:
            between.append(value)
            value, reader = maker.inputs[0], maker
            continue
        side = constant_side(draft, maker)
        source = maker.inputs[1 - side[0]] if side is not None else ""
        if side is None or side[1].size != 1 or draft.shape(source) != draft.shape(value):
            return
        function = np.multiply if node.op == "Mul" else np.add
        inner = side[1].reshape(-1)[0].astype(np.float64)
        merged = function(outer.astype(np.float64), inner).astype(outer.dtype)
        draft.set_input(node, index, draft.constant_of(merged, f"{node.name}/merged"))
        node.sources = tuple(dict.fromkeys((*maker.sources, *node.sources)))
        draft.bypass(maker, source)
        for changed in between:
            draft.rename(changed)
        return


def _drop_neutral(draft: Draft, node: Node) -> None:
    side = constant_side(draft, node)
    if side is None:
        return
    index, data = side
    value = node.inputs[1 - index]
    neutral = 1 if node.op == "Mul" else 0
    if np.all(data == neutral) and draft.shape(value) == draft.shape(node.outputs[0]):
        draft.bypass(node, value)


_VIEWS = ("Reshape", "Transpose", "Slice")

_RULES: dict[str, Callable[[Draft, Node], None]] = {
    "Div": _div, "Sub": _sub, "Pow": _pow, "Sum": _variadic("Add"), "Min": _variadic("Min"),
    "Max": _max, "Mean": _mean, "Where": _where, "Clip": _clip,
}  # fmt: skip
