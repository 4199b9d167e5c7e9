"""What a layout costs: transposes that remain, weighted lightly by size, and reshapes a little.

Two readers that want the same transposed value share one Transpose, so costs belong to values.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from splitter.draft import Node
from splitter.layout.views import Atoms, Perm
from splitter.layout.wiring import Edge, Wiring

RESHAPE = 0.01  # a Reshape that would otherwise not be there: a copy in some runtimes
BYTES = 0.5  # a transpose of the largest value costs this much more than one of a tiny value

Labels = dict[Node, Perm]


class Energy:
    """Costs of values under labels. A Transpose costs 1 and a part for its size."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        sizes = [int(np.prod(edge.sizes, dtype=np.int64)) for edge in wiring.edges]
        self.largest = max(sizes, default=1)

    def edge(self, edge: Edge, labels: Labels) -> float:
        """The cost of one edge alone."""
        have, wants = self.wiring.have(edge, labels), self.wiring.wants(edge, labels)
        return 0.0 if have in wants else self.transpose(edge)

    def transpose(self, edge: Edge) -> float:
        return 1.0 + BYTES * int(np.prod(edge.sizes, dtype=np.int64)) / self.largest

    def value(self, source: str, labels: Labels) -> float:
        """The cost of a value: each other order that is wanted is one Transpose."""
        total = 0.0
        seen: set[tuple[Atoms, Atoms]] = set()
        for edge in self.wiring.readers.get(source, ()):
            have, wants = self.wiring.have(edge, labels), self.wiring.wants(edge, labels)
            if have in wants:
                perm = self.wiring.target_perm(edge, labels)
                straight = not edge.chain and perm == self.wiring.source_perm(edge, labels)
                total += 0.0 if straight else RESHAPE
                continue
            key = (edge.sizes, wants[0])
            if key not in seen:
                seen.add(key)
                total += self.transpose(edge)
        return total

    def total(self, labels: Labels) -> float:
        """The cost of the whole graph."""
        return self.values(self.wiring.readers, labels)

    def values(self, sources: Iterable[str], labels: Labels) -> float:
        return sum(self.value(source, labels) for source in sources)
