"""Merges nodes that compute the same, and small constants that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.evaluate import NEVER

SMALL = 4096  # bytes; larger equal constants are rare and hashing them is not free


def dedupe(draft: Draft) -> None:
    _constants(draft)
    seen: dict[Any, Node] = {}
    for node in draft.nodes:
        if node.op in NEVER or node.captured or any(isinstance(v, list) and v and not isinstance(
            v[0], (int, float, str)) for v in node.attrs.values()):  # fmt: skip
            continue
        first = seen.setdefault(_key(node), node)
        if first is node or not draft.alive(first):
            continue
        if any(draft.pinned(out) for out in node.outputs if out):
            continue
        if any(b and not a for a, b in zip(first.outputs, node.outputs, strict=True)):
            continue
        pairs = [(a, b) for a, b in zip(first.outputs, node.outputs, strict=True) if b]
        draft.remove(node)
        for kept, gone in pairs:
            draft.replace(gone, kept)
    draft.prune()


def _constants(draft: Draft) -> None:
    seen: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    for name in list(draft.constants):
        data = draft.constants[name]
        if data.nbytes > SMALL or data.dtype == object or draft.pinned(name):
            continue
        first = seen.setdefault((data.dtype.str, data.shape, data.tobytes()), name)
        if first != name:
            draft.replace(name, first)


def _key(node: Node) -> tuple[Any, ...]:
    attrs = tuple(sorted((k, _frozen(v)) for k, v in node.attrs.items()))
    return node.domain, node.op, tuple(node.inputs), len(node.outputs), attrs


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, (int, float, str)) else id(value)
