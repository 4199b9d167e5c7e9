"""Slices with steps, for compilers that take unit steps only: a step becomes an axis of its own."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from splitter.ops.registry import Emitter

Range = tuple[int, int, int]
"""(start, length, step) of an axis."""


def window(size: int, taken: Range) -> tuple[int, int] | None:
    """(first, phase): `length` times `step` elements from `first`, of which each `phase`-th of a
    step is taken. None where the axis is too short for whole steps or runs backwards."""
    start, length, step = taken
    if step < 1:
        return None
    low, high = max(0, start - step + 1), min(start, size - length * step)
    return (high, start - high) if low <= high else None


def unstrided(shape: Sequence[int], ranges: Sequence[Range]) -> str | None:
    """Why a slice cannot be written with unit steps, None where it can."""
    if all(step == 1 for _, _, step in ranges):
        return "it has unit steps already"
    whole = all(window(size, taken) for size, taken in zip(shape, ranges, strict=True))
    return None if whole else "an axis holds no whole number of steps, or runs backwards"


def by_reshape(e: Emitter, x: str, ranges: Sequence[Range]) -> str:
    """The slice by SLICE, RESHAPE and SLICE for each axis with a step."""
    shape = e.shape(x)
    places = [window(size, taken) or (0, 0) for size, taken in zip(shape, ranges, strict=True)]
    sizes = [length * step for _, length, step in ranges]
    x = e.slice(x, [first for first, _ in places], sizes)
    for axis, ((_, length, step), (_, phase)) in enumerate(zip(ranges, places, strict=True)):
        if step > 1:
            kept = (*e.shape(x)[:axis], length, *e.shape(x)[axis + 1 :])
            before, after = prod(kept[: axis + 1]), prod(kept[axis + 1 :])
            steps = e.reshape(x, (before, step, after))
            x = e.reshape(e.slice(steps, (0, phase, 0), (before, 1, after)), kept)
    return x
