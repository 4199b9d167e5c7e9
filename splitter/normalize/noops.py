"""Removes what does nothing, and writes every pure change of shape as Reshape.

Needs static shapes. Transposes that move only axes of length 1 are reshapes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Draft, Node, Type
from splitter.normalize.exchange import dtype_name

BROADCASTING = frozenset(
    ("Add", "Sub", "Mul", "Div", "Pow", "Where", "Equal", "Greater", "GreaterOrEqual", "Less",
     "LessOrEqual", "And", "Or", "Xor", "Min", "Max")
)  # fmt: skip


def remove_noops(draft: Draft) -> None:
    """One walk; a chain of no-ops goes in one walk as each looks at what is left before it."""
    for node in draft.nodes:
        if not draft.alive(node) or node.domain:
            continue
        if node.op == "Concat":
            _drop_empty(draft, node)
        if node.op in _SAME and not any(node.outputs[1:]):
            draft.bypass(node, node.inputs[0])
        elif node.op in _AS_RESHAPE or (node.op == "Transpose" and _moves_nothing(draft, node)):
            _to_reshape(draft, node)
        elif (check := _CHECKS.get(node.op)) is not None and check(draft, node):
            draft.bypass(node, node.inputs[0])
        if draft.alive(node) and node.op == "Expand":
            _drop_expand(draft, node)
        if draft.alive(node) and node.op == "Reshape":
            _merge_reshapes(draft, node)
    draft.prune()


def _drop_empty(draft: Draft, node: Node) -> None:
    """A Concat gets nothing from operands without elements; the last one stays, whatever it is."""
    kept = [name for name in node.inputs if 0 not in (draft.shape(name) or ())]
    if kept and len(kept) < len(node.inputs):
        draft.set_inputs(node, kept)


def _to_reshape(draft: Draft, node: Node) -> None:
    shape = draft.shape(node.outputs[0])
    if shape is None:
        return
    node.op, node.attrs = "Reshape", {}
    target = draft.constant_of(np.asarray(shape, np.int64), f"{node.name}/shape")
    draft.set_inputs(node, [node.inputs[0], target])


def _moves_nothing(draft: Draft, node: Node) -> bool:
    shape = draft.shape(node.inputs[0])
    if shape is None:
        return False
    perm = node.attrs.get("perm") or list(range(len(shape)))[::-1]
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved)


def _merge_reshapes(draft: Draft, node: Node) -> None:
    """Reshape of Reshape reads the first one's input; a Reshape to the same shape goes."""
    maker = draft.producer.get(node.inputs[0])
    if maker is not None and maker.op == "Reshape" and not maker.domain:
        shape = draft.shape(node.outputs[0])
        if shape is not None:
            target = draft.constant_of(np.asarray(shape, np.int64), f"{node.name}/shape")
            node.sources = tuple(dict.fromkeys((*maker.sources, *node.sources)))
            draft.set_inputs(node, [maker.inputs[0], target])
            node.attrs.pop("allowzero", None)
    source = draft.shape(node.inputs[0])
    if source is not None and source == draft.shape(node.outputs[0]):
        draft.bypass(node, node.inputs[0])


def _drop_expand(draft: Draft, node: Node) -> None:
    """Readers that broadcast by themselves read what is expanded."""
    small = draft.shape(node.inputs[0])
    for user in draft.users(node.outputs[0]):
        shapes = [draft.shape(v) if v != node.outputs[0] else small for v in user.inputs]
        if user.op not in BROADCASTING or user.domain or any(s is None for s in shapes):
            continue
        out = draft.shape(user.outputs[0])
        if np.broadcast_shapes(*(s for s in shapes if s is not None)) == out:
            for index, value in enumerate(user.inputs):
                if value == node.outputs[0]:
                    draft.set_input(user, index, node.inputs[0])


def _same_shape(draft: Draft, node: Node) -> bool:
    shape = draft.shape(node.inputs[0])
    return shape is not None and shape == draft.shape(node.outputs[0])


def _same_cast(draft: Draft, node: Node) -> bool:
    return dtype_name(node.attrs["to"]) == draft.dtype(node.inputs[0])


def _same_slice(draft: Draft, node: Node) -> bool:
    steps = draft.ints(node.input(4)) if node.input(4) else [1]
    return _same_shape(draft, node) and steps is not None and all(s > 0 for s in steps)


def _no_pad(draft: Draft, node: Node) -> bool:
    pads = draft.ints(node.input(1))
    return pads is not None and not any(pads)


def _one_input(draft: Draft, node: Node) -> bool:
    return len(node.inputs) == 1


def _same_resize(draft: Draft, node: Node) -> bool:
    """Equal sizes with scales of 1 sample each point at itself, in all coordinate modes but one."""
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    scales = draft.constant(node.input(2)) if node.input(2) else None
    exact = scales is None or scales.size == 0 or bool(np.all(scales == 1))
    return _same_shape(draft, node) and exact and mode != "tf_crop_and_resize"


def _identity_perm(draft: Draft, node: Node) -> bool:
    perm = node.attrs.get("perm")
    return perm is not None and list(perm) == list(range(len(perm)))


_SAME = {"Identity", "Dropout"}
_AS_RESHAPE = {"Squeeze", "Unsqueeze", "Flatten"}
_CHECKS: dict[str, Callable[[Draft, Node], bool]] = {
    "Cast": _same_cast, "Slice": _same_slice, "Expand": _same_shape, "Tile": _same_shape,
    "Pad": _no_pad, "Concat": _one_input, "Sum": _one_input, "Max": _one_input, "Min": _one_input,
    "Mean": _one_input, "Resize": _same_resize, "Transpose": _identity_perm,
}  # fmt: skip

__all__ = ["Type", "remove_noops"]
