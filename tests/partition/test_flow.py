"""Minimum cuts, against networkx."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.partition.flow import BOUNDLESS, Flow

ARCS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 9)), max_size=24)
ENDS = st.lists(st.integers(-9, 9), min_size=9, max_size=9)


@settings(max_examples=200, deadline=None)
@given(ENDS, ARCS)
def test_both_cuts_are_as_small_as_the_largest_flow(
    ends: list[int], arcs: list[tuple[int, int, int]]
) -> None:
    flow = Flow(len(ends))
    same = nx.DiGraph()
    same.add_nodes_from(("source", "sink", *range(len(ends))))
    for node, amount in enumerate(ends):
        flow.from_source(node, max(amount, 0))
        flow.to_sink(node, max(-amount, 0))
        same.add_edge("source", node, capacity=max(amount, 0))
        same.add_edge(node, "sink", capacity=max(-amount, 0))
    for tail, head, amount in arcs:
        flow.between(tail, head, amount)
        if same.has_edge(tail, head):
            same[tail][head]["capacity"] += amount
        else:
            same.add_edge(tail, head, capacity=amount)
    fewest, most = flow.solve()
    value = nx.maximum_flow_value(same, "source", "sink")
    assert fewest <= most
    for side in (fewest, most):
        inside = {"source", *side}
        assert value == sum(
            data["capacity"]
            for tail, head, data in same.edges(data=True)
            if tail in inside and head not in inside
        )


def test_a_boundless_arc_is_never_cut() -> None:
    flow = Flow(2)
    flow.from_source(0, 5)
    flow.to_sink(1, 3)
    flow.between(0, 1, BOUNDLESS)
    fewest, most = flow.solve()
    assert most == frozenset((0, 1))
    assert fewest == frozenset((0, 1))
