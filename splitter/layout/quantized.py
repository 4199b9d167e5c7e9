"""QuantizeLinear and the DequantizeLinear that reads it are one unit: FakeQuantize.

Together they say "this value has this scale and zero point", which is what the author of a
quantized model decided; neither alone is anything the integer model computes.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node

TYPES = ("int8", "uint8", "int16", "uint16")


def fake_quantize(draft: Draft) -> None:
    """Join every pair of one scale for the whole tensor whose parameters are constant and equal."""
    for node in draft.nodes:
        if node.op != "QuantizeLinear" or node.domain or not draft.alive(node):
            continue
        known = _parameters(draft, node, draft.dtype(node.outputs[0]))
        readers = draft.users(node.outputs[0])
        if known is None or draft.pinned(node.outputs[0]) or not readers:
            continue
        if any(r.op != "DequantizeLinear" or r.domain for r in readers):
            continue
        if any(_parameters(draft, r, known[2]) != known for r in readers):
            continue
        for reader in readers:
            _join(draft, node, reader, known)
        draft.remove(node)


def _parameters(draft: Draft, node: Node, dtype: str) -> tuple[float, int, str] | None:
    """(scale, zero point, type) when they are constant and one for the tensor."""
    scale = draft.constant(node.inputs[1])
    zero = draft.constant(node.input(2)) if node.input(2) else np.zeros(1, np.int32)
    single = scale is not None and zero is not None and scale.size == 1 and zero.size == 1
    if not single or dtype not in TYPES:
        return None
    assert scale is not None and zero is not None
    return float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), dtype


def _join(draft: Draft, first: Node, last: Node, known: tuple[float, int, str]) -> None:
    scale, zero, dtype = known
    out, kind = last.outputs[0], draft.types[last.outputs[0]]
    draft.remove(last)
    draft.add(
        Node(
            "FakeQuantize",
            [first.inputs[0]],
            [out],
            {"scale": scale, "zero_point": zero, "dtype": dtype},
            last.name,
            sources=tuple(dict.fromkeys((*first.sources, *last.sources))),
        ),
        [kind],
    )
