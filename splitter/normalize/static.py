"""What has no static form: which nodes, why each, and the error that lists them all.

Decides which nodes are to blame: those that make a value whose shape depends on data out of values
that are static, and loops whose length the data decides. What only follows from them is not named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from splitter.diagnostics import SplitterError
from splitter.draft import Draft, Node
from splitter.normalize.frontier import frontier
from splitter.normalize.loops import endless

SUGGESTED = 16  # values to end a model at, at most; more are no help
CPU_RUNTIME = "--cpu-runtime onnxruntime runs it and what follows in ONNX Runtime, on the CPU"


@dataclass(frozen=True)
class Obstacle:
    """A node that cannot be part of a static graph, and why, in words."""

    node: Node
    why: str


def obstacles(draft: Draft) -> list[Obstacle]:
    """First causes only, in the order of the graph."""
    found = []
    for node in draft.nodes:
        why = endless(draft, node)
        reads = (n for n in (*node.inputs, *node.captured) if n and n not in draft.constants)
        writes = [n for n in node.outputs if n and not is_static(draft, n)]
        if why or (writes and all(is_static(draft, n) for n in reads)):
            found.append(Obstacle(node, why or _reason(node)))
    return found


def _reason(node: Node) -> str:
    if not onnx.defs.has(node.op, node.domain):
        return f"no operator that is known here ({node.domain or 'ONNX'})"
    return "the shape of its result depends on data"


def require_static(draft: Draft) -> None:
    """Error that names the nodes which make a value dynamic, and where the model could end."""
    causes = obstacles(draft)
    if not causes:
        return
    ends = frontier(draft, [c.node for c in causes], lambda name: is_static(draft, name))
    cut = (
        f"--outputs {','.join(ends)} ends the model before it; your own code does the rest"
        if 0 < len(ends) <= SUGGESTED
        else "export the model without this part, or end it before by --outputs NAME,..."
    )
    raise SplitterError(
        "operators without a static form: " + listed(causes), hint=f"{CPU_RUNTIME}; or {cut}"
    )


def listed(causes: Sequence[Obstacle]) -> str:
    """ "NonZero a, b: reason; Loop c: reason"."""
    names: dict[tuple[str, str], list[str]] = {}
    for cause in causes:
        names.setdefault((cause.node.op, cause.why), []).append(cause.node.name)
    return "; ".join(f"{op} {', '.join(those)}: {why}" for (op, why), those in names.items())


def is_static(draft: Draft, name: str) -> bool:
    """Whether type and shape of a value are known."""
    known = draft.types.get(name)
    return known is not None and known.static and bool(known.dtype)
