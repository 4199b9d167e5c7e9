"""The length of a pair, sqrt(a * a + b * b), becomes one unit, `Magnitude`: spectra.

As four units the squares are rounded before the root takes apart what lies near 0; seen together,
integers look the length of a pair up. A root behind data movement moves before it. Decides which
nodes are fused; how is `ops.magnitude`'s.
"""

from __future__ import annotations

from splitter.draft import Draft, Node

MOVES = frozenset(("Reshape", "Slice", "Transpose"))
"""What a root may move before: data movement with one input that varies."""


def fuse_magnitudes(draft: Draft) -> None:
    """sqrt of a sum of two squares, or of a sum of squares over an axis of length 2."""
    for node in draft.nodes:
        if draft.alive(node) and node.op == "Sqrt" and not node.domain:
            _fuse(draft, node)
    draft.prune()


def _fuse(draft: Draft, root: Node) -> None:
    values = _way(draft, root)
    total = draft.producer.get(values[-1])
    if total is None or total.domain or not _private(draft, values):
        return
    pair = _pair(draft, total)
    if pair is None:
        return
    squares = [draft.producer[name] for name in total.inputs]
    merged = dict.fromkeys(s for node in (*squares, total, root) for s in node.sources)
    total.op, total.attrs, total.sources = "Magnitude", {}, tuple(merged)
    draft.set_inputs(total, pair)
    for value in values[1:]:
        draft.rename(value)
    draft.absorb(root, values[0])


def _way(draft: Draft, root: Node) -> list[str]:
    """What the root reads, and what data movement has made it of, the sum last."""
    values = [root.inputs[0]]
    while (maker := draft.producer.get(values[-1])) and maker.op in MOVES and not maker.domain:
        values.append(maker.inputs[0])
    return values


def _private(draft: Draft, values: list[str]) -> bool:
    return all(draft.only_user(name) is not None for name in values)


def _pair(draft: Draft, total: Node) -> list[str] | None:
    """The two values whose squares are added."""
    if total.op != "Add" or total.attrs.get("activation"):
        return None
    pair = [_squared(draft, name) for name in total.inputs]
    shapes = {draft.shape(name) for name in (*pair, total.outputs[0])}
    floating = draft.dtype(total.outputs[0]).startswith("float")
    return pair if all(pair) and len(shapes) == 1 and None not in shapes and floating else None


def _squared(draft: Draft, value: str) -> str:
    """What the value is the square of, "" when it is none or something else reads it."""
    maker = draft.producer.get(value)
    if maker is None or maker.op != "Mul" or maker.attrs.get("activation"):
        return ""
    if draft.only_user(value) is None or maker.inputs[0] != maker.inputs[1]:
        return ""
    return maker.inputs[0]
