"""Which layouts an operator can run in. A unit's label is the order its axes are stored in.

The label is a permutation of the axes of the unit's iteration space (its data input, for
elementwise units its output); `Ports` says which labels are possible and what each label means for
every input and output. Rigid units have one label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from splitter.draft import Draft, Node
from splitter.layout.spatial import SPATIAL
from splitter.layout.views import Perm, Shape

ATTRIBUTELESS = frozenset(
    [
        "Div",
        "Pow",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "And",
        "Or",
        "Xor",
        "PRelu",
        "Where",
        "Relu",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Log",
        "Sqrt",
        "Reciprocal",
        "Neg",
        "Abs",
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Sin",
        "Cos",
        "Tan",
        "Atan",
        "Erf",
        "Softplus",
        "Softsign",
        "HardSwish",
        "Mish",
        "Not",
        "IsNaN",
        "Identity",
        "Min",
        "Max",
        "Add",
        "Sub",
        "Mul",
    ]
)
"""Element-wise operators that are told by their name alone."""

ELEMENTWISE = ATTRIBUTELESS | {
    "Mod", "IsInf", "Gelu", "Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Selu",
    "Clip", "Cast", "FakeQuantize", "Magnitude",
}  # fmt: skip
SAME_AXES = frozenset(("Concat", "Split", "Slice", "Pad", "Tile", "CumSum"))
LAST_AXIS = frozenset(("Softmax", "LogSoftmax", "TopK"))
REDUCE = frozenset(
    f"Reduce{kind}"
    for kind in [
        "Mean",
        "Sum",
        "Max",
        "Min",
        "Prod",
        "L1",
        "L2",
        "SumSquare",
        "LogSum",
        "LogSumExp",
    ]
) | {"ArgMax", "ArgMin"}


@dataclass(frozen=True)
class Ports:
    """rank: length of a label. fixed: the only label, or None when `allowed` decides.

    input_shapes: shapes in ONNX axes, padded with leading 1 to the label's rank where the operator
    broadcasts. data: how many inputs, from the first, follow the label (parameters do not).
    gone: axes of the label the output does not have.
    """

    rank: int
    fixed: Perm | None
    allowed: Callable[[Perm], bool]
    input_perm: Callable[[int, Perm], Perm]
    output_perm: Callable[[int, Perm], Perm]
    input_shapes: tuple[Shape, ...]
    data: int = 99
    gone: tuple[int, ...] = ()
    swaps: bool = False

    def flexible(self, index: int) -> bool:
        """Whether this input can come in another order when the label changes."""
        return self.fixed is None and index < self.data

    def alternatives(self, index: int, perm: Perm) -> tuple[Perm, ...]:
        """Other orders of an input that an attr expresses: adj_x and adj_y of MatMul."""
        return ((*perm[:-2], perm[-1], perm[-2]),) if self.swaps else ()

    def label_for_output(self, perm: Perm, label: Perm) -> Perm:
        """The label whose output is stored as perm; axes the output lacks stay in their places."""
        axes = [a for a in range(self.rank) if a not in self.gone]
        order = iter([axes[p] for p in perm])
        return tuple(a if a in self.gone else next(order) for a in label)


def identity(rank: int) -> Perm:
    return tuple(range(rank))


def channels_last(rank: int) -> Perm:
    return (0, *range(2, rank), 1)


def ports(draft: Draft, node: Node) -> Ports:
    """The ports of a unit."""
    shapes = tuple(draft.shape(v) or () for v in node.inputs)
    if node.op in ELEMENTWISE:
        return _elementwise(draft, node, shapes)
    if node.op in SAME_AXES or (node.op == "Expand" and len(shapes[0]) == _rank(draft, node)):
        rank = len(shapes[0])
        return _flexible(rank, shapes, lambda perm: True)
    if node.op in LAST_AXIS:
        axis = node.attrs["axis"]
        return _flexible(len(shapes[0]), shapes, lambda perm: perm[-1] == axis)
    if node.op in ("LayerNormalization", "RMSNormalization"):
        return _trailing(shapes, node.attrs["axis"])
    if node.op == "FullyConnected":
        return _trailing(shapes, len(shapes[0]) - 1)
    if node.op == "MatMul" and min(map(len, shapes)) >= 2:
        return _matmul(draft, node, shapes)
    if node.op in REDUCE:
        return _reduce(node, shapes)
    if node.op in SPATIAL and len(shapes[0]) == 4 and _spatial(draft, node):
        return _channels_last(draft, node, shapes)
    return _rigid(draft, node, shapes)


def _rank(draft: Draft, node: Node) -> int:
    return len(draft.shape(node.outputs[0]) or ())


def _elementwise(draft: Draft, node: Node, shapes: tuple[Shape, ...]) -> Ports:
    rank = _rank(draft, node)
    padded = tuple((1,) * (rank - len(s)) + s for s in shapes)
    return Ports(rank, None, lambda perm: True, lambda i, perm: perm, lambda i, perm: perm, padded)


def _flexible(rank: int, shapes: tuple[Shape, ...], allowed: Callable[[Perm], bool]) -> Ports:
    return Ports(rank, None, allowed, lambda i, perm: perm, lambda i, perm: perm, shapes)


def _trailing(shapes: tuple[Shape, ...], first: int) -> Ports:
    """The data's axes from `first` on stay last and in order; other inputs are parameters."""
    rank = len(shapes[0])
    tail = tuple(range(first, rank))

    def input_perm(index: int, perm: Perm) -> Perm:
        return perm if index == 0 else identity(len(shapes[index]))

    return Ports(
        rank, None, lambda perm: perm[first:] == tail, input_perm, lambda i, perm: perm, shapes,
        data=1,
    )  # fmt: skip


def _matmul(draft: Draft, node: Node, shapes: tuple[Shape, ...]) -> Ports:
    """Leading axes in any order; the last two of each operand may be swapped by an attr."""
    rank = _rank(draft, node)
    padded = tuple((1,) * (rank - len(s)) + s for s in shapes)
    tail = (rank - 2, rank - 1)
    return Ports(
        rank, None, lambda perm: perm[-2:] == tail, lambda i, perm: perm, lambda i, perm: perm,
        padded, swaps=True,
    )  # fmt: skip


def _reduce(node: Node, shapes: tuple[Shape, ...]) -> Ports:
    axes = node.attrs.get("axes") or (() if "axis" not in node.attrs else (node.attrs["axis"],))
    gone = () if node.attrs["keepdims"] else axes

    def output_perm(index: int, perm: Perm) -> Perm:
        kept = [axis for axis in perm if axis not in gone]
        return tuple(axis - sum(a < axis for a in gone) for axis in kept)

    rank = len(shapes[0])
    return Ports(rank, None, lambda perm: True, lambda i, perm: perm, output_perm, shapes,
                 gone=tuple(gone))  # fmt: skip


def _spatial(draft: Draft, node: Node) -> bool:
    return node.op != "Resize" or len(node.attrs["sizes"]) == 2


def _channels_last(draft: Draft, node: Node, shapes: tuple[Shape, ...]) -> Ports:
    label = channels_last(4)

    def input_perm(index: int, perm: Perm) -> Perm:
        return label if index == 0 else identity(len(shapes[index]))

    return Ports(4, label, lambda p: p == label, input_perm, lambda i, p: label, shapes)


def _rigid(draft: Draft, node: Node, shapes: tuple[Shape, ...]) -> Ports:
    ranks = tuple(len(draft.shape(v) or ()) for v in node.outputs)
    return Ports(
        0, (), lambda p: p == (), lambda i, p: identity(len(shapes[i])),
        lambda i, p: identity(ranks[i]), shapes,
    )  # fmt: skip


def renumber(node: Node, perm: Perm) -> Mapping[str, Any]:
    """The unit's attrs for axes stored in the order perm."""
    attrs = dict(node.attrs)
    if node.op in ELEMENTWISE or not perm:
        return attrs
    place = {axis: index for index, axis in enumerate(perm)}
    if node.op in SPATIAL or node.op == "FullyConnected":
        return attrs
    if "axis" in attrs:
        attrs["axis"] = place[attrs["axis"]]
    if "axes" in attrs:
        attrs["axes"] = tuple(sorted(place[axis] for axis in attrs["axes"]))
    for key in ("starts", "ends", "steps", "pads", "repeats"):
        if key in attrs:
            attrs[key] = tuple(attrs[key][axis] for axis in perm)
    if node.op == "Expand":
        attrs["shape"] = tuple(attrs["shape"][axis] for axis in perm)
    return attrs
