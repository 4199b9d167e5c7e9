"""1-D convolutions, poolings, resizes and normalizations as 2-D ones of height 1.

[N, C, L] becomes [N, C, 1, L]; kernels, strides and pads get a leading 1 or 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from splitter.draft import Array, Draft, Node, Type

WINDOWS = frozenset(("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"))
PLAIN = frozenset(("InstanceNormalization", "GroupNormalization", "LRN"))


def lift_one_dimension(draft: Draft) -> None:
    for node in draft.nodes:
        if node.domain or not node.inputs or draft.rank(node.inputs[0]) != 3:
            continue
        if node.op in WINDOWS:
            _window(draft, node)
        elif node.op in PLAIN:
            _wrap(draft, node, node.inputs[1:], dict(node.attrs))
        elif node.op == "Resize":
            _resize(draft, node)
    draft.prune()


def _window(draft: Draft, node: Node) -> None:
    attrs = dict(node.attrs)
    for key, fill in (
        ("kernel_shape", 1),
        ("strides", 1),
        ("dilations", 1),
        ("output_padding", 0),
    ):
        if attrs.get(key):
            attrs[key] = [fill, *attrs[key]]
    if attrs.get("pads"):
        begin, end = attrs["pads"]
        attrs["pads"] = [0, begin, 0, end]
    if attrs.get("output_shape"):
        attrs["output_shape"] = [1, *attrs["output_shape"]]
    rest = list(node.inputs[1:])
    if node.op in ("Conv", "ConvTranspose"):
        weight = draft.constant(rest[0])
        shape = draft.shape(rest[0])
        if shape is None:
            return
        lifted = (*shape[:2], 1, *shape[2:])
        if weight is not None:
            rest[0] = draft.constant_of(weight.reshape(lifted), rest[0])
        else:
            rest[0] = _reshape(draft, rest[0], lifted, node)
    elif len(node.outputs) > 1 and node.outputs[1]:
        return
    _wrap(draft, node, rest, attrs)


def _resize(draft: Draft, node: Node) -> None:
    axes = [a % 3 for a in node.attrs.get("axes") or range(3)]
    rest: list[str] = [""]
    for index, fill in ((2, 1.0), (3, 1)):
        name = node.input(index)
        data = draft.constant(name) if name else None
        if name and data is None:
            return
        if data is None or data.size == 0:
            rest.append("")
            continue
        full: Any = [float(fill)] * 4 if index == 2 else [*(draft.shape(node.inputs[0]) or ()), 1]
        if index == 3:
            full = [full[0], full[1], 1, full[2]]
        for axis, value in zip(axes, data.reshape(-1).tolist(), strict=True):
            full[axis if axis < 2 else 3] = value
        array: Array = np.asarray(full, data.dtype)
        rest.append(draft.constant_of(array, f"{node.name}/lifted"))
    if node.input(1):
        return
    attrs = {k: v for k, v in node.attrs.items() if k != "axes"}
    _wrap(draft, node, rest, attrs)


def _wrap(draft: Draft, node: Node, rest: list[str], attrs: dict[str, Any]) -> None:
    """Reshape, the same operator in 2-D, Reshape back."""
    shape, target = draft.shape(node.inputs[0]), draft.shape(node.outputs[0])
    if shape is None or target is None:
        return
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    draft.remove(node)
    data = _reshape(draft, node.inputs[0], (*shape[:2], 1, shape[2]), node)
    inner = draft.name(out)
    lifted = Type(known.dtype, (*target[:2], 1, target[2]))
    draft.add(
        Node(node.op, [data, *rest], [inner], attrs, node.name, sources=node.sources),
        [lifted],
    )
    back = draft.constant_of(np.asarray(target, np.int64), f"{node.name}/shape")
    draft.add(Node("Reshape", [inner, back], [out], {}, f"{node.name}/back"), [known])


def _reshape(draft: Draft, value: str, shape: tuple[int, ...], node: Node) -> str:
    target = draft.constant_of(np.asarray(shape, np.int64), f"{node.name}/shape")
    return draft.emit("Reshape", [value, target], Type(draft.dtype(value), shape), stem=value)
