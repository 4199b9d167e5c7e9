"""One ONNX node with its values at hand, shapes seen as [N, C, H, W].

Shapes are aligned to the right: of [A, B, C] A is the channel axis, B height, C width. That is how
a tool whose tensors have four dimensions must see them unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from splitter.graph import Array, Origin, OriginNode

UNKNOWN = "unknown"
Shape = tuple[int, ...]


def aligned(shape: Shape) -> Shape:
    """The shape as N, C, H, W; what is left of four axes is N."""
    padded = (1,) * max(4 - len(shape), 0) + tuple(shape)
    return (prod(padded[:-3]), *padded[-3:])


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and where it stands. group: the nodes that are judged with it, itself first."""

    origin: Origin
    node: OriginNode
    group: tuple[OriginNode, ...] = ()

    def name(self, index: int) -> str:
        """The input at index, "" when it is absent."""
        inputs = self.node.inputs
        return inputs[index] if index < len(inputs) else ""

    def shape(self, index: int = 0) -> Shape:
        name = self.name(index)
        return self.origin.shape(name) if name else ()

    @property
    def out(self) -> Shape:
        return self.origin.shape(self.node.outputs[0]) if self.node.outputs else ()

    def constant(self, index: int) -> Array | None:
        return self.origin.constants.get(self.name(index))

    def is_constant(self, index: int) -> bool:
        return self.name(index) in self.origin.constants

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Values of a constant of integers."""
        data = self.constant(index)
        return None if data is None else tuple(int(value) for value in data.reshape(-1))

    @property
    def variable(self) -> tuple[str, ...]:
        """Inputs that are not constant."""
        return tuple(n for n in self.node.inputs if n and n not in self.origin.constants)

    @property
    def activations(self) -> tuple[str, ...]:
        """Values that pass: inputs that are not constant, and outputs."""
        return (*self.variable, *(name for name in self.node.outputs if name))

    def axis(self, default: int, index: int = 0) -> int:
        """The axis attribute, not negative."""
        rank = max(len(self.shape(index)), 1)
        return int(self.node.attrs.get("axis", default)) % rank

    def axes(self, index: int = 1) -> Shape | None:
        """The axes of a reduction, from the attribute or a constant input; None when unknown."""
        rank = len(self.shape())
        given = self.node.attrs.get("axes")
        if given is None and self.name(index):
            given = self.ints(index)
            if given is None:
                return None
        return tuple(sorted(int(a) % rank for a in given)) if given else tuple(range(rank))
