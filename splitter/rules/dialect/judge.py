"""ONNX nodes against rules in the ONNX dialect, and which nodes a unit stands for.

Decides that nodes of one attention are judged together where the target has an operator for it,
and that a node no unit stands for speaks for the units that read what it makes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from splitter.diagnostics import Reason
from splitter.graph import Graph, Origin, OriginNode
from splitter.rules.check import broken_rules
from splitter.rules.dialect.attention import attention_groups
from splitter.rules.dialect.facts import fact, operator_name
from splitter.rules.dialect.view import NodeView
from splitter.rules.schema import Target

FUSED = "Attention"
"""The operator of a rule file that takes a whole attention."""


def judge_nodes(
    origin: Origin, target: Target, *, trust: str, assumed: Collection[str] = frozenset()
) -> Mapping[str, tuple[Reason, ...]]:
    """Node name -> all reasons against it; () for one that the target takes, or of an assumed
    operator."""
    groups = attention_groups(origin) if FUSED in target.operators else {}
    found: dict[str, tuple[Reason, ...]] = {}
    for node in origin.nodes:
        view = NodeView(origin, node)
        alone = () if operator_name(view) in assumed else _reasons(view, target, trust)
        group = groups.get(node.name)
        if alone and group and not _fused(origin, group, target, trust):
            alone = ()
        found[node.name] = alone
    return found


def _reasons(view: NodeView, target: Target, trust: str) -> tuple[Reason, ...]:
    op = operator_name(view)
    return tuple(broken_rules(op, target, trust, partial(fact, view, op)))


def _fused(
    origin: Origin, group: tuple[OriginNode, ...], target: Target, trust: str
) -> tuple[Reason, ...]:
    view = NodeView(origin, group[0], group)
    return tuple(broken_rules(FUSED, target, trust, partial(fact, view, FUSED)))


def nodes_of_units(graph: Graph, origin: Origin) -> Mapping[str, tuple[OriginNode, ...]]:
    """Unit name -> the nodes it stands for, and those whose work is nowhere but in it.

    A unit that layout added stands for none.
    """
    owners: dict[str, list[str]] = {}
    for unit in graph.units:
        for source in unit.nodes:
            owners.setdefault(source, []).append(unit.name)
    table: dict[str, list[OriginNode]] = {unit.name: [] for unit in graph.units}
    for node in origin.nodes:
        for name in dict.fromkeys(o for source in node.sources for o in owners.get(source, ())):
            table[name].append(node)
    _lost(graph, origin, owners, table)
    return {name: tuple(nodes) for name, nodes in table.items()}


def _lost(
    graph: Graph,
    origin: Origin,
    owners: Mapping[str, list[str]],
    table: dict[str, list[OriginNode]],
) -> None:
    """Nodes of no unit (transposes that the layout took away) go to the units behind them."""
    behind: dict[str, set[str]] = {}
    for node in reversed(origin.nodes):
        mine = {o for source in node.sources for o in owners.get(source, ())}
        readers = [one for out in node.outputs for one in origin.consumers.get(out, ())]
        behind[node.name] = mine or {u for one in readers for u in behind.get(one.name, ())}
        if not mine:
            for name in behind[node.name]:
                table[name].append(node)
