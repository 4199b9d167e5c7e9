"""The networks that planning is timed on have the size asked for and something to weigh."""

from __future__ import annotations

import pytest

from bench.planner import NETWORKS, planned


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_network_has_its_operators_and_a_plan_that_covers_them(name: str) -> None:
    graph = NETWORKS[name](300)
    assert 300 <= len(graph.units) <= 304
    assert any(unit.op == "Sin" for unit in graph.units)
    seconds, found = planned(graph)
    assert seconds > 0
    placed = [unit for segment in found[0].segments for unit in segment.units]
    assert sorted(placed) == sorted(unit.name for unit in graph.units)
