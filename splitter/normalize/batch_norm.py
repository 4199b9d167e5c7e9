"""BatchNormalization -> Mul + Add over the channels; `scale_weights` folds these on."""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node


def split_batch_norm(draft: Draft) -> None:
    """Inference form only: y = x * scale / sqrt(var + eps) + (bias - mean * that factor)."""
    for node in draft.nodes:
        if node.op == "BatchNormalization" and not node.domain:
            _rewrite(draft, node)
    draft.prune()


def _rewrite(draft: Draft, node: Node) -> None:
    parameters = [draft.constant(name) for name in node.inputs[1:5]]
    rank = draft.rank(node.inputs[0])
    if any(p is None for p in parameters) or rank is None or node.attrs.get("training_mode", 0):
        return
    scale, bias, mean, variance = (np.asarray(p, np.float64) for p in parameters)
    factor = scale / np.sqrt(variance + float(node.attrs.get("epsilon", 1e-5)))
    shift = bias - mean * factor
    shape = (-1,) + (1,) * (rank - 2)
    dtype = draft.dtype(node.inputs[0])
    known, out, source = draft.types[node.outputs[0]], node.outputs[0], node.inputs[0]
    draft.remove(node)
    names = [
        draft.constant_of(data.reshape(shape).astype(dtype), f"{node.name}/{what}")
        for data, what in ((factor, "factor"), (shift, "shift"))
    ]
    scaled = draft.name(f"{out}/scaled")
    draft.add(
        Node(
            "Mul",
            [source, names[0]],
            [scaled],
            {},
            f"{node.name}/factor",
            sources=node.sources,
        ),
        [known],
    )
    draft.add(
        Node("Add", [scaled, names[1]], [out], {}, node.name, sources=node.sources),
        [known],
    )
