"""Chooses the layout of every unit so that few transposes remain.

From two starts: every flexible unit takes, front to back, the layout its inputs come in (transposes
sink), or every one has its ONNX layout. Then regions are relabeled: each transpose that is left
proposes that the units on one side of it, and all that follow from them, change their layout to
make it vanish. A minimum cut picks the part of the region for which this is cheapest, and it is
taken when the whole graph gets cheaper. So the result is never worse than the starts, and a
transpose may cross any number of units at once.
"""

from __future__ import annotations

from splitter.draft import Node
from splitter.layout.energy import Energy
from splitter.layout.fusion import MARGIN, fuse
from splitter.layout.ports import identity
from splitter.layout.views import Atoms, Perm, perm_for
from splitter.layout.wiring import Edge, Wiring

Labels = dict[Node, Perm]
ROUNDS = 4  # a round tries every transpose left; more than two rounds are rare


def assign(wiring: Wiring) -> Labels:
    """A label for every unit."""
    energy = Energy(wiring)
    best: Labels = {}
    for labels in (_sink(wiring), _plain(wiring)):
        for _ in range(ROUNDS):
            if not _improve(wiring, energy, labels):
                break
        if not best or energy.total(labels) < energy.total(best) - MARGIN:
            best = labels
    return best


def _plain(wiring: Wiring) -> Labels:
    """Every flexible unit in the ONNX layout, as far as it can run in it."""
    labels: Labels = {}
    for node in wiring.units:
        port = wiring.ports[node]
        label = identity(port.rank) if port.fixed is None else port.fixed
        labels[node] = label if port.allowed(label) else _last_axis(wiring, node)
    return labels


def _sink(wiring: Wiring) -> Labels:
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
        label = _label_after(wiring, edge, wiring.have(edge, labels), labels)
        if label is not None:
            choices.append(label)
    if not choices:
        choices = [_last_axis(wiring, node)]

    def mismatches(label: Perm) -> int:
        labels[node] = label
        return sum(
            wiring.have(edge, labels) != wiring.want(edge, labels) for edge in wiring.into[node]
        )

    return min(choices, key=mismatches)


def _last_axis(wiring: Wiring, node: Node) -> Perm:
    """The label that brings the unit's axis last."""
    rank, axis = wiring.ports[node].rank, int(node.attrs["axis"])
    return (*(a for a in range(rank) if a != axis), axis)


def _improve(wiring: Wiring, energy: Energy, labels: Labels) -> bool:
    changed = False
    tried: set[frozenset[tuple[Node, Perm]]] = set()
    for edge in wiring.edges:
        for forward, siblings in ((True, False), (False, False), (False, True)):
            if energy.edge(edge, labels) < 1.0:
                break
            proposal = _flood(wiring, labels, edge, forward=forward, siblings=siblings)
            key = frozenset(proposal.items())
            if not proposal or key in tried:
                continue
            tried.add(key)
            changed |= fuse(wiring, energy, labels, proposal)
    return changed


def _flood(wiring: Wiring, labels: Labels, edge: Edge, *, forward: bool, siblings: bool) -> Labels:
    """Labels for one side of the edge that make it free, and for all that then should follow.

    siblings: where the producer cannot follow, its other readers take the same order, so that one
    Transpose serves all (slices of one tensor).
    """
    proposal: Labels = {}
    trial = dict(labels)
    start = _across(wiring, edge, trial, forward=forward)
    if start is None:
        return {}
    queue = [start]
    while queue:
        node, label = queue.pop()
        if node in proposal:
            continue
        proposal[node] = trial[node] = label
        for near in wiring.into[node]:
            followers = _follow(wiring, near, trial, labels, forward=False)
            if siblings and not followers:
                followers = _siblings(wiring, near, trial, labels)
            queue.extend(followers)
        for out in node.outputs:
            for near in wiring.readers.get(out, ()):
                queue.extend(_follow(wiring, near, trial, labels, forward=True))
    return proposal


def _follow(
    wiring: Wiring, edge: Edge, trial: Labels, labels: Labels, *, forward: bool
) -> list[tuple[Node, Perm]]:
    """The other end of an edge, when another label of it would make the edge free."""
    found = _across(wiring, edge, trial, forward=forward)
    if found is None or labels[found[0]] == found[1]:
        return []
    return [found]


def _siblings(wiring: Wiring, edge: Edge, trial: Labels, labels: Labels) -> list[tuple[Node, Perm]]:
    """Labels for the other readers of a value to read it in the order this edge wants."""
    want = wiring.want(edge, trial)
    if want == wiring.have(edge, trial):
        return []
    found = []
    for other in wiring.readers[edge.source]:
        if other.sizes != edge.sizes or other.consumer is None or other is edge:
            continue
        label = _label_after(wiring, other, want, trial)
        if label is not None and labels[other.consumer] != label:
            found.append((other.consumer, label))
    return found


def _across(
    wiring: Wiring, edge: Edge, labels: Labels, *, forward: bool
) -> tuple[Node, Perm] | None:
    if forward:
        label = _label_after(wiring, edge, wiring.have(edge, labels), labels)
        return None if label is None or edge.consumer is None else (edge.consumer, label)
    made = wiring.maker.get(edge.source)
    if made is None:
        return None
    label = _label_before(wiring, edge, wiring.want(edge, labels), labels)
    return None if label is None else (made[0], label)


def _label_after(wiring: Wiring, edge: Edge, have: Atoms, labels: Labels) -> Perm | None:
    """The consumer's label that reads the source without a transpose."""
    node = edge.consumer
    if node is None or not wiring.ports[node].flexible(edge.index):
        return None
    port = wiring.ports[node]
    source = wiring.source_perm(edge, labels)
    like = source if not edge.chain and len(source) == port.rank else None
    perm = perm_for(edge.want_groups, have, like)
    return perm if perm is not None and port.allowed(perm) else None


def _label_before(wiring: Wiring, edge: Edge, want: Atoms, labels: Labels) -> Perm | None:
    """The producer's label that gives the consumer what it wants without a transpose."""
    node, _ = wiring.maker[edge.source]
    port = wiring.ports[node]
    if port.fixed is not None:
        return None
    target = wiring.target_perm(edge, labels)
    like = target if not edge.chain and len(target) == len(edge.have_groups) else None
    perm = perm_for(edge.have_groups, want, like)
    label = port.label_for_output(perm, labels[node]) if perm is not None else None
    return label if label is not None and port.allowed(label) else None
