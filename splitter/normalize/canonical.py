"""Rewrites every operator to the form of one opset, so that later passes see ONE form.

Only where the meaning or the place of a parameter changed: axes and bounds as inputs, the flat
Softmax of old opsets, renamed modes, one scale a channel for GroupNormalization. What has one form
in all opsets is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.draft import Draft, Node

OPSET = 23  # RMSNormalization and Attention are standard operators from here on
NEWEST = 26  # newer opsets than OPSET are kept; after this one nobody has looked

Rule = Callable[[Draft, Node, int], None]


def canonicalize(draft: Draft) -> None:
    """Bring all nodes of the default domain from their opset to the common one."""
    opset = draft.opset
    if opset > NEWEST:
        raise SplitterError(
            f"the model uses ONNX opset {opset}; known are opsets 1 to {NEWEST}",
            hint=f"export it with opset {OPSET}",
        )
    rewrite(draft, draft.nodes, opset)
    draft.opset = max(opset, OPSET)
    draft.domains[""] = draft.opset


def rewrite(draft: Draft, nodes: Iterable[Node], opset: int) -> None:
    """Bring these nodes from `opset` to the common form."""
    for node in nodes:
        rule = RULES.get(node.op)
        if rule is not None and not node.domain:
            rule(draft, node, opset)


def _ints_input(draft: Draft, node: Node, key: str, index: int) -> None:
    """Move an integer list from an attribute to an input."""
    if key not in node.attrs:
        return
    data = np.asarray(node.attrs.pop(key), np.int64).reshape(-1)
    _put(draft, node, index, draft.constant_of(data, f"{node.name}/{key}"))


def _put(draft: Draft, node: Node, index: int, value: str) -> None:
    inputs = node.inputs + [""] * (index + 1 - len(node.inputs))
    inputs[index] = value
    draft.set_inputs(node, inputs)


def _axes(draft: Draft, node: Node, opset: int) -> None:
    _ints_input(draft, node, "axes", 1)


def _slice(draft: Draft, node: Node, opset: int) -> None:
    for index, key in enumerate(("starts", "ends", "axes"), start=1):
        _ints_input(draft, node, key, index)


def _reshape(draft: Draft, node: Node, opset: int) -> None:
    node.attrs.pop("consumed_inputs", None)
    _ints_input(draft, node, "shape", 1)


def _split(draft: Draft, node: Node, opset: int) -> None:
    _ints_input(draft, node, "split", 1)
    if len(node.inputs) < 2:
        node.attrs["num_outputs"] = len(node.outputs)


def _topk(draft: Draft, node: Node, opset: int) -> None:
    _ints_input(draft, node, "k", 1)


def _tile(draft: Draft, node: Node, opset: int) -> None:
    if opset >= 6 or len(node.inputs) < 3:
        return
    raise SplitterError("Tile of opset 1 to 5", where=node.name, hint="export with opset 17")


def _pad(draft: Draft, node: Node, opset: int) -> None:
    if "paddings" in node.attrs:
        node.attrs["pads"] = node.attrs.pop("paddings")
    _ints_input(draft, node, "pads", 1)
    if "value" in node.attrs:
        value = np.asarray(node.attrs.pop("value"), np.float32)
        _put(draft, node, 2, draft.constant_of(value, f"{node.name}/value"))


def _clip(draft: Draft, node: Node, opset: int) -> None:
    for index, key in enumerate(("min", "max"), start=1):
        if key in node.attrs:
            value = np.asarray(node.attrs.pop(key), np.float32)
            _put(draft, node, index, draft.constant_of(value, f"{node.name}/{key}"))


def _dropout(draft: Draft, node: Node, opset: int) -> None:
    training = draft.constant(node.input(2)) if node.input(2) else None
    if node.input(2) and (training is None or training.any()):
        raise SplitterError(
            "Dropout in training mode", where=node.name, hint="export the model for inference"
        )
    node.attrs.clear()
    draft.set_inputs(node, node.inputs[:1])


def _dft(draft: Draft, node: Node, opset: int) -> None:
    """The axis became an input in opset 20."""
    axis = node.attrs.pop("axis", None if opset >= 20 else 1)
    if axis is not None:
        _put(draft, node, 2, draft.constant_of(np.asarray(axis, np.int64), f"{node.name}/axis"))


def _softmax(draft: Draft, node: Node, opset: int) -> None:
    """Before opset 13 the axes from `axis` on were one: flatten, softmax, shape back."""
    if opset >= 13:
        return
    axis = node.attrs.get("axis", 1)
    if axis == -1:
        return
    source, stem = node.inputs[0], node.name
    shape, flat = draft.name(f"{stem}/shape"), draft.name(f"{stem}/flat")
    soft = draft.name(f"{stem}/soft")
    out = node.outputs[0]
    draft.remove(node)
    draft.add(Node("Shape", [source], [shape], {}, shape, sources=node.sources))
    draft.add(Node("Flatten", [source], [flat], {"axis": axis}, flat, sources=node.sources))
    draft.add(Node(node.op, [flat], [soft], {"axis": -1}, node.name, sources=node.sources))
    draft.add(Node("Reshape", [soft, shape], [out], {}, out, sources=node.sources))


def _resize(draft: Draft, node: Node, opset: int) -> None:
    """Upsample and Resize-10 (asymmetric, floor, scales at 1) -> today's Resize."""
    if node.op == "Upsample" or opset < 11:
        if "scales" in node.attrs:
            data = np.asarray(node.attrs.pop("scales"), np.float32)
            _put(draft, node, 1, draft.constant_of(data, f"{node.name}/scales"))
        mode = node.attrs.get("mode", "nearest")
        node.attrs["mode"] = {"bilinear": "linear"}.get(mode, mode)
        node.attrs["coordinate_transformation_mode"] = "asymmetric"
        node.attrs["nearest_mode"] = "floor"
        draft.set_inputs(node, [node.inputs[0], "", node.inputs[1]])
        node.op = "Resize"


def _grid_sample(draft: Draft, node: Node, opset: int) -> None:
    mode = node.attrs.get("mode", "linear")
    node.attrs["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


def _group_norm(draft: Draft, node: Node, opset: int) -> None:
    """Until opset 20 scale and bias were one a group; x [N, C, ...] says how often to repeat."""
    if opset >= 21:
        return
    groups = node.attrs["num_groups"]
    for index in (1, 2):
        data = draft.constants.get(node.inputs[index])
        channels = (
            (draft.types[node.inputs[0]].shape or (None, None))[1]
            if (node.inputs[0] in draft.types)
            else None
        )
        if data is None or channels is None:
            raise SplitterError(
                "GroupNormalization before opset 21 with computed scale",
                where=node.name, hint="export with opset 21",
            )  # fmt: skip
        name = draft.constant_of(np.repeat(data, channels // groups), f"{node.name}/channel")
        draft.set_input(node, index, name)


def _scatter(draft: Draft, node: Node, opset: int) -> None:
    node.op = "ScatterElements"


def _cast(draft: Draft, node: Node, opset: int) -> None:
    to = node.attrs.get("to")
    if isinstance(to, str):
        import onnx

        node.attrs["to"] = int(onnx.TensorProto.DataType.Value(to.upper()))


def _legacy_broadcast(draft: Draft, node: Node, opset: int) -> None:
    """Before opset 7 the second operand was aligned at `axis`: give it trailing axes."""
    axis = node.attrs.pop("axis", None)
    broadcast = node.attrs.pop("broadcast", 0)
    node.attrs.pop("consumed_inputs", None)
    if opset >= 7 or not broadcast or axis is None:
        return
    left, right = draft.rank(node.inputs[0]), draft.constants.get(node.inputs[1])
    if right is None or left is None:
        raise SplitterError(
            "broadcasting with an axis (opset 1 to 6)",
            where=node.name,
            hint="export with opset 17",
        )
    tail = left - (axis % left) - right.ndim
    data = right.reshape(right.shape + (1,) * tail)
    draft.set_input(node, 1, draft.constant_of(data, f"{node.name}/aligned"))


def _batch_norm(draft: Draft, node: Node, opset: int) -> None:
    for key in ("spatial", "is_test", "consumed_inputs", "momentum"):
        node.attrs.pop(key, None)
    if opset < 14 and len(node.outputs) > 1:
        node.outputs[1:] = []


def _spatial_attr(names: Sequence[str]) -> Rule:
    def drop(draft: Draft, node: Node, opset: int) -> None:
        for name in names:
            node.attrs.pop(name, None)

    return drop


def _rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {
        "Slice": _slice, "Reshape": _reshape, "Split": _split, "TopK": _topk, "Tile": _tile,
        "Pad": _pad, "Clip": _clip, "DFT": _dft, "Dropout": _dropout, "Resize": _resize,
        "Upsample": _resize,
        "GridSample": _grid_sample, "GroupNormalization": _group_norm, "Scatter": _scatter,
        "Cast": _cast, "BatchNormalization": _batch_norm,
        "Relu": _spatial_attr(("consumed_inputs",)),
    }  # fmt: skip
    reductions = ("Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum",
                  "LogSumExp")  # fmt: skip
    table |= {f"Reduce{kind}": _axes for kind in reductions}
    table |= dict.fromkeys(("Squeeze", "Unsqueeze"), _axes)
    table |= dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax)
    pairs = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less",
             "PRelu")  # fmt: skip
    return table | dict.fromkeys(pairs, _legacy_broadcast)


RULES: dict[str, Any] = _rules()
