"""Where a model can end before what has no static form: the fewest values to end it at.

Detectors end in steps whose sizes depend on data (thresholds, non-maximum suppression). What comes
before is usually a few tensors. Finds them as the smallest set of values that parts the network,
its products with weights, from those steps; the last such set there is. Only a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import networkx as nx

from splitter.draft import Draft, Node

Usable = Callable[[str], bool]
SOURCE, SINK = ("", "source"), ("", "sink")

WORK = frozenset(
    ("Conv", "ConvTranspose", "ConvInteger", "Gemm", "MatMul", "MatMulInteger", "QLinearConv",
     "QLinearMatMul", "LSTM", "GRU", "RNN", "Attention", "Einsum", "BatchNormalization",
     "LayerNormalization", "Resize")
)  # fmt: skip
"""Operators that belong to the network: a suggested end comes after them."""


def frontier(draft: Draft, refused: Collection[Node], usable: Usable) -> tuple[str, ...]:
    """Values in the order of the graph, and the model outputs that none of the refused reach.

    usable: whether a model may end at a value. What lies behind may read model inputs too; they are
    not among the values. Empty when there are none, as where all it reads are model inputs.
    """
    beyond = _reached(draft, refused)
    graph = nx.DiGraph()
    for node in draft.nodes:
        reads = dict.fromkeys((*node.inputs, *node.captured))
        values = [name for name in reads if _moves(draft, name)]
        if node in beyond:
            for name in values:
                if draft.producer.get(name) not in beyond and name not in draft.inputs:
                    graph.add_edge((name, "out"), SINK)
            continue
        for out in filter(None, node.outputs):
            can_end = "~" not in out and usable(out)
            graph.add_edge((out, "in"), (out, "out"), **({"capacity": 1} if can_end else {}))
            for name in [] if node.op in WORK else values:
                graph.add_edge((name, "out"), (out, "in"))
            if node.op in WORK:
                graph.add_edge(SOURCE, (out, "in"))
    for name in draft.inputs:
        graph.add_edge(SOURCE, (name, "out"))
    found = _smallest(graph)
    kept = [n for n in draft.outputs if usable(n) and draft.producer.get(n) not in beyond]
    order = [out for node in draft.nodes for out in node.outputs]
    return tuple(dict.fromkeys([*sorted(found, key=order.index), *kept])) if found else ()


def _moves(draft: Draft, name: str) -> bool:
    return bool(name) and name not in draft.constants


def _reached(draft: Draft, refused: Collection[Node]) -> set[Node]:
    """The refused nodes and all that read from them."""
    found: set[Node] = set()
    stack = list(refused)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(user for out in node.outputs for user in draft.users(out))
    return found


def _smallest(graph: nx.DiGraph) -> list[str]:
    """The last of the smallest cuts: networkx puts what still reaches the sink on its side only."""
    if SINK not in graph or SOURCE not in graph:
        return []
    try:
        size, (near, far) = nx.minimum_cut(graph, SOURCE, SINK)
    except nx.NetworkXUnbounded:
        return []
    cut = [name for name, side in near if side == "in" and (name, "out") in far]
    return cut if len(cut) == size else []
