"""Pad with zeros in front of a Conv goes into the pads of the Conv."""

from __future__ import annotations

from splitter.draft import Draft, Node


def fold_pads(draft: Draft) -> None:
    for node in draft.nodes:
        if node.op == "Conv" and not node.domain and draft.alive(node):
            _fold(draft, node)
    draft.prune()


def _fold(draft: Draft, conv: Node) -> None:
    pad = draft.producer.get(conv.inputs[0])
    rank = draft.rank(conv.inputs[0])
    if pad is None or pad.op != "Pad" or pad.domain or rank is None or rank < 3:
        return
    value = draft.scalar(pad.input(2)) if pad.input(2) else 0.0
    amounts = draft.ints(pad.inputs[1])
    if pad.attrs.get("mode", "constant") != "constant" or value != 0.0 or amounts is None:
        return
    if conv.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return
    axes = draft.ints(pad.input(3)) if pad.input(3) else list(range(rank))
    if axes is None or any(a < 0 for a in amounts):
        return
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        before[axis % rank] = amounts[index]
        after[axis % rank] = amounts[index + len(axes)]
    if any(before[:2]) or any(after[:2]):
        return
    spatial = rank - 2
    own = conv.attrs.get("pads") or [0] * (2 * spatial)
    merged = [a + b for a, b in zip(own, before[2:] + after[2:], strict=True)]
    conv.attrs = {**conv.attrs, "pads": merged}
    conv.attrs.pop("auto_pad", None)
    conv.sources = tuple(dict.fromkeys((*pad.sources, *conv.sources)))
    draft.set_input(conv, 0, pad.inputs[0])
