"""A sum over an axis of length 2 is written as the sum of its two halves, where a spectrum is read.

Frameworks stack real and imaginary part along an axis and sum the squares over it: ReduceSum of
x * x, ReduceSumSquare, ReduceL2. As two values their squares are seen to be one function of a pair
(`layout.magnitude`, `quantize.functions`). Decides that this is worth it where a root or a
logarithm reads the sum, which take apart what lies near 0; elsewhere the reduction stays.
"""

from __future__ import annotations

from splitter.draft import Draft, Node
from splitter.normalize.writer import Writer

SUMS = frozenset(("ReduceSum", "ReduceSumSquare", "ReduceL2"))
STEEP = frozenset(("Sqrt", "Log"))
BETWEEN = frozenset(("Add", "Clip", "Max", "Mul", "Reshape", "Slice", "Transpose"))
"""What may stand between the sum and what tears it apart, with one input that varies."""


def split_pairs(draft: Draft) -> None:
    for node in draft.nodes:
        if draft.alive(node) and node.op in SUMS and not node.domain:
            _split(draft, node)
    draft.prune()


def _split(draft: Draft, node: Node) -> None:
    axis = _axis(draft, node)
    value = node.inputs[0]
    if node.op == "ReduceSum":
        maker = draft.producer.get(value)
        if maker is None or maker.op != "Mul" or maker.inputs[0] != maker.inputs[1]:
            return
        if draft.only_user(value) is None:
            return
        value = maker.inputs[0]
    if axis is None or not (node.op == "ReduceL2" or _leads_to_steep(draft, node.outputs[0])):
        return
    keep = bool(node.attrs.get("keepdims", 1))
    shape = draft.shape(node.outputs[0])
    w = Writer(draft, node)
    squares = []
    for start in (0, 1):
        bounds = [w.const([one]) for one in (start, start + 1, axis, 1)]
        half = w.add("Slice", [value, *bounds])
        if not keep:
            half = w.add("Reshape", [half, w.const(shape)])
        squares.append(w.add("Mul", [half, half]))
    if node.op == "ReduceL2":
        w.add("Sqrt", [w.add("Add", squares)], out=w.out)
    else:
        w.add("Add", squares, out=w.out)


def _axis(draft: Draft, node: Node) -> int | None:
    """The one axis reduced, where it has two entries."""
    shape, axes = draft.shape(node.inputs[0]), draft.ints(node.input(1)) if node.input(1) else None
    if shape is None or axes is None or len(axes) != 1 or draft.shape(node.outputs[0]) is None:
        return None
    axis = int(axes[0]) % len(shape)
    return axis if shape[axis] == 2 and draft.dtype(node.inputs[0]).startswith("float") else None


def _leads_to_steep(draft: Draft, value: str) -> bool:
    """Whether a root or logarithm is the only one that reads the value, through simple steps."""
    reader = draft.only_user(value)
    while reader is not None and reader.op in BETWEEN and not reader.domain:
        varied = [name for name in reader.inputs if name and draft.constant(name) is None]
        if len(set(varied)) != 1:
            return False
        reader = draft.only_user(reader.outputs[0])
    return reader is not None and reader.op in STEEP and not reader.domain
