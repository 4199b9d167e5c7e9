"""Reshape, InstanceNormalization over the groups, Reshape (, Mul, Add) -> GroupNormalization."""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.normalize.arithmetic import constant_side


def fuse_group_norm(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "InstanceNormalization" and not node.domain and draft.alive(node):
            _fuse(draft, node)
    draft.prune()


def _fuse(draft: Draft, norm: Node) -> None:
    before = draft.producer.get(norm.inputs[0])
    after = draft.only_user(norm.outputs[0])
    if before is None or after is None or before.op != "Reshape" or after.op != "Reshape":
        return
    if draft.only_user(before.outputs[0]) is not norm:
        return
    shape, inner = draft.shape(before.inputs[0]), draft.shape(norm.inputs[0])
    scale, bias = (draft.constant(name) for name in norm.inputs[1:3])
    if shape is None or inner is None or scale is None or bias is None or len(shape) < 3:
        return
    groups, channels = inner[1], shape[1]
    if inner[0] != shape[0] or channels % groups or draft.shape(after.outputs[0]) != shape:
        return
    affine: list[Array] = [
        np.repeat(data.astype(np.float64), channels // groups) for data in (scale, bias)
    ]
    last = after
    nodes = [before, norm, after]
    for op in ("Mul", "Add"):
        user = draft.only_user(last.outputs[0])
        vector = _per_channel(draft, user, op, channels, len(shape)) if user is not None else None
        if user is None or vector is None:
            continue
        affine = [affine[0] * vector, affine[1] * vector] if op == "Mul" else [
            affine[0], affine[1] + vector]  # fmt: skip
        last = user
        nodes.append(user)
    _write(draft, nodes, groups, affine)


def _per_channel(draft: Draft, node: Node, op: str, channels: int, rank: int) -> Array | None:
    """The constant of a Mul or Add as one number for each channel."""
    side = constant_side(draft, node) if node.op == op and not node.domain else None
    if side is None or side[1].ndim > rank:
        return None
    full = side[1].reshape((1,) * (rank - side[1].ndim) + side[1].shape)
    if full.size not in (1, channels) or full.shape != (1, full.size, *(1,) * (rank - 2)):
        return None
    return np.broadcast_to(full.reshape(-1), (channels,)).astype(np.float64)


def _write(draft: Draft, nodes: list[Node], groups: int, affine: list[Array]) -> None:
    before, norm, last = nodes[0], nodes[1], nodes[-1]
    dtype = draft.dtype(before.inputs[0])
    names = [draft.constant_of(data.astype(dtype), f"{norm.name}/affine") for data in affine]
    sources = tuple(dict.fromkeys(s for node in nodes for s in node.sources))
    out, known = last.outputs[0], draft.types[last.outputs[0]]
    attrs = {"num_groups": groups, "epsilon": float(norm.attrs.get("epsilon", 1e-5))}
    draft.remove(last)
    draft.add(
        Node("GroupNormalization", [before.inputs[0], *names], [out], attrs, norm.name,
             sources=sources), [known],
    )  # fmt: skip
