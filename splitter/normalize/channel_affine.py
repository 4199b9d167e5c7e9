"""Mul and Add by a number for each channel that no weights took become a depthwise Conv of 1x1.

A BatchNormalization behind a Relu, a residual sum or a Concat, or in a file that was quantized
unfused, stays as Mul and Add. In integers the factors of all channels would share one scale, and
the product would be rounded before the sum; a convolution has a scale for each channel and adds
its bias at 32 bits.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.normalize.arithmetic import constant_side


def write_channel_affine(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "Mul" and not node.domain and draft.alive(node):
            _rewrite(draft, node)
    draft.prune()


def _rewrite(draft: Draft, mul: Node) -> None:
    add, side = draft.only_user(mul.outputs[0]), constant_side(draft, mul)
    if add is None or add.op != "Add" or add.domain or side is None:
        return
    other = constant_side(draft, add)
    value = mul.inputs[1 - side[0]]
    shape = draft.shape(value)
    if other is None or shape is None or len(shape) != 4:
        return
    if not draft.shape(mul.outputs[0]) == draft.shape(add.outputs[0]) == shape:
        return
    factor, shift = (_by_channel(data, shape[1]) for data in (side[1], other[1]))
    if factor is None or shift is None:
        return
    out, known = add.outputs[0], draft.types[add.outputs[0]]
    sources = tuple(dict.fromkeys((*mul.sources, *add.sources)))
    draft.remove(mul)
    draft.remove(add)
    names = [
        draft.constant_of(factor.reshape(-1, 1, 1, 1), f"{add.name}/factor"),
        draft.constant_of(shift, f"{add.name}/shift"),
    ]
    attrs = {"group": shape[1], "kernel_shape": [1, 1]}
    draft.add(Node("Conv", [value, *names], [out], attrs, add.name, sources=sources), [known])


def _by_channel(data: Array, channels: int) -> Array | None:
    """The constant as one number a channel, None when it is none or the same for all."""
    shape = (1,) * (4 - data.ndim) + data.shape
    if shape != (1, channels, 1, 1) or channels == 1:
        return None
    return np.ascontiguousarray(data.reshape(-1))
