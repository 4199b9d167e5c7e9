"""Minimum s-t cut on integer capacities, by growing two search trees.

Y. Boykov, V. Kolmogorov: An experimental comparison of min-cut/max-flow algorithms for energy
minimization in vision, IEEE PAMI 26 (2004). Written out here for speed: the planner solves hundreds
of cuts, and networkx takes ten times as long for the same. Knows nothing of plans.
"""

from __future__ import annotations

from collections import deque

BOUNDLESS = 1 << 62
"""A capacity that no cut goes through."""

_SOURCE, _SINK = 1, 2
_TERMINAL, _ORPHAN, _NONE = -1, -2, -3


class Flow:
    """A network of nodes 0..n-1 beside a source and a sink; built with the methods, solved once."""

    def __init__(self, nodes: int) -> None:
        self._terminal = [0] * nodes
        self._arcs: list[list[int]] = [[] for _ in range(nodes)]
        self._head: list[int] = []
        self._room: list[int] = []
        self._tree = [0] * nodes
        self._parent = [_NONE] * nodes
        self._active: deque[int] = deque()
        self._orphans: deque[int] = deque()
        self._seen = [0] * nodes
        self._depth = [0] * nodes
        self._time = 0

    def add_node(self) -> int:
        """A further node; returns its number."""
        for table, value in (
            (self._terminal, 0),
            (self._tree, 0),
            (self._parent, _NONE),
            (self._seen, 0),
            (self._depth, 0),
        ):
            table.append(value)
        self._arcs.append([])
        return len(self._tree) - 1

    def from_source(self, node: int, capacity: int) -> None:
        self._terminal[node] += capacity

    def to_sink(self, node: int, capacity: int) -> None:
        self._terminal[node] -= capacity

    def between(self, tail: int, head: int, capacity: int) -> None:
        arc = len(self._head)
        self._head += (head, tail)
        self._room += (capacity, 0)
        self._arcs[tail].append(arc)
        self._arcs[head].append(arc + 1)

    def solve(self) -> tuple[frozenset[int], frozenset[int]]:
        """The nodes on the source side of a minimum cut: the fewest, and the most."""
        for node, capacity in enumerate(self._terminal):
            if capacity:
                self._tree[node] = _SOURCE if capacity > 0 else _SINK
                self._parent[node] = _TERMINAL
                self._active.append(node)
        while self._active:
            node = self._active[0]
            arc = self._grow(node) if self._tree[node] else None
            if arc is None:
                self._active.popleft()
                continue
            self._augment(arc)
            while self._orphans:
                self._adopt(self._orphans.popleft())
        tree = self._tree
        return (
            frozenset(node for node, side in enumerate(tree) if side == _SOURCE),
            frozenset(node for node, side in enumerate(tree) if side != _SINK),
        )

    def _grow(self, node: int) -> int | None:
        """An arc from the source's tree to the sink's, if the tree of `node` meets the other."""
        tree, room, head = self._tree, self._room, self._head
        mine = tree[node]
        flip = 0 if mine == _SOURCE else 1
        for arc in self._arcs[node]:
            if room[arc ^ flip] <= 0:
                continue
            other = head[arc]
            if not tree[other]:
                tree[other] = mine
                self._parent[other] = arc ^ 1
                self._active.append(other)
            elif tree[other] != mine:
                return arc ^ flip
        return None

    def _augment(self, arc: int) -> None:
        """Fills the path through the arc; nodes that are cut off become orphans."""
        head, room, parent = self._head, self._room, self._parent
        amount = room[arc]
        for end, flip in ((head[arc ^ 1], 1), (head[arc], 0)):
            node, step = end, parent[end]
            while step != _TERMINAL:  # the innermost loop of planning: no call of min
                left = room[step ^ flip]
                if left < amount:
                    amount = left
                node = head[step]
                step = parent[node]
            amount = min(amount, abs(self._terminal[node]))
        room[arc] -= amount
        room[arc ^ 1] += amount
        for end, flip in ((head[arc ^ 1], 1), (head[arc], 0)):
            node, step = end, parent[end]
            while step != _TERMINAL:
                forth = step ^ flip
                room[forth] -= amount
                room[forth ^ 1] += amount
                if not room[forth]:
                    self._orphan(node)
                node = head[step]
                step = parent[node]
            self._terminal[node] += -amount if flip else amount
            if not self._terminal[node]:
                self._orphan(node)

    def _orphan(self, node: int) -> None:
        self._parent[node] = _ORPHAN
        self._orphans.append(node)

    def _adopt(self, node: int) -> None:
        """A new parent of the same tree for an orphan, the nearest to the root, or freedom."""
        self._time += 1
        mine = self._tree[node]
        flip = 1 if mine == _SOURCE else 0
        room, head, tree, parent = self._room, self._head, self._tree, self._parent
        best, least = _NONE, 0
        for arc in self._arcs[node]:
            if room[arc ^ flip] > 0 and tree[head[arc]] == mine:
                depth = self._depth_of(head[arc])
                if depth and (best == _NONE or depth < least):
                    best, least = arc, depth
        if best != _NONE:
            parent[node] = best
            self._seen[node], self._depth[node] = self._time, least + 1
            return
        for arc in self._arcs[node]:
            other = head[arc]
            if tree[other] != mine:
                continue
            if room[arc ^ flip] > 0:
                self._active.append(other)
            if parent[other] >= 0 and head[parent[other]] == node:
                self._orphan(other)
        tree[node] = 0
        parent[node] = _NONE

    def _depth_of(self, node: int) -> int:
        """Steps to the terminal plus one; 0 when the way there ends in an orphan."""
        head, parent, seen, now = self._head, self._parent, self._seen, self._time
        way = []
        depth = 0
        while True:
            if seen[node] == now:
                depth = self._depth[node]
                break
            step = parent[node]
            if step == _TERMINAL:
                depth = 1
                seen[node], self._depth[node] = now, 1
                break
            if step < 0:
                return 0
            way.append(node)
            node = head[step]
        for passed in reversed(way):
            depth += 1
            seen[passed], self._depth[passed] = now, depth
        return depth
