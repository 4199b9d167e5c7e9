"""Slices of rows gathered from a constant table are gathered from a sliced table.

In integers the columns then have scales of their own (box anchors: centers in 0..1, one small size
for all), and a table whose rows are all equal needs no Gather.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.slices import slice_ranges


def slice_tables(draft: Draft) -> None:
    """Slice(Gather(table, index)) -> Gather(Slice(table), index), when the axes differ."""
    for node in draft.nodes:
        if node.op == "Slice" and not node.domain and draft.alive(node):
            _through_table(draft, node)
    draft.prune()


def _through_table(draft: Draft, node: Node) -> None:
    gather, ranges = draft.producer.get(node.inputs[0]), slice_ranges(draft, node)
    if gather is None or gather.op != "Gather" or gather.domain or not ranges:
        return
    table, index = draft.constant(gather.inputs[0]), draft.shape(gather.inputs[1])
    if table is None or index is None:
        return
    axis = gather.attrs.get("axis", 0) % table.ndim
    for at, (start, stop) in ranges.items():
        if axis <= at < axis + len(index):
            return
        table = np.take(table, range(start, stop), axis=at if at < axis else at - len(index) + 1)
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    shape = draft.shape(out)
    first = np.take(table, [0], axis=axis)
    if shape is not None and np.array_equal(table, np.broadcast_to(first, table.shape)):
        rows = first.reshape(*table.shape[:axis], *(1 for _ in index), *table.shape[axis + 1 :])
        draft.make_constant(node, {out: np.broadcast_to(rows, shape).copy()})
        return
    draft.remove(node)
    constant = draft.constant_of(np.ascontiguousarray(table), f"{gather.name}/columns")
    sources = (*gather.sources, *node.sources)
    made = Node("Gather", [constant, gather.inputs[1]], [out], {"axis": axis}, node.name,
                sources=sources)  # fmt: skip
    draft.add(made, [known])
