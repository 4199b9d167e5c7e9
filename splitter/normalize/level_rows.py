"""Rows of the query of linear attention are leveled before its products.

relu(q) @ kv / (relu(q) @ k) is the same for a row of q and for a multiple of it, but in integers
one scale serves all rows of each product, and rows that are small lose both numerator and divisor.
Each row is divided by its largest entry first, and each head of the keys, where both products come
from them, by its largest entry; an error of these divisions cancels in the quotient, since both
products read the same. Decides where: a quotient of two products with one non-negative factor.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node, Type

LEAST = 1e-20
"""What a row of zeros is divided by."""


def level_rows(draft: Draft) -> None:
    for node in draft.nodes:
        if draft.alive(node) and node.op == "Div" and not node.domain:
            _level(draft, node)


def _level(draft: Draft, quotient: Node) -> None:
    above, below = _product(draft, quotient.inputs[0]), _product(draft, quotient.inputs[1])
    if above is None or below is None or above is below:
        return
    for side in (0, 1):
        rows = above.inputs[side]
        if rows == below.inputs[side] and draft.shape(rows) and _not_negative(draft, rows):
            _replace(draft, rows, (above, below), (-1 if side == 0 else -2,), quotient)
            _level_heads(draft, (above, below), 1 - side, quotient)
            return


def _level_heads(draft: Draft, products: tuple[Node, Node], side: int, quotient: Node) -> None:
    """The keys, when the other factors of both products are products with them."""
    makers = [draft.producer.get(product.inputs[side]) for product in products]
    inner = [m for m in makers if m is not None and m.op == "MatMul" and not m.domain]
    if len(inner) != 2 or inner[0] is inner[1]:
        return
    for position in (0, 1):
        keys = inner[0].inputs[position]
        private = all(draft.only_user(node.outputs[0]) is not None for node in inner)
        if private and keys == inner[1].inputs[position] and _not_negative(draft, keys):
            _replace(draft, keys, (inner[0], inner[1]), (-2, -1), quotient)
            return


def _replace(
    draft: Draft, value: str, readers: tuple[Node, Node], axes: tuple[int, ...], quotient: Node
) -> None:
    """Let both read the value divided by its largest entry along the axes."""
    leveled = _leveled(draft, value, axes, quotient.sources)
    for node in readers:
        draft.set_inputs(node, [leveled if name == value else name for name in node.inputs])


def _product(draft: Draft, value: str) -> Node | None:
    """The product that makes a value, a tiny constant added or not."""
    maker = draft.producer.get(value)
    if maker is not None and maker.op == "Add" and not maker.domain:
        constants = [name for name in maker.inputs if draft.constant(name) is not None]
        others = [name for name in maker.inputs if name not in constants]
        if len(constants) != 1 or len(others) != 1 or draft.only_user(value) is None:
            return None
        value, maker = others[0], draft.producer.get(others[0])
    plain = maker is not None and maker.op == "MatMul" and not maker.domain
    return maker if plain and draft.only_user(value) is not None else None


def _not_negative(draft: Draft, value: str) -> bool:
    maker = draft.producer.get(value)
    while maker is not None and maker.op in ("Transpose", "Reshape") and not maker.domain:
        maker = draft.producer.get(maker.inputs[0])
    return maker is not None and maker.op == "Relu" and (draft.rank(value) or 0) > 1


def _leveled(draft: Draft, value: str, axes: tuple[int, ...], sources: tuple[str, ...]) -> str:
    known, shape = draft.types[value], draft.shape(value) or ()
    places = [axis + len(shape) for axis in axes]
    short = Type(known.dtype, tuple(1 if a in places else n for a, n in enumerate(shape)))
    top, some, out = (draft.name(value.split("~")[0]) for _ in range(3))
    over = draft.constant_of(np.array(places, np.int64), "axes")
    least = draft.constant_of(np.asarray(LEAST, known.dtype), "least")
    for op, inputs, output, attrs, made in (
        ("ReduceMax", [value, over], top, {"keepdims": 1}, short),
        ("Max", [top, least], some, {}, short),
        ("Div", [value, some], out, {}, known),
    ):
        draft.add(Node(op, inputs, [output], attrs, f"{op}_{output}", sources=sources), [made])
    return out
