"""Means and variances as later passes know them, however a framework writes them.

JAX and TensorFlow write a mean as a sum over a constant, give reductions without their axes and put
them back by a Reshape, and take the variance as mean(x^2) - mean(x)^2. In 8 bits that difference of
two large numbers is nothing; mean((x - mean(x))^2) is the same number and keeps its size. A scale
that is multiplied into 1/sqrt(variance) first goes behind the normalized value.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.arithmetic import constant_side

REDUCTIONS = frozenset(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"))


def write_moments(draft: Draft) -> None:
    """All of it, in the order in which one form is needed by the next."""
    for rule in (_mean_of_sum, _keep_axes, _center_variance, _keep_axes, _scale_last):
        for node in draft.nodes:
            if draft.alive(node) and not node.domain:
                rule(draft, node)
        draft.prune()


def _axes(draft: Draft, node: Node) -> tuple[int, ...] | None:
    axes = draft.ints(node.input(1)) if node.input(1) else None
    rank = draft.rank(node.inputs[0])
    if axes is None or rank is None:
        return None
    return tuple(sorted(axis % rank for axis in axes))


def _mean_of_sum(draft: Draft, node: Node) -> None:
    """ReduceSum(x) * (1 / count) -> ReduceMean(x)."""
    if node.op != "ReduceSum":
        return
    axes, shape = _axes(draft, node), draft.shape(node.inputs[0])
    if axes is None or shape is None:
        return
    product = draft.only_user(node.outputs[0])
    if product is None or product.op != "Mul":
        return
    side = constant_side(draft, product)
    count = int(np.prod([shape[axis] for axis in axes]))
    if side is None or side[1].size != 1 or draft.dtype(node.inputs[0])[:5] != "float":
        return
    if abs(float(side[1].reshape(-1)[0]) * count - 1) > 1e-6:
        return
    if draft.shape(product.outputs[0]) == draft.shape(node.outputs[0]):
        node.op = "ReduceMean"
        node.sources = tuple(dict.fromkeys((*node.sources, *product.sources)))
        _absorb(draft, node, product)


def _keep_axes(draft: Draft, node: Node) -> None:
    """A reduction without its axes, and the Reshape that puts them back."""
    if node.op not in REDUCTIONS or node.attrs.get("keepdims", 1):
        return
    axes, shape = _axes(draft, node), draft.shape(node.inputs[0])
    if axes is None or shape is None:
        return
    reshape = draft.only_user(node.outputs[0])
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    if reshape is None or reshape.op != "Reshape" or draft.shape(reshape.outputs[0]) != kept:
        return
    node.attrs["keepdims"] = 1
    node.sources = tuple(dict.fromkeys((*node.sources, *reshape.sources)))
    _absorb(draft, node, reshape)


def _absorb(draft: Draft, node: Node, last: Node) -> None:
    """The node now makes what `last` made of it, under that name."""
    out, known = last.outputs[0], draft.types[last.outputs[0]]
    draft.absorb(last, node.outputs[0])
    draft.types[out] = known


def _center_variance(draft: Draft, node: Node) -> None:
    """mean(x^2) - mean(x)^2 -> mean((x - mean(x))^2), and no max(., 0) behind it."""
    if node.op != "Sub":
        return
    left, right = (draft.producer.get(value) for value in node.inputs)
    square = draft.producer.get(left.inputs[0]) if left is not None else None
    if left is None or right is None or square is None or not _squares(left, square, right):
        return
    source = square.inputs[0]
    mean = draft.producer.get(right.inputs[0])
    if mean is None or mean.op != "ReduceMean" or mean.inputs[0] != source:
        return
    axes, shape = _axes(draft, mean), draft.shape(source)
    if axes is None or shape is None or axes != _axes(draft, left):
        return
    keeps = [bool(one.attrs.get("keepdims", 1)) for one in (mean, left)]
    if keeps[0] != keeps[1]:
        return
    _write_centered(draft, node, (left, square, right, mean), shape)


def _squares(left: Node, square: Node, right: Node) -> bool:
    return left.op == "ReduceMean" and all(
        one.op == "Mul" and one.inputs[0] == one.inputs[1] for one in (square, right)
    )


def _write_centered(
    draft: Draft, node: Node, parts: tuple[Node, ...], shape: tuple[int, ...]
) -> None:
    left, square, _, mean = parts
    source, out = square.inputs[0], node.outputs[0]
    dtype, axes = draft.dtype(source), _axes(draft, mean) or ()
    sources = tuple(dict.fromkeys(s for one in (*parts, node) for s in one.sources))
    middle = _kept_mean(draft, mean, axes, shape)
    whole = Type(dtype, shape)
    apart = draft.emit("Sub", [source, middle], whole, stem=f"{out}/apart", sources=sources)
    squared = draft.emit("Mul", [apart, apart], whole, stem=f"{out}/squared", sources=sources)
    known, attrs, reduced = draft.types[out], dict(left.attrs), [squared, *left.inputs[1:]]
    draft.remove(node)
    centered = draft.add(
        Node("ReduceMean", reduced, [out], attrs, node.name, sources=sources), [known]
    )
    clamp = draft.only_user(out)
    if clamp is not None and clamp.op == "Relu":
        _absorb(draft, centered, clamp)


def _kept_mean(draft: Draft, mean: Node, axes: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The mean with its axes: as it is, by a Reshape that is there, or by a new one."""
    value = mean.outputs[0]
    if mean.attrs.get("keepdims", 1):
        return value
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    for user in draft.users(value):
        if user.op == "Reshape" and draft.shape(user.outputs[0]) == kept:
            return user.outputs[0]
    target = draft.constant_of(np.asarray(kept, np.int64), f"{mean.name}/kept")
    known = Type(draft.dtype(value), kept)
    return draft.emit("Reshape", [value, target], known, stem=value, sources=mean.sources)


def _scale_last(draft: Draft, node: Node) -> None:
    """d * (r * c) -> (d * r) * c, where r is 1 / sqrt(.) and c a constant."""
    root = draft.producer.get(node.inputs[0]) if node.inputs else None
    if node.op != "Reciprocal" or root is None or root.op != "Sqrt":
        return
    inner = draft.only_user(node.outputs[0])
    if inner is None or inner.op != "Mul" or (side := constant_side(draft, inner)) is None:
        return
    outer = draft.only_user(inner.outputs[0])
    if outer is None or outer.op != "Mul" or constant_side(draft, outer) is not None:
        return
    value = next((v for v in outer.inputs if v != inner.outputs[0]), "")
    out = outer.outputs[0]
    if not value or draft.shape(value) is None or draft.shape(value) != draft.shape(out):
        return
    scale = inner.inputs[side[0]]
    draft.set_inputs(inner, [value, node.outputs[0]])
    renamed = draft.rename(inner.outputs[0])
    draft.types[renamed] = draft.types[out]
    draft.set_inputs(outer, [renamed, scale])
