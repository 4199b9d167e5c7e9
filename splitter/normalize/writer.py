"""Writes the nodes that stand for one node. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.fold import infer


class Writer:
    """Adds the nodes that stand for one node; the last one takes over its output."""

    def __init__(self, draft: Draft, node: Node) -> None:
        self.draft, self.node = draft, node
        self.out = node.outputs[0]
        draft.remove(node)

    def add(self, op: str, inputs: Sequence[str], *, out: str = "", **attrs: Any) -> str:
        out = out or self.draft.name(f"{self.node.name}/{op}")
        name = self.node.name if out == self.out else out
        node = Node(op, list(inputs), [out], attrs, name, sources=self.node.sources)
        infer(self.draft, self.draft.add(node))
        return out

    def const(self, data: Any, dtype: str = "int64") -> str:
        return self.draft.constant_of(np.asarray(data, dtype), f"{self.node.name}/constant")
