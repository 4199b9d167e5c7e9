"""The units and how their inputs come out of other units through Reshape and Transpose chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from splitter.draft import Draft, Node
from splitter.layout.ports import Ports, identity, ports
from splitter.layout.views import (
    Atoms,
    Perm,
    Shape,
    View,
    group,
    source_groups,
    stored,
)


@dataclass(frozen=True, eq=False)
class Edge:
    """Input `index` of `consumer` (None: the model output `value`) reads `source` through a view.

    `chain`: the Reshape and Transpose nodes between, in order. have_groups, want_groups: the atoms
    of the source's and of the input's axes.
    """

    source: str
    value: str
    consumer: Node | None
    index: int
    sizes: Atoms
    have_groups: tuple[Atoms, ...]
    want_groups: tuple[Atoms, ...]
    shape: Shape
    chain: tuple[Node, ...]


@dataclass(frozen=True)
class Wiring:
    """Units (view chains left out), their ports, edges into each unit and out of each value."""

    units: tuple[Node, ...]
    ports: dict[Node, Ports]
    into: dict[Node, tuple[Edge, ...]]
    outputs: tuple[Edge, ...]
    readers: dict[str, tuple[Edge, ...]]
    maker: dict[str, tuple[Node, int]]

    def source_perm(self, edge: Edge, labels: dict[Node, Perm]) -> Perm:
        made = self.maker.get(edge.source)
        if made is None:
            return identity(len(edge.have_groups))
        node, index = made
        return self.ports[node].output_perm(index, labels[node])

    def target_perm(self, edge: Edge, labels: dict[Node, Perm]) -> Perm:
        if edge.consumer is None:
            return identity(len(edge.want_groups))
        return self.ports[edge.consumer].input_perm(edge.index, labels[edge.consumer])

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All edges, in the order of the units, outputs last."""
        return (*(edge for node in self.units for edge in self.into[node]), *self.outputs)

    def wants(self, edge: Edge, labels: dict[Node, Perm]) -> tuple[Atoms, ...]:
        """The orders the input can take: the plain one first, then what an attr can express."""
        plain = self.target_perm(edge, labels)
        perms: tuple[Perm, ...] = (plain,)
        if edge.consumer is not None:
            perms += self.ports[edge.consumer].alternatives(edge.index, plain)
        return tuple(stored(edge.want_groups, perm) for perm in perms)

    def have(self, edge: Edge, labels: dict[Node, Perm]) -> Atoms:
        return stored(edge.have_groups, self.source_perm(edge, labels))

    def want(self, edge: Edge, labels: dict[Node, Perm]) -> Atoms:
        return stored(edge.want_groups, self.target_perm(edge, labels))


@dataclass(frozen=True, slots=True)
class _Chain:
    source: str
    view: View
    nodes: tuple[Node, ...]


def wire(draft: Draft) -> Wiring:
    """Follow every input back to the unit, model input or constant it comes from."""
    chains: dict[str, _Chain] = {}
    units: list[Node] = []
    for node in draft.nodes:
        chain = _extend(draft, chains, node) if node.op in ("Reshape", "Transpose") else None
        if chain is not None:
            chains[node.outputs[0]] = chain
        else:
            units.append(node)
    all_ports = {node: ports(draft, node) for node in units}
    into = {
        node: tuple(
            _edge(draft, chains, value, node, index, all_ports[node].input_shapes[index])
            for index, value in enumerate(node.inputs)
            if value and value not in draft.constants
        )
        for node in units
    }
    outputs = tuple(
        _edge(draft, chains, value, None, index, draft.shape(value) or ())
        for index, value in enumerate(draft.outputs)
    )
    readers: dict[str, list[Edge]] = {}
    for edges in (*into.values(), outputs):
        for edge in edges:
            readers.setdefault(edge.source, []).append(edge)
    maker = {out: (node, i) for node in units for i, out in enumerate(node.outputs) if out}
    return Wiring(
        tuple(units), all_ports, into, outputs, {k: tuple(v) for k, v in readers.items()}, maker
    )


def _extend(draft: Draft, chains: dict[str, _Chain], node: Node) -> _Chain | None:
    """The chain that ends in this view node; None when its view cannot be told in atoms."""
    value = node.inputs[0]
    shape = draft.shape(value) or ()
    if value in draft.constants:
        return None
    before = chains.get(value) or _Chain(value, View.of(shape), ())
    if node.op == "Reshape":
        view = before.view.reshaped(draft.shape(node.outputs[0]) or ())
    else:
        view = before.view.transposed(shape, node.attrs["perm"])
    return None if view is None else _Chain(before.source, view, (*before.nodes, node))


def _edge(
    draft: Draft,
    chains: dict[str, _Chain],
    value: str,
    node: Node | None,
    index: int,
    shape: Shape,
) -> Edge:
    own = draft.shape(value) or ()
    chain = chains.get(value) or _Chain(value, View.of(own), ())
    view = chain.view.reshaped(shape)
    assert view is not None, value  # the shape differs from the chain's end by leading ones only
    have = source_groups(view, draft.shape(chain.source) or ())
    return Edge(
        chain.source, value, node, index, view.sizes, tuple(have), tuple(group(view, shape)),
        shape, chain.nodes,
    )  # fmt: skip
