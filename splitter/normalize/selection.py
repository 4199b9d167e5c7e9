"""GatherElements whose index is the same along the trailing axes -> Gather of whole rows.

The query selection of two-stage detectors: rows named by TopK, the index tiled over the channels.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type


def gather_rows(draft: Draft) -> None:
    """For data [1, ..., N, C...] with one leading batch only."""
    for node in draft.nodes:
        if node.op == "GatherElements" and not node.domain and draft.alive(node):
            _rewrite(draft, node)
    draft.prune()


def _rewrite(draft: Draft, node: Node) -> None:
    data, index = node.inputs
    shape, wide = draft.shape(data), draft.shape(index)
    if shape is None or wide is None:
        return
    axis = node.attrs.get("axis", 0) % len(shape)
    narrow = _before_broadcast(draft, index)
    if narrow is None:
        return
    source, small = narrow
    kept = [a for a in range(len(wide)) if small[a] != 1]
    if any(a != axis for a in kept) or wide[:axis] != (1,) * axis or shape[:axis] != (1,) * axis:
        return
    if wide[axis] != small[axis] or wide[axis + 1 :] != shape[axis + 1 :]:
        return
    count = wide[axis]
    rows = draft.emit(
        "Reshape",
        [source, draft.constant_of(np.asarray([count], np.int64), f"{node.name}/rows")],
        Type(draft.dtype(index), (count,)),
        stem=f"{node.name}/rows",
        sources=node.sources,
    )
    node.op, node.attrs = "Gather", {"axis": axis}
    draft.set_inputs(node, [data, rows])


def _before_broadcast(draft: Draft, index: str) -> tuple[str, tuple[int, ...]] | None:
    """(value, its shape aligned to the index's rank) before an Expand or Tile of length 1 axes."""
    maker = draft.producer.get(index)
    wide = draft.shape(index)
    if maker is None or wide is None or maker.op not in ("Expand", "Tile") or maker.domain:
        return None
    small = draft.shape(maker.inputs[0])
    if small is None or len(small) > len(wide):
        return None
    small = (1,) * (len(wide) - len(small)) + small
    if any(s not in (1, w) for s, w in zip(small, wide, strict=True)):
        return None
    return maker.inputs[0], small
