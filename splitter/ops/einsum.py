"""Einsum of one or two operands as TRANSPOSE, RESHAPE, SUM and one BATCH_MATMUL.

Each operand is brought to [batch, free, summed]; letters of one operand alone that the result does
not have are summed first. A letter twice in one operand takes the diagonal by GATHER.
"""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import broadcast, two
from splitter.ops.reduce import reduce
from splitter.ops.registry import Emitter, Lowering, Op


def parse(equation: str, ranks: tuple[int, ...]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; "..." becomes capital letters from the right.

    ValueError for an equation that does not fit the ranks.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation} has {len(terms)} operands, not {len(ranks)}")
    extra = max(
        (
            rank - len(term.replace("...", ""))
            for term, rank in zip(terms, ranks, strict=True)
            if "..." in term
        ),
        default=0,
    )
    dots = "".join(chr(0x3B1 + i) for i in range(extra))  # Greek: ONNX letters are Latin
    full = []
    for term, rank in zip(terms, ranks, strict=True):
        own = rank - len(term.replace("...", ""))
        full.append(term.replace("...", dots[extra - own :] if own else ""))
        if len(full[-1]) != rank:
            raise ValueError(f"{term} of {equation} does not name {rank} axes")
    if not arrow:
        letters = "".join(terms).replace(".", "")
        right = "..." * bool(extra) + "".join(sorted(c for c in letters if letters.count(c) == 1))
    return full, right.replace("...", dots)


def diagonal(e: Emitter, x: str, term: str) -> tuple[str, str]:
    """A letter that stands twice becomes one axis."""
    for letter in dict.fromkeys(term):
        if term.count(letter) < 2:
            continue
        first, second = term.index(letter), term.rindex(letter)
        shape = e.shape(x)
        size = shape[first]
        rest = [a for a in range(len(shape)) if a not in (first, second)]
        moved = e.transpose(x, (first, second, *rest))
        kept = tuple(shape[a] for a in rest)
        rows = e.reshape(moved, (size * size, prod(kept)))
        index = e.const(np.arange(size) * (size + 1), "diagonal", dtype="int32")
        picked = e.op(
            "GATHER",
            [rows, index],
            (size, prod(kept)),
            dtype=e.dtype(x),
            hint="diagonal",
            axis=0,
            batch_dims=0,
        )
        x = e.reshape(picked, (size, *kept))
        term = letter + "".join(term[a] for a in rest)
        return diagonal(e, x, term)
    return x, term


def _sum_out(e: Emitter, x: str, term: str, needed: str) -> tuple[str, str]:
    """Letters that nobody else has and the result does not want are summed."""
    axes = tuple(a for a, letter in enumerate(term) if letter not in needed)
    if not axes:
        return x, term
    return reduce(e, "SUM", x, axes, False), "".join(c for c in term if c in needed)


def _arranged(e: Emitter, x: str, term: str, order: str) -> str:
    """Axes in this order; letters that the operand lacks have length 1."""
    x = e.transpose(x, [term.index(c) for c in order if c in term])
    sizes = iter(e.shape(x))
    return e.reshape(x, [next(sizes) if c in term else 1 for c in order])


def _lengths(e: Emitter, operands: list[tuple[str, str]]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for x, term in operands:
        for letter, size in zip(term, e.shape(x), strict=True):
            lengths[letter] = max(lengths.get(letter, 1), size)
    return lengths


def contract(e: Emitter, a: tuple[str, str], b: tuple[str, str], wanted: str) -> tuple[str, str]:
    """The product of two operands (tensor, letters), keeping the letters of `wanted`."""
    lengths = _lengths(e, [a, b])
    both = [c for c in a[1] if c in b[1]]
    batch = "".join(c for c in both if c in wanted)
    summed = "".join(c for c in both if c not in wanted)
    free_a = "".join(c for c in a[1] if c not in b[1])
    free_b = "".join(c for c in b[1] if c not in a[1])
    if not summed and not (free_a and free_b):
        order = batch + free_a + free_b
        return (
            two(e, "MUL", _arranged(e, *a, order), _arranged(e, *b, order), hint="product"),
            order,
        )
    size = {
        name: prod(lengths[c] for c in part)
        for name, part in (("m", free_a), ("n", free_b), ("k", summed))
    }
    left = _arranged(e, *a, batch + free_a + summed)
    right = _arranged(e, *b, batch + free_b + summed)
    shape_a, shape_b = e.shape(left)[: len(batch)], e.shape(right)[: len(batch)]
    left = e.reshape(left, (*shape_a, size["m"], size["k"]))
    right = e.reshape(right, (*shape_b, size["n"], size["k"]))
    both_batch = broadcast(shape_a, shape_b)
    if shape_a == shape_b:
        left = e.reshape(left, (prod(shape_a), size["m"], size["k"]))
        right = e.reshape(right, (prod(shape_b), size["n"], size["k"]))
        both_batch = (prod(shape_a),)
    y = e.op(
        "BATCH_MATMUL",
        [left, right],
        (*both_batch, size["m"], size["n"]),
        hint="product",
        adj_x=False,
        adj_y=True,
        asymmetric_quantize_inputs=False,
    )
    order = batch + free_a + free_b
    return e.reshape(y, [lengths[c] for c in order]), order


def emit_einsum(e: Emitter, unit: Unit) -> None:
    tensors = [e.value(name) for name in unit.inputs]
    terms, wanted = parse(_equation(unit), tuple(len(e.shape(t)) for t in tensors))
    operands = [diagonal(e, x, term) for x, term in zip(tensors, terms, strict=True)]
    while True:
        total, *others = operands
        rest = "".join(term for _, term in others)
        total = _sum_out(e, *total, wanted + rest)
        if not others:
            break
        later = "".join(term for _, term in others[1:])
        other = _sum_out(e, *others[0], wanted + later + total[1])
        operands = [contract(e, total, other, wanted + later), *others[1:]]
    x, term = total
    e.bind(e.transpose(x, [term.index(c) for c in wanted]), unit)


def _equation(unit: Unit) -> str:
    equation = unit.attrs["equation"]
    return equation.decode() if isinstance(equation, bytes) else str(equation)


def _applies(graph: Graph, unit: Unit) -> str | None:
    if graph.values[unit.inputs[0]].dtype not in ("float32", "float64", "float16"):
        return "it is not of floats"
    try:
        _, wanted = parse(_equation(unit), tuple(len(graph.shape(n)) for n in unit.inputs))
    except ValueError as error:
        return str(error)
    return "a letter stands twice in the result" if len(set(wanted)) < len(wanted) else None


OPS = (Op("Einsum", (Lowering("batch_matmul", emit_einsum, applies=_applies),)),)
