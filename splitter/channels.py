"""Follows the output channels of a unit to the weights and products that read them.

Every value on the way is an array of channel numbers of its own shape, moved by the same reshapes,
transposes, slices and concatenations as the data. Decides nothing; `equalize` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from splitter.graph import Array, Graph, Unit

LARGEST = 1 << 24
"""Elements of a value that is still followed."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Where channels end. weights: `channels[k]` is what input column k of FullyConnected or Conv
    reads, -1 for another source. left, right: the contracted side of a product of two variables,
    channel numbers [batch * width]."""

    kind: Literal["weights", "left", "right"]
    unit: Unit
    channels: Array


class _Lost(Exception):
    """The channels mix, or reach something that is not linear in each of them."""


def channel_readers(graph: Graph, maker: Unit) -> tuple[Reader, ...]:
    """All readers of the maker's output channels; none when one of them cannot be followed."""
    value = maker.outputs[0]
    shape = graph.shape(value)
    if not shape or prod(shape) > LARGEST:
        return ()
    numbers = np.broadcast_to(np.arange(shape[-1], dtype=np.int32), shape)
    try:
        return tuple(_readers(graph, value, numbers))
    except _Lost:
        return ()


def _readers(graph: Graph, value: str, numbers: Array) -> Iterator[Reader]:
    if value in graph.outputs:
        raise _Lost
    for unit in graph.consumers[value]:
        if unit.inputs.count(value) != 1 and unit.op != "Concat":
            raise _Lost
        if unit.op in ("FullyConnected", "Conv") and unit.inputs[0] == value:
            yield _weights(graph, unit, numbers)
        elif unit.op == "MatMul" and (end := _contracted(unit, value, numbers)):
            yield end
        else:
            for name, moved in _through(graph, unit, value, numbers):
                yield from _readers(graph, name, moved)


def _uniform(numbers: Array, axis: int) -> Array:
    """The numbers without an axis along which they do not change."""
    first = np.take(numbers, [0], axis=axis)
    if not np.array_equal(np.broadcast_to(first, numbers.shape), numbers):
        raise _Lost
    return first


def _weights(graph: Graph, unit: Unit, numbers: Array) -> Reader:
    weight = graph.constants.get(unit.inputs[1])
    grouped = unit.op == "Conv" and (unit.attrs.get("group", 1) != 1 or numbers.ndim != 4)
    if weight is None or grouped or len(graph.consumers[unit.inputs[1]]) != 1:
        raise _Lost
    for axis in range(numbers.ndim - 1):
        numbers = _uniform(numbers, axis)
    return Reader("weights", unit, numbers.reshape(-1))


def _contracted(unit: Unit, value: str, numbers: Array) -> Reader | None:
    """The value as a side of a product whose contracted axis carries the channels."""
    left = unit.inputs[0] == value
    swapped = bool(unit.attrs.get("adj_x" if left else "adj_y"))
    contracted = -1 if left != swapped else -2
    free = -2 if contracted == -1 else -1
    try:
        kept = _uniform(numbers, numbers.ndim + free)
    except _Lost:
        return None
    return Reader("left" if left else "right", unit, kept.reshape(-1))


def _through(graph: Graph, unit: Unit, value: str, numbers: Array) -> Iterator[tuple[str, Array]]:
    """(output, its channel numbers) of a unit that moves channels without mixing them."""
    out = unit.outputs[0]
    shape = graph.shape(out)
    if unit.op == "Reshape":
        yield out, numbers.reshape(shape)
    elif unit.op == "Transpose":
        yield out, numbers.transpose(unit.attrs["perm"])
    elif unit.op == "Relu":
        yield out, numbers
    elif unit.op == "Slice":
        yield out, numbers[_slices(unit)]
    elif unit.op == "Split":
        axis, start = int(unit.attrs["axis"]), 0
        for name in unit.outputs:
            size = graph.shape(name)[axis]
            yield name, np.take(numbers, range(start, start + size), axis=axis)
            start += size
    elif unit.op == "Concat":
        parts = [
            numbers if name == value else np.full(graph.shape(name), -1, np.int32)
            for name in unit.inputs
        ]
        yield out, np.concatenate(parts, axis=int(unit.attrs["axis"]))
    elif unit.op in ("Attend", "MatMul") and unit.inputs[1] == value:
        axis = numbers.ndim - (1 if unit.attrs.get("adj_y") else 2)
        kept = _uniform(numbers, axis)
        kept = np.swapaxes(kept, -1, -2) if unit.attrs.get("adj_y") else kept
        yield out, np.broadcast_to(kept, shape)
    else:
        raise _Lost


def _slices(unit: Unit) -> tuple[slice, ...]:
    attrs = unit.attrs
    return tuple(
        slice(start, None if end < 0 else end, step)
        for start, end, step in zip(attrs["starts"], attrs["ends"], attrs["steps"], strict=True)
    )
