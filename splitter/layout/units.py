"""ONNX nodes -> units: constant inputs become attrs, MatMul with weights becomes FullyConnected.

Still in ONNX layout and still a Draft; `assign` and `build` decide the layout afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitter.diagnostics import Cause, Unsupported
from splitter.draft import Draft, Node
from splitter.layout.ports import ATTRIBUTELESS, REDUCE
from splitter.layout.spatial import SPATIAL, computed
from splitter.normalize.exchange import dtype_name

Problems = list[Cause]
Rule = Callable[[Draft, Node, Problems], None]


def make_units(draft: Draft) -> None:
    """Rewrite every node in place. Errors: parameters that are not constant, all at once.

    What a subgraph reads from outside becomes an input, so that the order of units is right.
    """
    problems: Problems = []
    for node in draft.nodes:
        if node.captured:
            draft.set_inputs(node, [*node.inputs, *node.captured])
        if node.domain:
            continue
        rule = RULES.get(node.op) or SPATIAL.get(node.op)
        if rule is not None:
            rule(draft, node, problems)
        elif node.op in PLAIN:
            node.attrs = {}
    if problems:
        raise Unsupported(problems)


def need(draft: Draft, node: Node, index: int, problems: Problems) -> list[int] | None:
    """The integers of a constant input; a problem when it is there but not constant."""
    name = node.input(index)
    if not name:
        return None
    values = draft.ints(name)
    if values is None:
        problems.append(computed(node, index))
    return values


def axis_of(draft: Draft, node: Node, default: int = 0) -> int:
    rank = draft.rank(node.inputs[0]) or 1
    return int(node.attrs.get("axis", default)) % rank


def shape_of(draft: Draft, value: str) -> tuple[int, ...]:
    shape = draft.shape(value)
    assert shape is not None, value  # normalize made every shape static
    return shape


def _set(draft: Draft, node: Node, inputs: int, **attrs: Any) -> None:
    """Keep the first inputs, drop trailing absent ones, set the attrs."""
    values = node.inputs[:inputs]
    while values and not values[-1]:
        values.pop()
    draft.set_inputs(node, values)
    node.attrs = attrs


def _reduce(draft: Draft, node: Node, problems: Problems) -> None:
    rank = draft.rank(node.inputs[0]) or 0
    axes = need(draft, node, 1, problems)
    if not axes:
        axes = [] if node.attrs.get("noop_with_empty_axes", 0) else list(range(rank))
    _set(draft, node, 1, axes=tuple(sorted(a % rank for a in axes)),
         keepdims=bool(node.attrs.get("keepdims", 1)))  # fmt: skip


def _arg(draft: Draft, node: Node, problems: Problems) -> None:
    _set(draft, node, 1, axis=axis_of(draft, node), keepdims=bool(node.attrs.get("keepdims", 1)),
         select_last_index=bool(node.attrs.get("select_last_index", 0)))  # fmt: skip


def _reshape(draft: Draft, node: Node, problems: Problems) -> None:
    _set(draft, node, 1, shape=shape_of(draft, node.outputs[0]))


def _transpose(draft: Draft, node: Node, problems: Problems) -> None:
    rank = draft.rank(node.inputs[0]) or 0
    perm = node.attrs.get("perm") or list(range(rank))[::-1]
    _set(draft, node, 1, perm=tuple(int(a) for a in perm))


def _slice(draft: Draft, node: Node, problems: Problems) -> None:
    shape = shape_of(draft, node.inputs[0])
    starts, ends = need(draft, node, 1, problems), need(draft, node, 2, problems)
    axes, steps = need(draft, node, 3, problems), need(draft, node, 4, problems)
    if starts is None or ends is None:
        return
    full = [[0, length, 1] for length in shape]
    for index, axis in enumerate(axes or range(len(starts))):
        step = steps[index] if steps else 1
        start, stop, _ = slice(starts[index], ends[index], step).indices(shape[axis])
        if step < 0 and ends[index] <= -shape[axis] - 1:
            stop = -1
        full[axis] = [start, stop, step]
    _set(draft, node, 1, starts=tuple(f[0] for f in full), ends=tuple(f[1] for f in full),
         steps=tuple(f[2] for f in full))  # fmt: skip


def _pad(draft: Draft, node: Node, problems: Problems) -> None:
    rank = draft.rank(node.inputs[0]) or 0
    pads, axes = need(draft, node, 1, problems), need(draft, node, 3, problems)
    value = draft.scalar(node.input(2)) if node.input(2) else 0.0
    if node.input(2) and value is None:
        problems.append(computed(node, 2))
    if pads is None:
        return
    full = [(0, 0)] * rank
    chosen = [a % rank for a in axes] if axes else list(range(rank))
    for index, axis in enumerate(chosen):
        full[axis] = (pads[index], pads[index + len(chosen)])
    _set(draft, node, 1, pads=tuple(full), mode=node.attrs.get("mode", "constant"),
         value=0.0 if value is None else value)  # fmt: skip


def _tile(draft: Draft, node: Node, problems: Problems) -> None:
    repeats = need(draft, node, 1, problems)
    _set(draft, node, 1, repeats=tuple(repeats or ()))


def _expand(draft: Draft, node: Node, problems: Problems) -> None:
    _set(draft, node, 1, shape=shape_of(draft, node.outputs[0]))


def _concat(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"axis": axis_of(draft, node)}


def _split(draft: Draft, node: Node, problems: Problems) -> None:
    axis = axis_of(draft, node)
    sizes = tuple(shape_of(draft, out)[axis] for out in node.outputs)
    _set(draft, node, 1, axis=axis, sizes=sizes)


def _gather(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"axis": axis_of(draft, node)}


def _scatter(draft: Draft, node: Node, problems: Problems) -> None:
    attrs: dict[str, Any] = {"reduction": node.attrs.get("reduction", "none")}
    if node.op == "ScatterElements":
        attrs["axis"] = axis_of(draft, node)
    node.attrs = attrs


def _gather_nd(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"batch_dims": int(node.attrs.get("batch_dims", 0))}


def _topk(draft: Draft, node: Node, problems: Problems) -> None:
    k = need(draft, node, 1, problems)
    flags = {key: bool(node.attrs.get(key, 1)) for key in ("largest", "sorted")}
    _set(draft, node, 1, k=k[0] if k else 0, axis=axis_of(draft, node, -1), **flags)


def _softmax(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"axis": axis_of(draft, node, -1)}


def _layer_norm(draft: Draft, node: Node, problems: Problems) -> None:
    attrs: dict[str, Any] = {
        "axis": axis_of(draft, node, -1),
        "epsilon": float(node.attrs.get("epsilon", 1e-5)),
    }
    if node.op == "LayerNormalization":
        attrs["centered"] = node.marks.get("centered") == "1"
    _set(draft, node, 3, **attrs)


def _clip(draft: Draft, node: Node, problems: Problems) -> None:
    bounds: list[float | int | None] = []
    integer = np.issubdtype(np.dtype(draft.dtype(node.inputs[0])), np.integer)
    for index in (1, 2):
        bound = draft.scalar(node.input(index)) if node.input(index) else None
        if node.input(index) and bound is None:
            problems.append(computed(node, index))
        bounds.append(int(bound) if integer and bound is not None else bound)
    _set(draft, node, 1, min=bounds[0], max=bounds[1])


def _cast(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"to": dtype_name(int(node.attrs["to"]))}


def _cumsum(draft: Draft, node: Node, problems: Problems) -> None:
    axis = need(draft, node, 1, problems)
    rank = draft.rank(node.inputs[0]) or 1
    _set(draft, node, 1, axis=(axis[0] if axis else 0) % rank,
         exclusive=bool(node.attrs.get("exclusive", 0)),
         reverse=bool(node.attrs.get("reverse", 0)))  # fmt: skip


def _one_hot(draft: Draft, node: Node, problems: Problems) -> None:
    depth = need(draft, node, 1, problems)
    values = draft.constant(node.input(2))
    if values is None:
        problems.append(computed(node, 2))
        return
    rank = len(shape_of(draft, node.outputs[0]))
    off, on = values.reshape(-1).tolist()
    _set(draft, node, 1, depth=depth[0] if depth else 0, values=(off, on),
         axis=int(node.attrs.get("axis", -1)) % rank)  # fmt: skip


def _trilu(draft: Draft, node: Node, problems: Problems) -> None:
    k = need(draft, node, 1, problems)
    _set(draft, node, 1, upper=bool(node.attrs.get("upper", 1)), k=k[0] if k else 0)


def _gelu(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"approximate": node.attrs.get("approximate", "none")}


def _mod(draft: Draft, node: Node, problems: Problems) -> None:
    node.attrs = {"fmod": bool(node.attrs.get("fmod", 0))}


def _alpha(**defaults: float) -> Rule:
    def rule(draft: Draft, node: Node, problems: Problems) -> None:
        node.attrs = {k: float(node.attrs.get(k, default)) for k, default in defaults.items()}

    return rule


def _defaults(draft: Draft, node: Node, problems: Problems) -> None:
    """An operator without a rule: its attributes, defaults of the schema filled in."""
    node.attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in node.attrs.items()}


PLAIN = ATTRIBUTELESS | {"MatMul"}

RULES: dict[str, Rule] = {
    "Reshape": _reshape, "Transpose": _transpose, "Slice": _slice, "Pad": _pad, "Tile": _tile,
    "Expand": _expand, "Concat": _concat, "Split": _split, "Gather": _gather,
    "GatherElements": _gather, "GatherND": _gather_nd, "ScatterND": _scatter,
    "ScatterElements": _scatter, "TopK": _topk, "Softmax": _softmax, "LogSoftmax": _softmax,
    "LayerNormalization": _layer_norm, "RMSNormalization": _layer_norm, "Clip": _clip,
    "Cast": _cast, "CumSum": _cumsum, "OneHot": _one_hot, "Trilu": _trilu, "Gelu": _gelu,
    "Mod": _mod, "ArgMax": _arg, "ArgMin": _arg, "Elu": _alpha(alpha=1.0),
    "Celu": _alpha(alpha=1.0), "LeakyRelu": _alpha(alpha=0.01),
    "ThresholdedRelu": _alpha(alpha=1.0), "HardSigmoid": _alpha(alpha=0.2, beta=0.5),
    "Selu": _alpha(alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
}  # fmt: skip
RULES |= dict.fromkeys((op for op in REDUCE if op.startswith("Reduce")), _reduce)

__all__ = ["PLAIN", "RULES", "make_units"]
