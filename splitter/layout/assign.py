"""Chooses the layout of every unit so that few transposes remain.

First every flexible unit takes, front to back, the layout its inputs come in (transposes sink).
"""

from __future__ import annotations

from splitter.draft import Node
from splitter.layout.ports import identity
from splitter.layout.views import Atoms, Perm, perm_for
from splitter.layout.wiring import Edge, Wiring

Labels = dict[Node, Perm]


def assign(wiring: Wiring) -> Labels:
    """A label for every unit."""
    labels: Labels = {}
    for node in wiring.units:
        port = wiring.ports[node]
        labels[node] = port.fixed if port.fixed is not None else _first(wiring, node, labels)
    return labels


def _first(wiring: Wiring, node: Node, labels: Labels) -> Perm:
    """Of the labels that fit one input for free, the one with fewest mismatches."""
    port = wiring.ports[node]
    choices = [identity(port.rank)] if port.allowed(identity(port.rank)) else []
    for edge in wiring.into[node]:
        label = label_for(wiring, edge, wiring.have(edge, labels), labels)
        if label is not None:
            choices.append(label)
    if not choices:
        return _any_allowed(wiring, node)

    def mismatches(label: Perm) -> int:
        trial = {**labels, node: label} if len(labels) < 0 else labels
        trial[node] = label
        return sum(
            wiring.have(edge, trial) != wiring.want(edge, trial) for edge in wiring.into[node]
        )

    return min(choices, key=mismatches)


def label_for(wiring: Wiring, edge: Edge, have: Atoms, labels: Labels) -> Perm | None:
    """The consumer's label that reads the source without a transpose."""
    node = edge.consumer
    if node is None:
        return None
    port = wiring.ports[node]
    if port.fixed is not None or len(edge.shape) != port.rank or edge.index and not _data(port, edge):
        return None
    source = wiring.source_perm(edge, labels)
    like = source if not edge.chain and len(source) == port.rank else None
    perm = perm_for(edge.want_groups, have, like)
    return perm if perm is not None and port.allowed(perm) else None


def _data(port: object, edge: Edge) -> bool:
    return True


def _any_allowed(wiring: Wiring, node: Node) -> Perm:
    """The label that brings the wanted axis last."""
    port = wiring.ports[node]
    axis = int(node.attrs["axis"])
    label = tuple(a for a in range(port.rank) if a != axis) + (axis,)
    assert port.allowed(label), node.name
    return label
