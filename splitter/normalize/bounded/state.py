"""What is known of values with rows that may be missing, and the nodes that are written for them.

mask      which rows along one axis of a value there are; its length is the most there can be
numbers   values that count rows: they number the padded rows, not those that ONNX has, as long as
          nothing but picking from such rows is done with them
repeats   masks of which each row of another mask makes several elements
lengths   integers made of how many rows there are (`lengths`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitter.draft import Array, Draft, Node, Type
from splitter.normalize.exchange import elem_type
from splitter.normalize.fold import infer

LOWEST = float(np.finfo(np.float32).min)


class Unbounded(Exception):
    """A node mixes rows in a way that is not understood; the message says which."""


@dataclass(frozen=True, slots=True)
class Masked:
    """The axis whose rows may be missing, and the mask: a bool value of its length."""

    axis: int
    mask: str


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of padded rows, of the rows of a mask. axis, column: where in the value they are; the
    whole value when column is None."""

    mask: str
    axis: int = 0
    column: int | None = None


Parts = Mapping[Any, Array]
"""A value of integers as a sum: key None the constant, a mask how often its count, (mask, most)
how often the smaller of both."""


class Rows:
    """Everything known while the graph is walked once."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.masks: dict[str, Masked] = {}
        self.numbers: dict[str, Numbers] = {}
        self.lengths: dict[str, Parts] = {}
        self.done: set[Node] = set()
        self._counts: dict[str, str] = {}
        self.repeats: dict[str, tuple[str, int]] = {}
        self._packed: dict[str, tuple[str, str]] = {}
        self._ranks: dict[str, str] = {}
        self._joined: dict[tuple[tuple[str, int], ...], str] = {}

    def touched(self, node: Node) -> bool:
        known = (self.masks, self.numbers, self.lengths)
        return any(name in table for name in (*node.inputs, *node.captured) for table in known)

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self.draft.shape(name)
        if shape is None:
            raise Unbounded(f"the shape of {name} is not known")
        return shape

    # -- writing ------------------------------------------------------------------------------

    def add(self, node: Node, types: Sequence[Type] = ()) -> None:
        """A node that need not be looked at again."""
        self.done.add(self.draft.add(node, types))
        if not types:
            infer(self.draft, node)

    def emit(self, node: Node, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        """A node beside `node`; its output."""
        out = self.draft.name(f"{node.name}/{op}")
        self.add(Node(op, list(inputs), [out], attrs, out, sources=node.sources))
        return out

    def const(self, data: Any, dtype: str = "int64") -> str:
        return self.draft.constant_of(np.asarray(data, dtype), "rows")

    def pieces(self, name: str, axis: int) -> list[str]:
        """What a value is put together from along another axis than this one; itself otherwise."""
        node = self.draft.producer.get(name)
        if node is None or node.op != "Concat" or len(self.draft.users(name)) > 1:
            return [name]
        if int(node.attrs["axis"]) % len(self.shape(name)) == axis:
            return [name]
        return [piece for piece in node.inputs if 0 not in self.shape(piece)]

    def refresh(self, node: Node) -> None:
        """The types of what a node gives, its inputs being static now."""
        for out in node.outputs:
            self.draft.types.pop(out, None)
        infer(self.draft, node)
        for out in filter(None, node.outputs):
            self.shape(out)

    def instead(self, node: Node, value: str) -> None:
        """The first output of a node is this value."""
        out = node.outputs[0]
        self.draft.remove(node)
        made = Node("Identity", [value], [out], {}, node.name, sources=node.sources)
        self.draft.types.pop(out, None)
        self.add(made)

    # -- masks --------------------------------------------------------------------------------

    def spread(self, node: Node, mask: str, axis: int, rank: int) -> str:
        """The mask with its axis at `axis` of a value of that rank, to be broadcast."""
        shape = [1] * rank
        shape[axis] = self.shape(mask)[0]
        return self.emit(node, "Reshape", [mask, self.const(shape)])

    def filled(self, node: Node, name: str, value: float) -> str:
        """A masked value with a number in the rows that are missing."""
        known = self.masks[name]
        mask = self.spread(node, known.mask, known.axis, len(self.shape(name)))
        fill = self.const(value, self.draft.dtype(name))
        return self.emit(node, "Where", [mask, name, fill])

    def joined(self, node: Node, masks: Sequence[str], lengths: Sequence[int]) -> str:
        """Masks one after the other, "" for rows that are all there; the same ones are one mask."""
        key = tuple(zip(masks, lengths, strict=True))
        if key not in self._joined:
            ones = {length: self.const(np.ones(length), "bool") for mask, length in key if not mask}
            pieces = [mask or ones[length] for mask, length in key]
            self._joined[key] = self.emit(node, "Concat", pieces, axis=0)
        return self._joined[key]

    def count(self, node: Node, mask: str) -> str:
        """How many rows there are, [1] int64."""
        if mask not in self._counts:
            numbers = self.emit(node, "Cast", [mask], to=7)
            self._counts[mask] = self.emit(node, "ReduceSum", [numbers, self.const([0])],
                                           keepdims=1)  # fmt: skip
        return self._counts[mask]

    def packed(self, node: Node, mask: str) -> tuple[str, str]:
        """Numbers of the padded rows, those there are first, and the mask in that order."""
        if mask not in self._packed:
            numbers = self.emit(node, "Cast", [mask], to=6)
            length = self.shape(mask)[0]
            out = [self.draft.name(f"{node.name}/{n}") for n in ("there", "order")]
            made = Node("TopK", [numbers, self.const([length])], out, {"axis": 0}, out[1],
                        sources=node.sources)  # fmt: skip
            self.add(made)
            first = self.emit(node, "Gather", [mask, out[1]], axis=0)
            self._packed[mask] = out[1], first
            self._packed[first] = "", first
        return self._packed[mask]

    def pack(self, node: Node, name: str) -> str:
        """A masked value with the rows there are first; known as masked by the packed mask."""
        known = self.masks[name]
        order, mask = self.packed(node, known.mask)
        if not order:
            return name
        made = self.emit(node, "Gather", [name, order], axis=known.axis)
        self.masks[made] = Masked(known.axis, mask)
        if name in self.numbers:
            self.numbers[made] = self.numbers[name]
        return made

    def is_packed(self, mask: str) -> bool:
        return mask in self._packed and not self._packed[mask][0]

    def mark_packed(self, mask: str) -> None:
        self._packed[mask] = "", mask

    # -- numbers ------------------------------------------------------------------------------

    def real(self, node: Node, name: str) -> str:
        """A value with the row numbers that ONNX has in place of those of padded rows."""
        known = self.numbers.get(name)
        if known is None or self.is_packed(known.mask):
            return name
        if known.column is None:
            return self._copied(name, self._ranked(node, known.mask, name))
        length = self.shape(name)[known.axis]
        pieces = []
        for column in range(length):
            piece = self.emit(node, "Gather", [name, self.const([column])], axis=known.axis)
            pieces.append(self._ranked(node, known.mask, piece) if column == known.column
                          else piece)  # fmt: skip
        return self._copied(name, self.emit(node, "Concat", pieces, axis=known.axis))

    def plain(self, node: Node, name: str) -> None:
        """Refuse what a rule would hand on without knowing that it numbers rows."""
        if name in self.numbers:
            raise Unbounded(f"{node.op} {node.name} reads numbers of rows that may be missing")

    def _copied(self, name: str, made: str) -> str:
        if name in self.masks:
            self.masks[made] = self.masks[name]
        return made

    def _ranked(self, node: Node, mask: str, numbers: str) -> str:
        if mask not in self._ranks:
            there = self.emit(node, "Cast", [mask], to=7)
            sums = self.emit(node, "CumSum", [there, self.const(0)])
            before = self.emit(node, "Sub", [sums, self.const(1)])
            self._ranks[mask] = self.emit(node, "Max", [before, self.const(0)])
        kind = self.draft.dtype(numbers)
        ranks = self.emit(node, "Gather", [self._ranks[mask], numbers], axis=0)
        if kind == "int64":
            return ranks
        return self.emit(node, "Cast", [ranks], to=elem_type(kind))


def static(known: Type | None) -> bool:
    return known is not None and known.static


__all__ = ["LOWEST", "Masked", "Numbers", "Parts", "Rows", "Unbounded", "static"]
