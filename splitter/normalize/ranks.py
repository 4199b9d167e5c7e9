"""Drops axes of length 1 from operators of more than four axes.

Few TFLite kernels and no NPU known here take five axes. The Reshapes around the operators meet and
vanish in remove_noops, so a region of them moves to rank 4 as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from splitter.draft import Draft, Node, Type

MAX_RANK = 4
ELEMENTWISE = frozenset(
    ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Relu", "Sigmoid", "Tanh", "Gelu", "Exp",
     "Sqrt", "Neg", "Abs", "Clip", "Cast", "Where", "Equal", "Greater", "Less", "And", "Or", "Not",
     "Sin", "Cos", "Log", "Floor", "Reciprocal", "Erf")
)  # fmt: skip
Rule = Callable[[Draft, Node, list[int], int], None]


def lower_ranks(draft: Draft) -> None:
    for node in draft.nodes:
        if node.domain or not node.outputs or (draft.rank(node.outputs[0]) or 0) <= MAX_RANK:
            continue
        rule = _keep if node.op in ELEMENTWISE else _RULES.get(node.op)
        if rule is not None:
            _lower(draft, node, rule)
    draft.prune()


def _lower(draft: Draft, node: Node, rule: Rule) -> None:
    out = draft.shape(node.outputs[0])
    if out is None:
        return
    data = _data_inputs(node)
    shapes = [draft.shape(node.inputs[index]) for index in data]
    if any(s is None for s in shapes):
        return
    rank = len(out)
    padded = [(1,) * (rank - len(s or ())) + (s or ()) for s in shapes]
    own = _own_axis(draft, node, rank)
    free = [a for a in range(rank) if a != own and all(s[a] == 1 for s in (*padded, out))]
    drop = free[: rank - MAX_RANK]
    if len(drop) < rank - MAX_RANK:
        return
    kept = [a for a in range(rank) if a not in drop]
    known, name = draft.types[node.outputs[0]], node.outputs[0]
    inputs = list(node.inputs)
    for index, shape in zip(data, padded, strict=True):
        if len(draft.shape(inputs[index]) or ()) > MAX_RANK:
            inputs[index] = _reshaped(draft, inputs[index], [shape[a] for a in kept])
    draft.remove(node)
    node.inputs = inputs
    rule(draft, node, kept, rank)
    inner = draft.name(name)
    node.outputs = [inner]
    small = tuple(out[a] for a in kept)
    draft.add(node, [Type(known.dtype, small)])
    target = draft.constant_of(np.asarray(out, np.int64), f"{node.name}/shape")
    draft.add(Node("Reshape", [inner, target], [name], {}, f"{node.name}/back"), [known])


def _data_inputs(node: Node) -> list[int]:
    """Indices of inputs that have the operator's axes (Clip's bounds and Slice's parts do not)."""
    if node.op in ("Slice", "Tile", "Expand", "Clip"):
        return [0]
    return [index for index, value in enumerate(node.inputs) if value]


def _own_axis(draft: Draft, node: Node, rank: int) -> int | None:
    return int(node.attrs["axis"]) % rank if "axis" in node.attrs else None


def _reshaped(draft: Draft, value: str, shape: Sequence[int]) -> str:
    data = draft.constant(value)
    if data is not None:
        return draft.constant_of(data.reshape(tuple(shape)), value)
    target = draft.constant_of(np.asarray(shape, np.int64), f"{value}/shape")
    return draft.emit(
        "Reshape", [value, target], Type(draft.dtype(value), tuple(shape)), stem=value
    )


def _keep(draft: Draft, node: Node, kept: list[int], rank: int) -> None:
    return None


def _axis(draft: Draft, node: Node, kept: list[int], rank: int) -> None:
    node.attrs = {**node.attrs, "axis": kept.index(int(node.attrs["axis"]) % rank)}


def _slice(draft: Draft, node: Node, kept: list[int], rank: int) -> None:
    """Bounds of the kept axes; a dropped axis of length 1 was not cut."""
    parts = [draft.ints(name) if name else None for name in node.inputs[1:5]]
    parts += [None] * (4 - len(parts))
    starts, ends, axes, steps = parts
    assert starts is not None and ends is not None  # shapes are static, so bounds are constant
    chosen = [
        (kept.index(axis % rank), starts[i], ends[i], steps[i] if steps else 1)
        for i, axis in enumerate(axes or range(len(starts)))
        if axis % rank in kept
    ]
    columns = [[c[1] for c in chosen], [c[2] for c in chosen], [c[0] for c in chosen],
               [c[3] for c in chosen]]  # fmt: skip
    names = [draft.constant_of(np.asarray(c, np.int64), f"{node.name}/part") for c in columns]
    node.inputs = [node.inputs[0], *names]


def _per_axis(draft: Draft, node: Node, kept: list[int], rank: int) -> None:
    values = draft.ints(node.inputs[1])
    assert values is not None  # shapes are static, so repeats are constant
    full = [1] * (rank - len(values)) + values
    small = np.asarray([full[a] for a in kept], np.int64)
    node.inputs = [node.inputs[0], draft.constant_of(small, f"{node.name}/sizes")]


_RULES: dict[str, Rule] = {
    "Concat": _axis, "Softmax": _axis, "Slice": _slice, "Tile": _per_axis, "Expand": _per_axis,
}  # fmt: skip
