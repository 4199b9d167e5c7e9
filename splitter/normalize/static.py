"""What has no static form: which nodes, why each, and the error that lists them all.

Decides which nodes are to blame: those that make a value whose shape depends on data out of values
that are static, and loops whose length the data decides. What only follows from them is not named.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from splitter.diagnostics import Cause, SplitterError, Unsupported
from splitter.draft import Draft, Node
from splitter.normalize.bounded import MIXED, bound_rows
from splitter.normalize.branches import DIFFER
from splitter.normalize.evaluate import runnable
from splitter.normalize.frontier import frontier
from splitter.normalize.loops import endless


@dataclass(frozen=True)
class Obstacle:
    """A node that cannot be part of a static graph, and why, in words."""

    node: Node
    why: str


def obstacles(draft: Draft) -> list[Obstacle]:
    """First causes only, in the order of the graph."""
    found = []
    for node in draft.nodes:
        why = endless(draft, node) or node.marks.get(DIFFER, "") or _strings(draft, node)
        reads = (n for n in (*node.inputs, *node.captured) if n and n not in draft.constants)
        writes = [n for n in node.outputs if n and not is_static(draft, n)]
        if why or (writes and all(is_static(draft, n) for n in reads)):
            found.append(Obstacle(node, why or node.marks.get(MIXED, "") or _reason(node)))
    return found


def left(draft: Draft) -> list[Obstacle]:
    """Those that are left when rows of which data decides how many there are got a bound."""
    bounded = draft.snapshot()
    bound_rows(bounded)
    reasons = {obstacle.node.name: obstacle.why for obstacle in obstacles(bounded)}
    return [
        Obstacle(obstacle.node, reasons[obstacle.node.name])
        for obstacle in obstacles(draft)
        if obstacle.node.name in reasons
    ]


def _strings(draft: Draft, node: Node) -> str:
    names = (*node.inputs, *node.outputs, *node.captured)
    return "strings have no TFLite form" if any(map(draft.is_text, filter(None, names))) else ""


def _reason(node: Node) -> str:
    if not runnable(node.op, node.domain):
        place = f" in the domain {node.domain}" if node.domain else ""
        return f"neither ONNX nor ONNX Runtime has such an operator{place}"
    if not onnx.defs.has(node.op, node.domain):
        return f"no operator that is known here ({node.domain})"
    return "the shape of its result depends on data"


def require_static(draft: Draft) -> None:
    """Error that names the nodes which make a value dynamic, and where the model could end."""
    found = obstacles(draft)
    if not found:
        return
    nodes = [obstacle.node for obstacle in found]
    ends = frontier(draft, nodes, lambda name: is_static(draft, name))
    raise Unsupported([as_cause(obstacle) for obstacle in found], ends=ends)


def as_cause(obstacle: Obstacle) -> Cause:
    """For a message, without the draft."""
    node = obstacle.node
    return Cause(node.op, (node.name,), obstacle.why, runs=runnable(node.op, node.domain))


def refuse_empty(draft: Draft) -> None:
    """Error that names the values that the graph still computes or gives and that hold nothing.

    Of length 0, or below where a window is longer than what it slides over.
    """
    left = [n for node in draft.nodes for n in node.outputs if n and _empty(draft, n)]
    left += [n for n in draft.outputs if n in draft.constants and _empty(draft, n)]
    if left:
        written = ", ".join(f"{name} {list(draft.shape(name) or ())}" for name in left)
        raise SplitterError(
            f"values without elements: {written}; no TFLite kernel takes them",
            hint="export the model without them, or give --shape lengths that its windows fit in; "
            "--outputs NAME,... leaves outputs out",
        )


def _empty(draft: Draft, name: str) -> bool:
    return any(length < 1 for length in draft.shape(name) or ())


def is_static(draft: Draft, name: str) -> bool:
    """Whether type and shape of a value are known."""
    known = draft.types.get(name)
    return known is not None and known.static and bool(known.dtype) and not draft.is_text(name)
