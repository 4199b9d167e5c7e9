"""The scale and bias of a LayerNormalization go into the matrices that read it.

When every reader (behind Reshape, Transpose and Slice that keep the normalized axis last) is a
MatMul with a constant right side, W' = diag(scale) W and b' = b + bias W compute the same, and the
norm's own output is plain: zero mean, unit variance, one scale for all channels.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.normalize.arithmetic import constant_side

PASSES_THROUGH = frozenset(("Reshape", "Transpose", "Slice"))


def fold_norm_affine(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op in ("LayerNormalization", "RMSNormalization") and not node.domain:
            _fold(draft, node)
    draft.prune()


def _fold(draft: Draft, norm: Node) -> None:
    scale = draft.constant(norm.inputs[1])
    bias = draft.constant(norm.input(2)) if norm.input(2) else None
    if scale is None or scale.ndim != 1 or (norm.input(2) and bias is None):
        return
    if np.all(scale == 1) and (bias is None or not np.any(bias)):
        return
    readers = _readers(draft, norm.outputs[0], len(scale))
    if not readers:
        return
    changed = _between(draft, norm.outputs[0])
    for matmul in readers:
        weight = draft.constants[matmul.inputs[1]]
        wide = weight.astype(np.float64)
        if bias is not None and np.any(bias):
            _shift(draft, matmul, bias.astype(np.float64) @ wide)
        scaled = (scale.astype(np.float64)[:, None] * wide).astype(weight.dtype)
        name = draft.constant_of(scaled, matmul.inputs[1].split("~")[0])
        draft.set_input(matmul, 1, name)
    ones = draft.constant_of(np.ones_like(scale), f"{norm.name}/scale")
    draft.set_inputs(norm, [norm.inputs[0], ones])
    for value in changed:
        draft.rename(value)


def _between(draft: Draft, value: str) -> list[str]:
    """The norm's output and what Reshape, Transpose and Slice make of it."""
    found = [value]
    for user in draft.users(value):
        if user.op in PASSES_THROUGH:
            found.extend(_between(draft, user.outputs[0]))
    return found


def _readers(draft: Draft, value: str, channels: int) -> list[Node]:
    """All MatMuls behind the value; empty when anything else reads it."""
    if draft.pinned(value):
        return []
    found: list[Node] = []
    for user in draft.users(value):
        if user.domain:
            return []
        if user.op == "MatMul" and user.inputs[0] == value:
            weight = draft.constant(user.inputs[1])
            if weight is None or weight.ndim != 2 or weight.shape[0] != channels:
                return []
            found.append(user)
        elif user.op in PASSES_THROUGH and user.inputs[0] == value:
            if not _keeps_last(draft, user):
                return []
            behind = _readers(draft, user.outputs[0], channels)
            if not behind:
                return []
            found.extend(behind)
        else:
            return []
    return found


def _keeps_last(draft: Draft, node: Node) -> bool:
    """Whether the last axis stays the last one, whole and in order."""
    before, after = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if not before or not after or before[-1] != after[-1]:
        return False
    if node.op == "Transpose":
        return bool(node.attrs["perm"][-1] == len(before) - 1)
    if node.op == "Slice":
        steps = draft.ints(node.input(4)) if node.input(4) else [1]
        return steps is not None and all(step > 0 for step in steps)
    return True


def _shift(draft: Draft, matmul: Node, vector: Array) -> None:
    """Add a vector to the product: into its bias when that is all that reads it, else an Add."""
    add = draft.only_user(matmul.outputs[0])
    side = constant_side(draft, add) if add is not None and add.op == "Add" else None
    dtype = draft.constants[matmul.inputs[1]].dtype
    if (
        add is not None
        and side is not None
        and side[1].size in (1, len(vector))
        and (side[1].shape[-1:] in ((), (1,), (len(vector),)))
    ):
        index, data = side
        new = np.broadcast_to(data.reshape(-1), vector.shape).astype(np.float64) + vector
        name = draft.constant_of(new.astype(dtype), add.inputs[index].split("~")[0])
        draft.set_input(add, index, name)
        draft.rename(matmul.outputs[0])
        return
    out, known = matmul.outputs[0], draft.types[matmul.outputs[0]]
    weights = list(matmul.inputs)
    product = draft.name(f"{out}/product")
    draft.remove(matmul)
    matmul.outputs = [product]
    matmul.inputs = weights
    draft.add(matmul, [known])
    bias = draft.constant_of(vector.astype(dtype), f"{matmul.name}/bias")
    draft.add(
        Node(
            "Add",
            [product, bias],
            [out],
            {},
            f"{matmul.name}/bias",
            sources=matmul.sources,
        ),
        [known],
    )
