"""Copies a subgraph into the main graph, under names of its own.

Decides nothing; `fold` and `branches` say which subgraph, and what reads its outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from splitter.draft import Draft
from splitter.model import subgraphs
from splitter.normalize.canonical import rewrite
from splitter.normalize.exchange import add_nodes
from splitter.stored import array_of


def inline(
    draft: Draft, graph: onnx.GraphProto, prefix: str, inputs: Mapping[str, str] = {}
) -> list[str]:
    """Add the graph's nodes in canonical form; returns the names of its outputs in the draft.

    prefix: goes before the names of its nodes and values. inputs: values of the draft by the
    names of the graph's inputs.
    """
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    own = {t.name for t in copy.initializer} | {o for n in copy.node for o in n.output if o}
    rename_values(copy, {**{name: draft.name(prefix + name) for name in own}, **inputs})
    for tensor in copy.initializer:
        draft.constants[tensor.name] = array_of(tensor)
    rewrite(draft, add_nodes(draft, copy.node, prefix), draft.written)
    return [info.name for info in copy.output]


def rename_values(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Rename values in a graph and, where they are read from outside, in its subgraphs."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
        for index, name in enumerate(node.output):
            node.output[index] = names.get(name, name)
        for inner in subgraphs(node):
            shadowed = {v.name for v in inner.input} | {t.name for t in inner.initializer}
            shadowed |= {o for n in inner.node for o in n.output}
            rename_values(inner, {k: v for k, v in names.items() if k not in shadowed})
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for info in graph.output:
        info.name = names.get(info.name, info.name)
