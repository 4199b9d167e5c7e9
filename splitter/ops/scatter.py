"""ScatterND, ScatterElements and GatherND as reads and writes of rows of a matrix.

Data becomes rows [R, K], indices become row numbers [M]. With constant indices a scatter is a
GATHER: each row of the result is a row of the data or of the updates. With indices that depend on
data, rows are placed by SCATTER_ND and a mask, and added by a product with a 0/1 matrix. Both hold
in integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.resize import along

LARGEST_MATRIX = 1 << 22
"""Elements of a 0/1 matrix [rows, updates]."""

REDUCTIONS = {"add": "ADD", "mul": "MUL", "max": "MAXIMUM", "min": "MINIMUM"}


@dataclass(frozen=True, slots=True)
class Rows:
    """data [R, K], updates [M, K], numbers [M] int32 (a tensor), or its values where constant."""

    data: str
    updates: str
    numbers: str
    constant: Array | None


def row_numbers(
    e: Emitter, indices: str, constant: Array | None, sizes: tuple[int, ...]
) -> tuple[str, Array | None]:
    """Tuples of indices [..., q] into axes of these sizes -> row numbers [...]; negative wrap."""
    strides = [prod(sizes[a + 1 :]) for a in range(len(sizes))]
    if constant is not None:
        wrapped = np.where(constant < 0, constant + np.array(sizes), constant)
        numbers = (wrapped * np.array(strides)).sum(axis=-1)
        return e.const(numbers, "rows", dtype="int32"), numbers
    indices = wrap(e, indices, e.const(sizes, "sizes", dtype="int32"))
    shape = e.shape(indices)
    if len(sizes) == 1:
        return e.reshape(indices, shape[:-1]), None
    offsets = two(e, "MUL", indices, e.const(strides, "strides", dtype="int32"))
    axis = e.const([len(shape) - 1], "axis", dtype="int32")
    total = e.op("SUM", [offsets, axis], shape[:-1], dtype="int32", hint="rows", keep_dims=False)
    return total, None


def wrap(e: Emitter, indices: str, size: str) -> str:
    """indices + size where they are negative."""
    below = e.op(
        "LESS",
        [indices, e.const(0, "zero", dtype="int32")],
        e.shape(indices),
        dtype="bool",
        hint="negative",
    )
    ones = e.op("CAST", [below], e.shape(indices), dtype="int32", hint="turns")
    return two(e, "ADD", indices, two(e, "MUL", ones, size))


# -- reading ----------------------------------------------------------------------------------


def emit_gather_nd(e: Emitter, unit: Unit) -> None:
    """GATHER of rows; batch axes are indices of their own."""
    x, indices = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    constant = e.graph.constants.get(unit.inputs[1])
    batch = int(unit.attrs.get("batch_dims", 0))
    shape, depth = e.shape(x), e.shape(indices)[-1]
    sizes = shape[batch : batch + depth]
    numbers, values = row_numbers(e, indices, constant, sizes)
    count = prod(shape[:batch])
    if count > 1:
        start = np.arange(count).reshape(shape[:batch]) * prod(sizes)
        start = start.reshape(start.shape + (1,) * (len(e.shape(numbers)) - batch))
        if values is not None:
            numbers = e.const(values + start, "rows", dtype="int32")
        else:
            numbers = two(e, "ADD", numbers, e.const(start, "start", dtype="int32"))
    width = prod(shape[batch + depth :])
    rows = e.reshape(x, (count * prod(sizes), width))
    flat = e.reshape(numbers, (prod(e.shape(numbers)),))
    y = e.op(
        "GATHER",
        [rows, flat],
        (prod(e.shape(numbers)), width),
        dtype=e.dtype(x),
        hint="rows",
        axis=0,
        batch_dims=0,
    )
    e.bind(e.reshape(y, e.graph.shape(unit.outputs[0])), unit)


# -- writing ----------------------------------------------------------------------------------


def scatter_nd_rows(e: Emitter, unit: Unit) -> Rows:
    x, indices, updates = (e.value(name) for name in unit.inputs)
    constant = e.graph.constants.get(unit.inputs[1])
    shape, depth = e.shape(x), e.shape(indices)[-1]
    numbers, values = row_numbers(e, indices, constant, shape[:depth])
    width = prod(shape[depth:])
    count = prod(e.shape(numbers))
    return Rows(
        e.reshape(x, (prod(shape[:depth]), width)),
        e.reshape(updates, (count, width)),
        e.reshape(numbers, (count,)),
        None if values is None else values.reshape(-1),
    )


def scatter_elements_rows(e: Emitter, unit: Unit) -> Rows:
    """Every element is a row of one."""
    x, indices, updates = (e.value(name) for name in unit.inputs)
    constant = e.graph.constants.get(unit.inputs[1])
    shape, picked = e.shape(x), e.shape(indices)
    axis = int(unit.attrs.get("axis", 0)) % len(shape)
    strides = [prod(shape[a + 1 :]) for a in range(len(shape))]
    grid = np.indices(picked)
    rest = np.zeros(picked, np.int64)
    for a in range(len(shape)):
        rest += grid[a] * strides[a] * (a != axis)
    count = prod(picked)
    values = None
    if constant is not None:
        wrapped = np.where(constant < 0, constant + shape[axis], constant)
        values = (wrapped * strides[axis] + rest).reshape(-1)
        numbers = e.const(values, "rows", dtype="int32")
    else:
        inside = wrap(e, indices, e.const(shape[axis], "size", dtype="int32"))
        along_axis = two(e, "MUL", inside, e.const(strides[axis], "stride", dtype="int32"))
        numbers = two(e, "ADD", along_axis, e.const(rest, "rest", dtype="int32"))
        numbers = e.reshape(numbers, (count,))
    return Rows(e.reshape(x, (prod(shape), 1)), e.reshape(updates, (count, 1)), numbers, values)


def _place(e: Emitter, data: str, updates: str, numbers: Array) -> str:
    """Rows of updates [M, K] in place of rows of the data, the last one where several meet."""
    count, width = e.shape(data)
    source = np.arange(count)
    source[numbers] = count + np.arange(len(numbers))
    both = e.concat([data, updates], 0)
    index = e.const(source, "source", dtype="int32")
    return e.op(
        "GATHER",
        [both, index],
        (count, width),
        dtype=e.dtype(data),
        hint="placed",
        axis=0,
        batch_dims=0,
    )


def _pick(e: Emitter, rows: str, numbers: Array) -> str:
    index = e.const(numbers, "picks", dtype="int32")
    return e.op(
        "GATHER",
        [rows, index],
        (len(numbers), e.shape(rows)[1]),
        dtype=e.dtype(rows),
        hint="picked",
        axis=0,
        batch_dims=0,
    )


def _combine(e: Emitter, rows: Rows, code: str) -> str:
    """Updates combined with the data, one for each row at a time: a row that several meet takes
    several rounds."""
    assert rows.constant is not None
    data, numbers = rows.data, rows.constant
    seen: dict[int, int] = {}
    rounds: list[list[int]] = []
    for position, number in enumerate(numbers.tolist()):
        turn = seen.get(number, 0)
        seen[number] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(position)
    for positions in rounds:
        targets = numbers[positions]
        mixed = two(e, code, _pick(e, data, targets), _pick(e, rows.updates, np.array(positions)))
        data = _place(e, data, mixed, targets)
    return data


def constant_scatter(read: Callable[[Emitter, Unit], Rows]) -> Callable[[Emitter, Unit], None]:
    def emit(e: Emitter, unit: Unit) -> None:
        rows = read(e, unit)
        assert rows.constant is not None
        reduction = unit.attrs.get("reduction", "none") or "none"
        count, added = e.shape(rows.data)[0], len(rows.constant)
        if reduction == "none":
            y = _place(e, rows.data, rows.updates, rows.constant)
        elif (
            reduction == "add"
            and e.dtype(rows.data) == "float32"
            and (count * added <= LARGEST_MATRIX and len(set(rows.constant.tolist())) < added)
        ):
            matrix = np.zeros((count, added))
            matrix[rows.constant, np.arange(added)] = 1
            y = two(e, "ADD", rows.data, along(e, rows.updates, 0, matrix))
        else:
            y = _combine(e, rows, REDUCTIONS[reduction])
        e.bind(y, unit)

    return emit


def mask_scatter(read: Callable[[Emitter, Unit], Rows]) -> Callable[[Emitter, Unit], None]:
    """Placed by SCATTER_ND; where nothing was placed the data stays."""

    def emit(e: Emitter, unit: Unit) -> None:
        rows = read(e, unit)
        count, width = e.shape(rows.data)
        added = e.shape(rows.updates)[0]
        index = e.reshape(rows.numbers, (added, 1))
        placed = e.op(
            "SCATTER_ND",
            [index, rows.updates, e.const([count, width], "shape", dtype="int32")],
            (count, width),
            dtype=e.dtype(rows.data),
            hint="placed",
        )
        ones = e.const(np.ones((added, 1)), "ones", dtype="int32")
        hits = e.op(
            "SCATTER_ND",
            [index, ones, e.const([count, 1], "shape", dtype="int32")],
            (count, 1),
            dtype="int32",
            hint="hits",
        )
        hit = e.op(
            "GREATER",
            [hits, e.const(0, "zero", dtype="int32")],
            (count, 1),
            dtype="bool",
            hint="hit",
        )
        y = e.op(
            "SELECT_V2",
            [hit, placed, rows.data],
            (count, width),
            dtype=e.dtype(rows.data),
            hint="result",
        )
        e.bind(y, unit)

    return emit


def matrix_scatter(read: Callable[[Emitter, Unit], Rows]) -> Callable[[Emitter, Unit], None]:
    """data + S updates, S [R, M] with a 1 where an update belongs to a row."""

    def emit(e: Emitter, unit: Unit) -> None:
        rows = read(e, unit)
        count, width = e.shape(rows.data)
        added = e.shape(rows.updates)[0]
        every = e.const(np.arange(count).reshape(count, 1), "every", dtype="int32")
        numbers = e.reshape(rows.numbers, (1, added))
        hit = e.op("EQUAL", [every, numbers], (count, added), dtype="bool", hint="hit")
        matrix = e.op("CAST", [hit], (count, added), hint="matrix")
        total = e.op(
            "BATCH_MATMUL",
            [e.reshape(matrix, (1, count, added)), e.reshape(rows.updates, (1, added, width))],
            (1, count, width),
            hint="added",
            adj_x=False,
            adj_y=False,
            asymmetric_quantize_inputs=False,
        )
        e.bind(two(e, "ADD", rows.data, e.reshape(total, (count, width))), unit)

    return emit


# -- which applies ----------------------------------------------------------------------------


def _constant(graph: Graph, unit: Unit) -> str | None:
    return None if unit.inputs[1] in graph.constants else "its indices depend on data"


def _reduction(unit: Unit) -> str:
    return str(unit.attrs.get("reduction", "none") or "none")


def _placing(graph: Graph, unit: Unit) -> str | None:
    how = _reduction(unit)
    if how != "none":
        return f"reduction {how} with indices that depend on data"
    dtype = graph.values[unit.inputs[0]].dtype
    return f"SCATTER_ND of {dtype}" if dtype == "bool" else None


def _adding(graph: Graph, unit: Unit) -> str | None:
    how = _reduction(unit)
    if how != "add":
        return f"reduction {how} with indices that depend on data"
    if graph.values[unit.inputs[0]].dtype != "float32":
        return "it is not of floats"
    shape, picked = graph.shape(unit.inputs[0]), graph.shape(unit.inputs[1])
    nd = unit.op == "ScatterND"
    rows = prod(shape[: picked[-1]]) if nd else prod(shape)
    size = rows * prod(picked[:-1] if nd else picked)
    return None if size <= LARGEST_MATRIX else f"a matrix of {size} elements"


def _scatter(name: str, read: Callable[[Emitter, Unit], Rows]) -> Op:
    return Op(
        name,
        (
            Lowering("gather", constant_scatter(read), applies=_constant),
            Lowering("scatter_nd", mask_scatter(read), applies=_placing),
            Lowering("batch_matmul", matrix_scatter(read), applies=_adding),
        ),
    )


OPS = (
    Op("GatherND", (Lowering("gather_rows", emit_gather_nd),)),
    _scatter("ScatterND", scatter_nd_rows),
    _scatter("ScatterElements", scatter_elements_rows),
)
