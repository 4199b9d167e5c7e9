"""One move of the layout search: of a proposed relabeling, the part that is cheapest.

Each unit of the proposal keeps its label or takes the proposed one. The cost is a sum over edges,
so the best choice is a minimum cut (V. Kolmogorov, R. Zabih, "What energy functions can be
minimized via graph cuts?", 2004). The proposal agrees with itself, which makes it submodular.
"""

from __future__ import annotations

import networkx as nx

from splitter.draft import Node
from splitter.layout.energy import Energy
from splitter.layout.views import Perm
from splitter.layout.wiring import Edge, Wiring

Labels = dict[Node, Perm]
KEEP, TAKE = -1, -3  # numbers: strings would order sets differently in every run
MARGIN = 1e-6  # a gain below this is rounding


def fuse(wiring: Wiring, energy: Energy, labels: Labels, proposal: Labels) -> bool:
    """Take the best part of the proposal into labels; whether the graph got cheaper."""
    sources = _touched(wiring, proposal)
    before = energy.values(sources, labels)
    best: Labels = {}
    first = dict(list(proposal.items())[:1])
    for chosen in (proposal, first, _cheapest(wiring, energy, labels, proposal)):
        cost = energy.values(sources, {**labels, **chosen})
        if cost < before - MARGIN:
            before, best = cost, chosen
    labels.update(best)
    return bool(best)


def _touched(wiring: Wiring, proposal: Labels) -> list[str]:
    """Values whose cost may change."""
    names = {edge.source: None for node in proposal for edge in wiring.into[node]}
    names |= {out: None for node in proposal for out in node.outputs if out}
    return list(names)


def _cheapest(wiring: Wiring, energy: Energy, labels: Labels, proposal: Labels) -> Labels:
    """The minimum cut: nodes on the side of KEEP keep their label."""
    cut = _Cut({node: index for index, node in enumerate(proposal)})
    edges = {edge: None for node in proposal for edge in wiring.into[node]}
    for node in proposal:
        for out in node.outputs:
            edges.update(dict.fromkeys(wiring.readers.get(out, ())))
    for edge in edges:
        _add_edge(cut, wiring, energy, labels, proposal, edge)
    _, (kept, _) = nx.minimum_cut(cut.graph, KEEP, TAKE)
    return {node: label for node, label in proposal.items() if cut.index[node] not in kept}


def _add_edge(
    cut: _Cut, wiring: Wiring, energy: Energy, labels: Labels, proposal: Labels, edge: Edge
) -> None:
    made = wiring.maker.get(edge.source)
    ends = (made[0] if made is not None else None, edge.consumer)
    moving = [node for node in dict.fromkeys(ends) if node in proposal and node is not None]

    def cost(*taken: Node) -> float:
        chosen = {n: proposal[n] if n in taken else labels[n] for n in ends if n is not None}
        return energy.edge(edge, chosen)

    if len(moving) == 1:
        cut.unary(moving[0], keep=cost(), take=cost(moving[0]))
    elif len(moving) == 2:
        left, right = moving
        cut.pair(left, right, cost(), cost(right), cost(left), cost(left, right))


class _Cut:
    """The graph of the cut; an edge is paid when its tail keeps and its head takes."""

    def __init__(self, index: dict[Node, int]) -> None:
        self.index = index
        self.graph = nx.DiGraph()
        self.graph.add_nodes_from((KEEP, TAKE, *index.values()))

    def unary(self, node: Node, *, keep: float, take: float) -> None:
        self._add(self.index[node], TAKE, keep)
        self._add(KEEP, self.index[node], take)

    def pair(self, left: Node, right: Node, a: float, b: float, c: float, d: float) -> None:
        """Costs a, b, c, d of (keep, keep), (keep, take), (take, keep), (take, take).

        They are a + (c - a) l + (d - c) r + (b + c - a - d) (1 - l) r, with 1 for take.
        """
        for node, taken in ((left, c - a), (right, d - c)):
            self.unary(node, keep=max(0.0, -taken), take=max(0.0, taken))
        self._add(self.index[left], self.index[right], max(0.0, b + c - a - d))

    def _add(self, tail: int, head: int, capacity: float) -> None:
        if capacity > 0:
            old = self.graph.get_edge_data(tail, head, {}).get("capacity", 0.0)
            self.graph.add_edge(tail, head, capacity=old + capacity)
