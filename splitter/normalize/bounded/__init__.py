"""Rows of which data decides how many there are: as many as there can be, and a mask.

What gives a number of rows that depends on data (NonMaxSuppression, NonZero, Compress) gives the
most there can be, with a mask that says which of them there are. The mask goes along with whatever
is made of the rows, and only at the graph's outputs the rows that are missing go, in ONNX's order.
Everything before is static. What mixes rows in a way that is not understood leaves the graph as it
was, with the reason as the mark `MIXED` of the nodes that decide. The bounds of lengths
(`lengths`), rules by operator (`makers`, `moves`, `values`) and what is known (`state`) are files
of their own.
"""

from __future__ import annotations

from splitter.draft import Draft, Node, Type
from splitter.normalize.bounded.branches import require_hanging, take_rows
from splitter.normalize.bounded.lengths import COUNTING, follow
from splitter.normalize.bounded.makers import MAKERS
from splitter.normalize.bounded.moves import MOVES
from splitter.normalize.bounded.state import Rows, Unbounded, static
from splitter.normalize.bounded.values import VALUES
from splitter.normalize.dedupe import dedupe
from splitter.normalize.fold import fold_constants, fold_node

MIXED = "mixed"
COMPRESS = "CompressRows"
FILLS = ("ConstantOfShape", "Range", "Expand")
"""Operators that make rows of their number."""


def bound_rows(draft: Draft) -> None:
    """Make everything static that hangs on a number of rows, or nothing."""
    if not any(node.op in MAKERS and _open(draft, node) for node in draft.nodes):
        return
    former = draft.snapshot()
    dedupe(draft)
    try:
        _walk(draft)
    except Unbounded as error:
        draft.restore(former)
        for node in draft.nodes:
            if node.op in MAKERS and _open(draft, node):
                node.marks[MIXED] = f"the shape of its result depends on data, and {error}"
        return
    fold_constants(draft)


def _open(draft: Draft, node: Node) -> bool:
    return not all(static(draft.types.get(out)) for out in node.outputs if out)


def _walk(draft: Draft) -> None:
    rows = Rows(draft)
    needed: dict[str, str] = {}
    while (found := _pass(rows)) is not None:
        names, mask = take_rows(rows, found)
        needed |= dict.fromkeys(names, mask)
    for name, mask in needed.items():
        require_hanging(rows, name, mask)
    for name in draft.outputs:
        _compact(rows, name)
    for name in {**rows.masks, **rows.numbers}:  # they hold more than what has that name in ONNX
        if name in draft.producer and "~" not in name and name not in draft.outputs:
            draft.rename(name)
    draft.prune()


def _pass(rows: Rows) -> Node | None:
    """Go through the nodes that nobody has looked at, up to an If that hangs on rows."""
    draft = rows.draft
    for node in draft.nodes:
        if not draft.alive(node) or node in rows.done:
            continue
        if node.op == "If" and rows.touched(node) and node.attrs:
            return node
        rows.done.add(node)
        if node.op in MAKERS and not node.domain:
            MAKERS[node.op](rows, node)
        elif rows.touched(node):
            _step(rows, node)
        elif not fold_node(draft, node) and _open(draft, node):
            rows.refresh(node)
    return None


def _step(rows: Rows, node: Node) -> None:
    """One node that reads rows, their numbers or how many there are."""
    if node.captured or node.domain:
        raise Unbounded(f"{node.op} {node.name} reads rows that may be missing")
    if node.op not in FILLS and _counts(rows, node):
        follow(rows, node)
        return
    if node.op in COUNTING:
        COUNTING[node.op](rows, node)
        return
    rule = MOVES.get(node.op) or VALUES.get(node.op)
    if rule is None:
        raise Unbounded(f"{node.op} {node.name} mixes rows that may be missing")
    rule(rows, node)


def _counts(rows: Rows, node: Node) -> bool:
    """Whether it calculates with how many rows there are, and with no rows."""
    reads = [name for name in node.inputs if name]
    if any(name in rows.masks or name in rows.numbers for name in reads):
        return False
    return all(name in rows.lengths or name in rows.draft.constants for name in reads)


def _compact(rows: Rows, name: str) -> None:
    """A model output gives the rows there are."""
    draft, known = rows.draft, rows.masks.get(name)
    node = draft.producer.get(name)
    if node is None and known is not None and name in draft.constants:
        node = Node("Identity", [draft.constant_of(draft.constants.pop(name), name)], [name], {},
                    f"Identity_{name}")  # fmt: skip
        draft.add(node)
    if node is None or (known is None and name not in rows.numbers):
        return
    inner = draft.rename(name)
    _move(rows, name, inner)
    value = rows.real(node, inner)
    if known is None:
        draft.add(Node("Identity", [value], [name], {}, f"Identity_{name}"),
                  [Type(draft.dtype(value), rows.shape(value))])  # fmt: skip
        return
    if known.axis:
        raise Unbounded(f"the rows of the output {name} are along axis {known.axis}")
    pieces = rows.pieces(value, known.axis)
    if len(pieces) > 1:  # boxes and scores: each keeps its own scale up to here
        made = [_compressed(rows, node, piece, known.mask) for piece in pieces]
        axis = draft.producer[value].attrs["axis"]
        draft.add(Node("Concat", made, [name], {"axis": axis}, node.name, sources=node.sources),
                  [Type(draft.dtype(value), rows.shape(value))])  # fmt: skip
        return
    _compressed(rows, node, value, known.mask, out=name)


def _compressed(rows: Rows, node: Node, value: str, mask: str, *, out: str = "") -> str:
    out = out or rows.draft.name(f"{node.name}/rows")
    made = Node(COMPRESS, [value, mask], [out], {}, f"{COMPRESS}_{out}", sources=node.sources)
    rows.draft.add(made, [Type(rows.draft.dtype(value), rows.shape(value))])
    return out


def _move(rows: Rows, old: str, new: str) -> None:
    if old in rows.masks:
        rows.masks[new] = rows.masks.pop(old)
    if old in rows.numbers:
        rows.numbers[new] = rows.numbers.pop(old)


__all__ = ["COMPRESS", "MIXED", "bound_rows"]
