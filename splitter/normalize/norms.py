"""Decomposed normalizations -> LayerNormalization and RMSNormalization, and their affine part.

The core is matched from the mean of squares outwards: x - mean(x), its square's mean, plus
epsilon, square root, divided. One axis that is not the last gets Transposes around, which layout
removes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitter.draft import Array, Draft, Node, Type
from splitter.normalize.arithmetic import constant_side


@dataclass(frozen=True, slots=True)
class _Core:
    """y = (x - mean) * rsqrt(mean(square) + epsilon) over axes; centered: with the mean."""

    source: str
    axes: tuple[int, ...]
    epsilon: float
    last: Node
    nodes: tuple[Node, ...]
    centered: bool


def fuse_norms(draft: Draft) -> None:
    for node in draft.nodes:
        if draft.alive(node) and node.op == "ReduceMean" and not node.domain:
            core = _match(draft, node)
            if core is not None:
                _rewrite(draft, core)
    draft.prune()


def absorb_affine(draft: Draft) -> None:
    """Mul and Add by constants of the normalized axes' length go into scale and bias."""
    for node in draft.nodes:
        if node.op in ("LayerNormalization", "RMSNormalization") and not node.domain:
            while draft.alive(node) and _absorb(draft, node):
                pass
    draft.prune()


def _match(draft: Draft, mean: Node) -> _Core | None:
    square = draft.producer.get(mean.inputs[0])
    axes = draft.ints(mean.input(1)) if mean.input(1) else None
    rank = draft.rank(mean.inputs[0])
    if square is None or square.op != "Mul" or square.inputs[0] != square.inputs[1]:
        return None
    if axes is None or rank is None or not mean.attrs.get("keepdims", 1):
        return None
    axes_set = tuple(sorted(a % rank for a in axes))
    shifted = draft.only_user(mean.outputs[0])
    if shifted is None or shifted.op != "Add" or (side := constant_side(draft, shifted)) is None:
        return None
    if side[1].size != 1:
        return None
    tail = _divided(draft, shifted, square.inputs[0])
    if tail is None:
        return None
    inner = (square, mean, shifted, *tail)
    source, center = _centered(draft, square.inputs[0], axes_set, rank)
    if not center:
        source = square.inputs[0]
    return _Core(
        source,
        axes_set,
        float(side[1].reshape(-1)[0]),
        tail[-1],
        (*center, *inner),
        bool(center),
    )


def _divided(draft: Draft, shifted: Node, value: str) -> tuple[Node, ...] | None:
    """Sqrt then Div, or Sqrt, Reciprocal and Mul: the nodes, the last one gives the result."""
    root = draft.only_user(shifted.outputs[0])
    if root is None or root.op != "Sqrt":
        return None
    user = draft.only_user(root.outputs[0])
    if user is None:
        return None
    if user.op == "Div" and user.inputs == [value, root.outputs[0]]:
        return root, user
    if user.op == "Reciprocal" or (user.op == "Div" and draft.scalar(user.inputs[0]) == 1.0):
        product = draft.only_user(user.outputs[0])
        if product is not None and product.op == "Mul" and value in product.inputs:
            return root, user, product
    return None


def _centered(
    draft: Draft, value: str, axes: tuple[int, ...], rank: int
) -> tuple[str, tuple[Node, ...]]:
    """(x, the nodes) when value is x - mean(x) over the same axes."""
    sub = draft.producer.get(value)
    if sub is None or sub.op != "Sub":
        return "", ()
    mean = draft.producer.get(sub.inputs[1])
    if mean is None or mean.op != "ReduceMean" or mean.inputs[0] != sub.inputs[0]:
        return "", ()
    over = draft.ints(mean.input(1)) if mean.input(1) else None
    if over is None or tuple(sorted(a % rank for a in over)) != axes:
        return "", ()
    return sub.inputs[0], (mean, sub)


def _rewrite(draft: Draft, core: _Core) -> None:
    shape = draft.shape(core.source)
    dtype = draft.dtype(core.source)
    if shape is None:
        return
    rank = len(shape)
    trailing = core.axes == tuple(range(rank - len(core.axes), rank))
    if not trailing and len(core.axes) > 1:
        return
    sources = tuple(dict.fromkeys(s for node in core.nodes for s in node.sources))
    out, known = core.last.outputs[0], draft.types[core.last.outputs[0]]
    name = core.last.name
    draft.remove(core.last)
    ones = np.ones([shape[a] for a in core.axes], dtype)
    scale = draft.constant_of(ones, f"{name}/scale")
    op = "LayerNormalization" if core.centered else "RMSNormalization"
    attrs = {"axis": -len(core.axes), "epsilon": core.epsilon}
    if trailing:
        draft.add(Node(op, [core.source, scale], [out], attrs, name, sources=sources), [known])
        return
    axis = core.axes[0]
    perm = [a for a in range(rank) if a != axis] + [axis]
    back = [perm.index(a) for a in range(rank)]
    moved = Type(dtype, tuple(shape[a] for a in perm))
    before = draft.emit("Transpose", [core.source], moved, stem=out, attrs={"perm": perm})
    inner = draft.name(out)
    draft.add(Node(op, [before, scale], [inner], attrs, name, sources=sources), [moved])
    draft.add(Node("Transpose", [inner], [out], {"perm": back}, f"{name}/back"), [known])


def _absorb(draft: Draft, norm: Node) -> bool:
    """Move one following Mul or Add into the norm; a Transpose may stand between."""
    value: str = norm.outputs[0]
    perm: list[int] | None = None
    user = draft.only_user(value)
    shape = draft.shape(value)
    if user is None or shape is None:
        return False
    if user.op == "Transpose":
        perm = user.attrs["perm"]
        value, user = user.outputs[0], draft.only_user(user.outputs[0])
    if user is None or user.op not in ("Mul", "Add") or user.domain:
        return False
    side = constant_side(draft, user)
    if side is None or (user.op == "Add" and norm.op == "RMSNormalization"):
        return False
    data = side[1].reshape((1,) * (len(shape) - side[1].ndim) + side[1].shape)
    if data.ndim != len(shape):
        return False
    if perm is not None:
        data = data.transpose([perm.index(a) for a in range(len(shape))])
    first = norm.attrs.get("axis", -1) % len(shape)
    if data.shape[:first] != (1,) * first:
        return False
    tail = shape[first:]
    data = np.broadcast_to(data.reshape(data.shape[first:]), tail)
    _set_affine(draft, norm, data, user.op)
    norm.sources = tuple(dict.fromkeys((*norm.sources, *user.sources)))
    if perm is not None:
        draft.rename(norm.outputs[0])
    draft.absorb(user, value)
    return True


def _set_affine(draft: Draft, norm: Node, data: Array, op: str) -> None:
    scale = draft.constant(norm.inputs[1])
    bias = draft.constant(norm.input(2)) if norm.input(2) else None
    assert scale is not None  # absorbed affines and exporters' weights are constant
    tail, dtype = data.shape, scale.dtype
    if op == "Mul":
        scale = (np.broadcast_to(scale, tail).astype(np.float64) * data).astype(dtype)
        if bias is not None:
            bias = (np.broadcast_to(bias, tail).astype(np.float64) * data).astype(dtype)
    else:
        old = np.zeros(tail) if bias is None else np.broadcast_to(bias, tail).astype(np.float64)
        bias = (old + data).astype(dtype)
    inputs = [norm.inputs[0], draft.constant_of(scale, f"{norm.name}/scale")]
    if bias is not None:
        inputs.append(draft.constant_of(bias, f"{norm.name}/bias"))
    draft.set_inputs(norm, inputs)
