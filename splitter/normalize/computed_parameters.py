"""Norms whose scale and bias are computed at run time (adaptive norms): the norm, then Mul and Add.

A norm with constant parameters stays as it is; later passes fold them.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.writer import Writer


def _computed(draft: Draft, node: Node) -> bool:
    return any(name and name not in draft.constants for name in node.inputs[1:])


def _spread(w: Writer, name: str, rank: int) -> str:
    """A value a channel, so that it broadcasts with [N, C, ...]."""
    return w.add("Reshape", [name, w.const([1, -1, *[1] * (rank - 2)])])


def instance_norm(draft: Draft, node: Node) -> None:
    """(x, scale[C], bias[C])."""
    shape = draft.shape(node.inputs[0])
    if shape is None or not _computed(draft, node):
        return
    dtype, rank, attrs = draft.dtype(node.inputs[0]), len(shape), dict(node.attrs)
    w = Writer(draft, node)
    plain = [node.inputs[0], w.const(np.ones(shape[1]), dtype), w.const(np.zeros(shape[1]), dtype)]
    norm = w.add("InstanceNormalization", plain, **attrs)
    scaled = w.add("Mul", [norm, _spread(w, node.inputs[1], rank)])
    w.add("Add", [scaled, _spread(w, node.inputs[2], rank)], out=w.out)


def batch_norm(draft: Draft, node: Node) -> None:
    """(x, scale[C], bias[C], mean[C], variance[C]), of the form for inference."""
    rank = draft.rank(node.inputs[0])
    training = node.attrs.get("training_mode", 0) or any(node.outputs[1:])
    if rank is None or training or not _computed(draft, node):
        return
    dtype, epsilon = draft.dtype(node.inputs[0]), float(node.attrs.get("epsilon", 1e-5))
    w = Writer(draft, node)
    scale, bias, mean, variance = node.inputs[1:5]
    deviation = w.add("Sqrt", [w.add("Add", [variance, w.const(epsilon, dtype)])])
    factor = w.add("Div", [scale, deviation])
    centered = w.add("Sub", [node.inputs[0], _spread(w, mean, rank)])
    scaled = w.add("Mul", [centered, _spread(w, factor, rank)])
    w.add("Add", [scaled, _spread(w, bias, rank)], out=w.out)
