"""The normalized ONNX model as plain data, for rules about ONNX operators. Decides nothing."""

from __future__ import annotations

from splitter.draft import Draft
from splitter.graph import Origin, OriginNode, Value


def origin_of(draft: Draft) -> Origin:
    """The nodes as they are now; weights are shared, not copied."""
    nodes = tuple(
        OriginNode(
            name=node.name,
            op=node.op if not node.domain else f"{node.domain}.{node.op}",
            inputs=tuple(node.inputs),
            outputs=tuple(node.outputs),
            attrs=dict(node.attrs),
            sources=node.sources,
        )
        for node in draft.nodes
    )
    names = dict.fromkeys(
        (*draft.inputs, *(name for node in nodes for name in (*node.inputs, *node.outputs) if name))
    )
    values = {name: Value(name, draft.shape(name) or (), draft.dtype(name)) for name in names}
    constants = {name: draft.constants[name] for name in names if name in draft.constants}
    return Origin(nodes, values, constants, draft.outputs)
