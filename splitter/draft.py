"""The mutable graph that `normalize` and `layout` work on: nodes, constants, types, use lists.

Decides nothing. It keeps producers, users and names consistent while passes rewrite, and never
copies a weight. Everything outside these two stages reads frozen types only.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Type:
    """Element type (numpy name) and shape; None for a shape or a length that is not known."""

    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def static(self) -> bool:
        return self.shape is not None and None not in self.shape


@dataclass(eq=False, slots=True)
class Node:
    """One operator. `sources` are names of nodes of the original file it stands for.

    `captured` are the values its subgraphs read from outside. `marks` are facts found by a pass
    that ONNX cannot say (they travel as node metadata).
    """

    op: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    domain: str = ""
    sources: tuple[str, ...] = ()
    captured: tuple[str, ...] = ()
    marks: dict[str, str] = field(default_factory=dict)

    def input(self, index: int) -> str:
        """The input at index, "" when it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""


class Draft:
    """Nodes over named values. Change nodes only through the methods, so that uses stay true.

    `written` is the opset of the file: subgraphs are in it until they are inlined. `sequences` has
    the members of values that are no tensors; `rejected` what ONNX's inference has against a node.
    """

    def __init__(
        self, inputs: Sequence[str], outputs: Sequence[str], opset: int, domains: Mapping[str, int]
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.opset = self.written = opset
        self.domains = dict(domains)
        self.constants: dict[str, Array] = {}
        self.sequences: dict[str, tuple[str, ...]] = {}
        self.types: dict[str, Type] = {}
        self.rejected: dict[Node, str] = {}
        self.producer: dict[str, Node] = {}
        self._uses: dict[str, dict[Node, None]] = {}
        self._nodes: dict[Node, None] = {}
        self._order: list[Node] | None = []
        self._fresh = 0

    # Reading

    @property
    def nodes(self) -> list[Node]:
        """A snapshot in topological order: safe to rewrite while walking; skip the removed."""
        if self._order is None:
            self._order = self._sorted()
        return list(self._order)

    def alive(self, node: Node) -> bool:
        return node in self._nodes

    def users(self, value: str) -> list[Node]:
        return list(self._uses.get(value, ()))

    def only_user(self, value: str) -> Node | None:
        """The one node that reads the value, when nothing else does (outputs count)."""
        users = self._uses.get(value, {})
        if len(users) != 1 or value in self.outputs:
            return None
        user = next(iter(users))
        return user if user.inputs.count(value) == 1 and value not in user.captured else None

    def pinned(self, value: str) -> bool:
        """Whether the name must survive: a model output, or read inside a subgraph."""
        return value in self.outputs or any(value in n.captured for n in self._uses.get(value, ()))

    def constant(self, value: str) -> Array | None:
        return self.constants.get(value)

    def ints(self, value: str) -> list[int] | None:
        """A constant of integers as a flat list."""
        data = self.constants.get(value)
        return None if data is None else [int(x) for x in data.reshape(-1)]

    def scalar(self, value: str) -> float | None:
        """A constant with one element."""
        data = self.constants.get(value)
        return float(data.reshape(-1)[0]) if data is not None and data.size == 1 else None

    def known(self, value: str) -> Type | None:
        """What is known of a value's type."""
        if value in self.constants:
            return Type(self.constants[value].dtype.name, self.constants[value].shape)
        return self.types.get(value)

    def shape(self, value: str) -> tuple[int, ...] | None:
        """The shape when it is static."""
        if value in self.constants:
            return self.constants[value].shape
        known = self.types.get(value)
        if known is None or known.shape is None or None in known.shape:
            return None
        return tuple(int(d) for d in known.shape if d is not None)

    def rank(self, value: str) -> int | None:
        if value in self.constants:
            return int(self.constants[value].ndim)
        known = self.types.get(value)
        return None if known is None or known.shape is None else len(known.shape)

    def dtype(self, value: str) -> str:
        if value in self.constants:
            return str(self.constants[value].dtype.name)
        known = self.types.get(value)
        return known.dtype if known else ""

    def is_text(self, value: str) -> bool:
        """Whether the value holds strings."""
        return self.dtype(value) in ("object", "str") or self.dtype(value).startswith("str")

    # Rewriting

    def name(self, stem: str) -> str:
        """A value name that is not taken."""
        while True:
            self._fresh += 1
            candidate = f"{stem}~{self._fresh}"
            if candidate not in self.types and candidate not in self.constants:
                return candidate

    def add(self, node: Node, types: Iterable[Type] = ()) -> Node:
        """Add a node; types of its outputs in order when they are known."""
        self._nodes[node] = None
        self._order = None
        for value in [*node.inputs, *node.captured]:
            self._use(value, node)
        for value in node.outputs:
            if value:
                self.producer[value] = node
        for value, known in zip(node.outputs, types, strict=False):
            if value:
                self.types[value] = known
        return node

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        known: Type,
        *,
        stem: str,
        out: str = "",
        sources: tuple[str, ...] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a node with one output, `out` or a fresh name from the stem; returns the output."""
        out = out or self.name(stem)
        self.add(Node(op, list(inputs), [out], dict(attrs or {}), out, sources=sources), [known])
        return out

    def constant_of(self, data: Array, stem: str) -> str:
        """Add a constant under a fresh name."""
        name = self.name(stem)
        self.constants[name] = data
        return name

    def remove(self, node: Node) -> None:
        """Drop a node; its outputs lose their producer (make_constant or add gives a new one)."""
        del self._nodes[node]
        self._order = None if self._order is None else [n for n in self._order if n is not node]
        for value in {*node.inputs, *node.captured}:
            if value:
                self._uses[value].pop(node, None)
        for value in node.outputs:
            if self.producer.get(value) is node:
                del self.producer[value]

    def set_input(self, node: Node, index: int, value: str) -> None:
        old = node.inputs[index]
        node.inputs[index] = value
        if old and old not in node.inputs and old not in node.captured:
            self._uses[old].pop(node, None)
        self._use(value, node)
        self._order = None

    def set_inputs(self, node: Node, values: Sequence[str]) -> None:
        for old in {*node.inputs}:
            if old and old not in node.captured:
                self._uses[old].pop(node, None)
        node.inputs = list(values)
        for value in values:
            self._use(value, node)
        self._order = None

    def make_constant(self, node: Node, values: Mapping[str, Array]) -> None:
        """Replace a node by the constants it computes."""
        self.remove(node)
        for name, data in values.items():
            self.constants[name] = data
            self.types[name] = Type(data.dtype.name, data.shape)

    def replace(self, old: str, new: str) -> None:
        """Let every reader of `old` read `new`. The producer of `old`, if any, is left alone.

        When `old` must keep its name, `new` is renamed to it, or an Identity makes it.
        """
        for node in self.users(old):
            if old in node.captured:
                continue
            for index, value in enumerate(node.inputs):
                if value == old:
                    self.set_input(node, index, new)
        if not self.pinned(old):
            return
        self._drop_producer(old)
        maker = self.producer.get(new)
        if maker is None or new in self.inputs or self.pinned(new):
            known = self.types.get(new) or Type(self.dtype(new), self.shape(new))
            self.add(Node("Identity", [new], [old], {}, f"Identity_{old}"), [known])
            return
        self._rename(maker, new, old)

    def bypass(self, node: Node, value: str) -> None:
        """Remove a node with one output whose readers may read `value` instead."""
        out = node.outputs[0]
        self.remove(node)
        self.replace(out, value)

    def rename(self, value: str, name: str = "") -> str:
        """Give a computed value another name (a fresh one when none is given); returns it.

        A pass that changes what a value holds must not leave it its old name: names are promises
        to compare by.
        """
        name = name or self.name(value.split("~")[0])
        self._rename(self.producer[value], value, name)
        self.types.pop(value, None)
        return name

    def absorb(self, node: Node, value: str) -> None:
        """Remove a node whose work `value` now includes; the value takes the output's name."""
        out = node.outputs[0]
        self.remove(node)
        self._rename(self.producer[value], value, out)
        self.types.pop(value, None)

    def prune(self) -> None:
        """Remove nodes nobody reads, and constants and types without a reader."""
        for node in reversed(self.nodes):
            if not any(
                out and (self._uses.get(out) or out in self.outputs) for out in node.outputs
            ):
                self.remove(node)
        for name in [n for n in self.constants if not self._uses.get(n) and n not in self.outputs]:
            del self.constants[name]
        live = {*self.inputs, *self.outputs, *self.constants, *self.producer}
        self.types = {name: known for name, known in self.types.items() if name in live}

    def snapshot(self) -> Draft:
        """A copy that shares constants and attributes, which no pass changes in place."""
        shared = [*self.constants.values(), *(v for n in self._nodes for v in n.attrs.values())]
        return copy.deepcopy(self, {id(value): value for value in shared})

    def restore(self, former: Draft) -> None:
        """Be what a snapshot was; nodes are other objects than before."""
        vars(self).update(vars(former))

    def _use(self, value: str, node: Node) -> None:
        if value:
            self._uses.setdefault(value, {})[node] = None

    def _drop_producer(self, value: str) -> None:
        node = self.producer.get(value)
        if node is None:
            return
        del self.producer[value]
        node.outputs = ["" if out == value else out for out in node.outputs]
        if not any(node.outputs):
            self.remove(node)

    def _rename(self, maker: Node, new: str, old: str) -> None:
        maker.outputs = [old if out == new else out for out in maker.outputs]
        del self.producer[new]
        self.producer[old] = maker
        if new in self.types:
            self.types[old] = self.types[new]
        for node in self.users(new):
            for index, value in enumerate(node.inputs):
                if value == new:
                    self.set_input(node, index, old)
        self._order = None

    def _sorted(self) -> list[Node]:
        """Depth-first from the nodes in insertion order, so the order is stable."""
        done: set[Node] = set()
        order: list[Node] = []
        for root in self._nodes:
            stack = [(root, False)]
            while stack:
                node, ready = stack.pop()
                if ready:
                    order.append(node)
                elif node not in done:
                    done.add(node)
                    stack.append((node, True))
                    makers = [self.producer.get(v) for v in (*node.inputs, *node.captured)]
                    stack.extend((m, False) for m in reversed(makers) if m and m not in done)
        return order
