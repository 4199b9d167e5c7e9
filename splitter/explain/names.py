"""Which units a name on the command line means: a unit, an ONNX node, a value or an operator.

Decides nothing about them. An unknown name is an error with the nearest ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitter.diagnostics import SplitterError, nearest
from splitter.graph import Graph, Unit


def find_units(graph: Graph, name: str, *, made_by: Mapping[str, str]) -> tuple[Unit, ...]:
    """The units that a name means.

    made_by: value -> node of the file, to tell what was folded away from what never was. Raises
    SplitterError for a name that means nothing, and for a node of which no unit is left.
    """
    nodes = {made_by[name]} if name in made_by else set()
    for means in (
        lambda unit: name == unit.name or name in unit.nodes or nodes & set(unit.nodes),
        lambda unit: name in unit.outputs,
        lambda unit: name.casefold() == unit.op.casefold(),
    ):
        found = tuple(unit for unit in graph.units if means(unit))
        if found:
            return found
    if name in made_by.values() or name in made_by:
        raise SplitterError(
            f"nothing is left of {name!r}: it is computed ahead, once and for all",
            where="NODE",
            hint="constants, shapes and what is made of them alone run nowhere",
        )
    known = [known for unit in graph.units for known in (unit.name, *unit.nodes, unit.op)]
    raise SplitterError(
        f"no node, value or operator {name!r}", where="NODE", hint=nearest(name, known)
    )
