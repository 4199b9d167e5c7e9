"""How rows that may be missing pass through operators that move values.

Each rule brings a node to static shapes and says where the rows of its result are. What picks rows
by their number gets them packed first, unless the number is one of the padded rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Node
from splitter.normalize.bounded.lengths import bounds
from splitter.normalize.bounded.state import Masked, Numbers, Rows, Unbounded

HUGE = 1 << 30
"""Ends of slices from here on mean "to the end"."""


def reshape(rows: Rows, node: Node) -> None:
    x, out = node.inputs[0], node.outputs[0]
    known, shape = rows.masks.get(x), rows.shape(x)
    if known is None:
        _sized(rows, node)
        return
    target = _resolved(rows, node, shape)
    axis, times = _place(node, shape, target, known.axis)
    x = rows.real(node, x) if rows.numbers.get(x, Numbers("")).column is not None else x
    attrs = {"allowzero": 0}
    rows.draft.set_inputs(node, [x, rows.const(target)])
    node.op, node.attrs = "Reshape", attrs
    rows.refresh(node)
    mask = known.mask
    if times > 1:
        wide = rows.emit(node, "Reshape", [mask, rows.const([-1, 1])])
        wide = rows.emit(node, "Expand", [wide, rows.const([shape[known.axis], times])])
        mask = rows.emit(node, "Reshape", [wide, rows.const([-1])])
        rows.repeats[mask] = known.mask, times
        if rows.is_packed(known.mask):
            rows.mark_packed(mask)
    rows.masks[out] = Masked(axis, mask)
    _same_numbers(rows, x, out)


def _resolved(rows: Rows, node: Node, shape: tuple[int, ...]) -> list[int]:
    """The shape that a node of one of the three kinds asks for, as long as there can be."""
    draft = rows.draft
    if node.op == "Flatten":
        axis = int(node.attrs.get("axis", 1)) % (len(shape) + 1)
        return [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))]
    if node.op == "Squeeze":
        axes = draft.ints(node.inputs[1]) if node.input(1) else None
        if axes is None:
            raise Unbounded(f"{node.name} squeezes whatever has one element")
        gone = {axis % len(shape) for axis in axes}
        return [length for axis, length in enumerate(shape) if axis not in gone]
    if node.op == "Unsqueeze":
        axes = draft.ints(node.inputs[1])
        if axes is None:
            raise Unbounded(f"the axes of {node.name} are computed")
        made = {axis % (len(shape) + len(axes)) for axis in axes}
        rest = iter(shape)
        return [1 if a in made else next(rest) for a in range(len(shape) + len(axes))]
    target = bounds(rows, node, node.inputs[1])
    if not node.attrs.get("allowzero", 0):
        target = [shape[i] if d == 0 else d for i, d in enumerate(target)]
    known = int(np.prod([d for d in target if d != -1]))
    return [int(np.prod(shape)) // max(known, 1) if d == -1 else d for d in target]


def _place(node: Node, shape: tuple[int, ...], target: list[int], axis: int) -> tuple[int, int]:
    """The axis of the rows in another shape, and how many of its elements belong to a row."""
    before = int(np.prod(shape[:axis]))
    for place in range(len(target)):
        if int(np.prod(target[:place])) != before:
            continue
        times, rest = divmod(target[place], shape[axis])
        whole = times == 1 or int(np.prod(target[place:])) == int(np.prod(shape[axis:]))
        if not rest and times and whole and (target[place] != 1 or shape[axis] == 1):
            return place, times
    raise Unbounded(f"{node.op} {node.name} mixes its rows with another axis")


def _same_numbers(rows: Rows, x: str, out: str) -> None:
    known = rows.numbers.get(x)
    if known is not None and known.column is None:
        rows.numbers[out] = known


def transpose(rows: Rows, node: Node) -> None:
    x, out = node.inputs[0], node.outputs[0]
    rank = len(rows.shape(x))
    perm = [int(a) for a in node.attrs.get("perm") or range(rank)[::-1]]
    rows.refresh(node)
    if x in rows.masks:
        rows.masks[out] = Masked(perm.index(rows.masks[x].axis), rows.masks[x].mask)
    if x in rows.numbers:
        old = rows.numbers[x]
        rows.numbers[out] = Numbers(old.mask, perm.index(old.axis), old.column)


def slices(rows: Rows, node: Node) -> None:
    """Along the rows from a fixed place on, of rows that are packed; else as ever."""
    x, out = node.inputs[0], node.outputs[0]
    known, shape = rows.masks.get(x), rows.shape(x)
    starts, steps = (rows.draft.ints(node.input(place)) for place in (1, 4))
    axes = rows.draft.ints(node.input(3)) if node.input(3) else None
    axes = [a % len(shape) for a in (axes if axes is not None else range(len(starts or ())))]
    if starts is None:
        raise Unbounded(f"the starts of {node.name} are computed")
    ends = bounds(rows, node, node.inputs[2])
    rows.draft.set_input(node, 2, rows.const(ends))
    if known is None or known.axis not in axes:
        _sliced_numbers(rows, node, axes)
        rows.refresh(node)
        if known is not None:
            rows.masks[out] = known
        return
    place = axes.index(known.axis)
    step = (steps or [1] * len(axes))[place]
    start, end = starts[place], ends[place]
    whole = end >= min(HUGE, shape[known.axis])
    if step != 1 or start < 0 or (end < 0 and not whole):
        raise Unbounded(f"{node.name} slices rows from their end, which the data decides")
    if start == 0 and whole:
        packed, mask = x, known.mask
    else:
        packed = rows.pack(node, x)
        mask = rows.emit(node, "Slice", [rows.masks[packed].mask, rows.const([start]),
                                         rows.const([end]), rows.const([0])])  # fmt: skip
        rows.mark_packed(mask)
    rows.draft.set_input(node, 0, packed)
    rows.refresh(node)
    rows.masks[out] = Masked(known.axis, mask)
    if packed in rows.numbers:
        rows.numbers[out] = rows.numbers[packed]


def _sliced_numbers(rows: Rows, node: Node, axes: list[int]) -> None:
    """A slice of the column of row numbers is all row numbers, one of the others is none."""
    x, known = node.inputs[0], rows.numbers.get(node.inputs[0])
    if known is None:
        return
    if known.column is None:
        rows.numbers[node.outputs[0]] = known
        return
    starts, ends = (rows.draft.ints(node.inputs[place]) or [] for place in (1, 2))
    if axes == [known.axis] and not node.input(4):
        taken = range(rows.shape(x)[known.axis])[starts[0] : ends[0]]
        if list(taken) == [known.column]:
            rows.numbers[node.outputs[0]] = Numbers(known.mask)
            return
        if known.column not in taken:
            return
    rows.draft.set_input(node, 0, rows.real(node, x))


def gather(rows: Rows, node: Node) -> None:
    data, index = node.inputs[:2]
    axis = int(node.attrs.get("axis", 0)) % len(rows.shape(data))
    node.attrs = {"axis": axis}
    known, picked = rows.masks.get(data), rows.masks.get(index)
    if known is not None and known.axis == axis:
        _gather_rows(rows, node, axis)
        return
    index = rows.real(node, index)
    tagged, result = rows.numbers.get(data), None
    if tagged is not None and tagged.column is not None:
        values = rows.draft.ints(index)
        if axis == tagged.axis and values is not None and tagged.column not in values:
            pass
        elif axis == tagged.axis and values == [tagged.column]:
            result = Numbers(tagged.mask)
        else:
            data = rows.real(node, data)
    elif tagged is not None:
        result = tagged
    _gathered(rows, node, data, index)
    ranks = len(rows.shape(index))
    if known is not None and picked is not None:
        raise Unbounded(f"{node.name} has rows that may be missing along two axes")
    if known is not None:
        place = known.axis if known.axis < axis else known.axis + ranks - 1
        rows.masks[node.outputs[0]] = Masked(place, known.mask)
    elif picked is not None:
        rows.masks[node.outputs[0]] = Masked(axis + picked.axis, picked.mask)
    if result is not None:
        rows.numbers[node.outputs[0]] = result


def _gather_rows(rows: Rows, node: Node, axis: int) -> None:
    """Rows by their number: of the padded rows, or of packed ones."""
    data, index = node.inputs[:2]
    known, picked = rows.masks[data], rows.masks.get(index)
    own = rows.numbers.get(index)
    if own is None or own.column is not None or own.mask != known.mask:
        values = rows.draft.ints(index)
        if values is not None and min(values, default=0) < 0:
            raise Unbounded(f"{node.name} picks rows from the end, which the data decides")
        index, data = rows.real(node, index), rows.real(node, data)
        data = rows.pack(node, data)
    tagged = rows.numbers.get(data)
    if tagged is not None and tagged.column is not None:
        data, tagged = rows.real(node, data), None
    _gathered(rows, node, data, index)
    if picked is not None:
        rows.masks[node.outputs[0]] = Masked(axis + picked.axis, picked.mask)
    if tagged is not None:
        rows.numbers[node.outputs[0]] = tagged


def _gathered(rows: Rows, node: Node, data: str, index: str) -> None:
    rows.draft.set_inputs(node, [data, index])
    rows.refresh(node)


def gather_nd(rows: Rows, node: Node) -> None:
    data, index = node.inputs[:2]
    picked = rows.masks.get(index)
    if node.attrs.get("batch_dims", 0):
        raise Unbounded(f"{node.name} has batches of rows that may be missing")
    if data in rows.masks and rows.masks[data].axis < rows.shape(index)[-1]:
        data = rows.pack(node, rows.real(node, data)) if rows.masks[data].axis == 0 else ""
    if not data or data in rows.numbers or (picked and picked.axis == len(rows.shape(index)) - 1):
        raise Unbounded(f"{node.name} picks from rows that may be missing along an inner axis")
    _gathered(rows, node, data, rows.real(node, index))
    if picked is not None:
        rows.masks[node.outputs[0]] = picked
    elif data in rows.masks and rows.masks[data].axis >= rows.shape(index)[-1]:
        raise Unbounded(f"{node.name} keeps rows that may be missing")


def concat(rows: Rows, node: Node) -> None:
    names = [rows.real(node, name) for name in node.inputs]
    axis = int(node.attrs.get("axis", 0)) % len(rows.shape(names[0]))
    known = [rows.masks.get(name) for name in names]
    rows.draft.set_inputs(node, names)
    rows.refresh(node)
    if len(names) == 1 and known[0] is not None:
        rows.masks[node.outputs[0]] = known[0]
        return
    where = {one.axis for one in known if one is not None}
    if where == {axis}:
        lengths = [rows.shape(name)[axis] for name in names]
        mask = rows.joined(node, [one.mask if one else "" for one in known], lengths)
    elif all(known) and len(where) == 1 and len({one.mask for one in known if one}) == 1:
        mask = next(one.mask for one in known if one)
        axis = next(iter(where))
    elif where:
        raise Unbounded(f"{node.name} joins values whose rows are missing independently")
    else:
        return
    rows.masks[node.outputs[0]] = Masked(axis, mask)


def expand(rows: Rows, node: Node) -> None:
    """Expand of anything to as many rows as there are."""
    x, out = node.inputs[0], node.outputs[0]
    x = rows.real(node, x)
    known = rows.masks.get(x)
    target = bounds(rows, node, node.inputs[1])
    where = _masked_axes(rows, node.inputs[1])
    rows.draft.set_inputs(node, [x, rows.const(target)])
    rows.refresh(node)
    rank = len(rows.shape(out))
    if known is not None:
        where.append((known.axis + rank - len(rows.shape(x)), known.mask))
    _one_axis(rows, node, [(a + rank - len(target) if i < len(where) - bool(known) else a, m)
                           for i, (a, m) in enumerate(where)])  # fmt: skip


def constant_of_shape(rows: Rows, node: Node) -> None:
    target = bounds(rows, node, node.inputs[0])
    where = _masked_axes(rows, node.inputs[0])
    rows.draft.set_inputs(node, [rows.const(target)])
    value = np.asarray(node.attrs.get("value", np.zeros(1, np.float32))).reshape(-1)[0]
    rows.draft.make_constant(node, {node.outputs[0]: np.full(target, value)})
    _one_axis(rows, node, where)


def arange(rows: Rows, node: Node) -> None:
    """0, 1, ... as many as there are rows: the numbers of the padded rows."""
    start, delta = (rows.draft.scalar(node.inputs[place]) for place in (0, 2))
    parts = rows.lengths.get(node.inputs[1], {})
    masks = [key for key, part in parts.items() if key is not None and part.any()]
    if (start, delta) != (0, 1) or len(masks) != 1 or not isinstance(masks[0], str):
        raise Unbounded(f"{node.name} counts to a length that the data decides")
    if parts[masks[0]].reshape(-1)[0] != 1 or parts[None].any():
        raise Unbounded(f"{node.name} counts to another number than that of its rows")
    out, length = node.outputs[0], rows.shape(masks[0])[0]
    kind = rows.draft.dtype(node.inputs[1])
    rows.draft.make_constant(node, {out: np.arange(length, dtype=kind)})
    rows.masks[out] = Masked(0, masks[0])
    rows.numbers[out] = Numbers(masks[0])


def _masked_axes(rows: Rows, name: str) -> list[tuple[int, str]]:
    """Places of a shape that are the number of rows of a mask."""
    found = []
    for key, part in rows.lengths.get(name, {}).items():
        if key is not None:
            for place in np.flatnonzero(part.reshape(-1)):
                found.append((int(place), str(key)))
    return found


def _one_axis(rows: Rows, node: Node, where: list[tuple[int, str]]) -> None:
    if len(set(where)) > 1:
        raise Unbounded(f"{node.name} has rows that may be missing along two axes")
    if where:
        rows.masks[node.outputs[0]] = Masked(*where[0])


def split(rows: Rows, node: Node) -> None:
    x = rows.real(node, node.inputs[0])
    known = rows.masks.get(x)
    axis = int(node.attrs.get("axis", 0)) % len(rows.shape(x))
    if known is not None and known.axis == axis:
        raise Unbounded(f"{node.name} splits rows that may be missing")
    rows.draft.set_input(node, 0, x)
    rows.refresh(node)
    for out in node.outputs:
        if known is not None:
            rows.masks[out] = known


def pad(rows: Rows, node: Node) -> None:
    """Along other axes as ever; to a fixed number of rows: what is missing is the padding."""
    x = rows.real(node, node.inputs[0])
    known, shape = rows.masks.get(x), rows.shape(x)
    parts = rows.lengths.get(node.inputs[1])
    value = rows.draft.scalar(node.inputs[2]) if node.input(2) else 0.0
    if known is None or parts is None or value is None or node.input(3):
        raise Unbounded(f"{node.name} pads rows that may be missing")
    fixed, moving = parts[None].reshape(-1), {k: p.reshape(-1) for k, p in parts.items() if k}
    after = len(shape) + known.axis
    asked = [k for k, p in moving.items() if p.any()]
    base, times = rows.repeats.get(known.mask, (known.mask, 1))
    if asked != [base] or node.attrs.get("mode", "constant") != "constant":
        raise Unbounded(f"{node.name} pads by a length that the data decides")
    if moving[base].tolist() != [-times if i == after else 0 for i in range(2 * len(shape))]:
        raise Unbounded(f"{node.name} pads by a length that the data decides")
    filled = _filled(rows, node, x, float(value))
    pads = fixed.copy()
    pads[after] -= shape[known.axis]
    fill = rows.const(value, rows.draft.dtype(x))
    rows.draft.set_inputs(node, [filled, rows.const(pads), fill])
    rows.refresh(node)


def _filled(rows: Rows, node: Node, x: str, value: float) -> str:
    """A masked value with the rows there are first, and a number in the others. Where it is rows
    made flat, and these are put together from others, each of them is filled by itself."""
    base, _ = rows.repeats.get(rows.masks[x].mask, ("", 0))
    maker = rows.draft.producer.get(x)
    if not base or maker is None or maker.op != "Reshape" or not rows.is_packed(base):
        return rows.filled(node, rows.pack(node, x), value)
    source = maker.inputs[0]
    known = rows.masks.get(source)
    if known is None or (known.axis, known.mask) != (0, base) or len(rows.shape(source)) != 2:
        return rows.filled(node, rows.pack(node, x), value)
    maker_of = rows.draft.producer.get(source)
    pieces = list(maker_of.inputs) if maker_of is not None and maker_of.op == "Concat" else []
    if len(pieces) < 2 or not all(rows.masks.get(piece) == known for piece in pieces):
        pieces = [source]
    made = [rows.filled(node, piece, value) for piece in pieces if 0 not in rows.shape(piece)]
    joined = rows.emit(node, "Concat", made, axis=1)
    return rows.emit(node, "Reshape", [joined, rows.const([-1])])


def _sized(rows: Rows, node: Node) -> None:
    """A Reshape to a length made of a number of rows, of a value without such rows."""
    raise Unbounded(f"{node.name} gives a shape that depends on a number of rows")


MOVES: dict[str, Callable[[Rows, Node], None]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), reshape),
    "Transpose": transpose,
    "Slice": slices,
    "Gather": gather,
    "GatherND": gather_nd,
    "Concat": concat,
    "Expand": expand,
    "ConstantOfShape": constant_of_shape,
    "Range": arange,
    "Split": split,
    "Pad": pad,
}
