"""What is wrong with the file itself: nodes that no runtime runs on the shapes they are given.

Decides by what ONNX's own inference has against a node, and by the lengths that it does not compare
(elements of a Reshape, channels of a convolution, places that a Gather reads). What is valid but
has no static form is for `require_static` to tell.
"""

from __future__ import annotations

from math import prod

import onnx

from splitter.diagnostics import SplitterError
from splitter.draft import Draft, Node
from splitter.normalize.static import is_static


def refuse_invalid(draft: Draft) -> None:
    """Error that names every such node with what is wrong; what only follows is not named."""
    found = [(node, why) for node in draft.nodes if (why := _fault(draft, node))]
    if not found:
        return
    who = f"{len(found)} nodes do" if len(found) > 1 else "1 node does"
    listed = "\n  ".join(f"{node.op} {node.name}: {why}" for node, why in found)
    raise SplitterError(
        f"the file is not valid: {who} not fit what is given:\n  {listed}",
        hint="export the model again, or correct these nodes; no runtime runs them as they are. "
        "Where --shape or --max-trips was given, other lengths or fewer turns may fit",
    )


def _fault(draft: Draft, node: Node) -> str:
    said = draft.rejected.get(node, "")
    if any(isinstance(value, onnx.GraphProto) for value in node.attrs.values()):
        return ""  # the inference of a body knows none of the constants around it
    if said and not all(is_static(draft, name) for name in node.outputs if name):
        return f"{said} ({_given(draft, node)})"
    return _unequal(draft, node) if not node.domain else ""


def _unequal(draft: Draft, node: Node) -> str:
    """Lengths that ONNX's inference leaves uncompared."""
    first, second = draft.shape(node.input(0)), draft.shape(node.input(1))
    if node.op == "Reshape":
        to = draft.shape(node.outputs[0])
        if first is not None and to is not None and prod(first) != prod(to):
            return f"{list(first)} has {prod(first)} elements, {list(to)} {prod(to)}"
    if node.op == "Gather" and first is not None:
        return _outside(draft, node, first[node.attrs.get("axis", 0)])
    if node.op in ("Conv", "ConvTranspose") and first and second:
        groups = node.attrs.get("group", 1)
        takes = second[1] * groups if node.op == "Conv" else second[0]
        if first[1] != takes:
            return f"{list(second)} takes {takes} channels, {list(first)} has {first[1]}"
    return ""


def _outside(draft: Draft, node: Node, length: int | None) -> str:
    """A place that is known, and is not there."""
    places = draft.constant(node.inputs[1])
    if places is None or not places.size or length is None:
        return ""
    wrong = [int(place) for place in places.reshape(-1) if not -length <= place < length]
    return f"it reads at {wrong[0]} of {length}" if wrong else ""


def _given(draft: Draft, node: Node) -> str:
    """ "x float32 [2, 3], w float32 [4, 5]"."""
    return ", ".join(f"{n} {draft.dtype(n)} {_lengths(draft, n)}" for n in node.inputs if n)


def _lengths(draft: Draft, name: str) -> str:
    constant, known = draft.constants.get(name), draft.types.get(name)
    shape = constant.shape if constant is not None else known.shape if known else None
    return "of unknown rank" if shape is None else f"[{', '.join(map(_length, shape))}]"


def _length(length: int | None) -> str:
    return "?" if length is None else str(length)
