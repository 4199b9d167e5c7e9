"""Inputs to calibrate and verify on: the recorded ones, and more of the same kind.

Decides what "the same kind" is where nothing better is known: values of the recorded arrays, moved
about; and for graphs without records numbers by the input's type, name and rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.corpus.cases import Arrays, Record
from splitter.graph import Array, Value

SPREAD = (0.6, 0.8, 0.9, 1.0)
"""Gains of variants of a recorded array."""


def invented(inputs: Sequence[Value], count: int) -> list[Arrays]:
    """Inputs for a graph without records; the same ones every time."""
    random = np.random.default_rng(0)
    return [{value.name: _invent(value, random) for value in inputs} for _ in range(count)]


def _invent(value: Value, random: np.random.Generator) -> Array:
    kind = np.dtype(value.dtype).kind
    if kind == "b":
        return np.ones(value.shape, bool)
    if "mask" in value.name:
        return np.ones(value.shape, value.dtype)
    if value.dtype == "uint8":
        return np.asarray(np.clip(picture(value.shape, random) * 60 + 128, 0, 255), np.uint8)
    if kind in "iu":
        top = 3 if not value.shape else 2 if "type" in value.name else 100
        return random.integers(0, top, value.shape).astype(value.dtype)
    if len(value.shape) == 4 and value.shape[1] in (1, 3):
        return picture(value.shape, random).astype(value.dtype)
    return (0.5 * random.standard_normal(value.shape)).astype(value.dtype)


def picture(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Smooth patches with some grain, mean near 0, deviation near 1: closer to photographs than
    white noise, of which a network sees nothing."""
    result = 0.2 * random.standard_normal(shape)
    for cells in (2, 4, 8, 16):
        coarse = random.standard_normal([min(cells, length) for length in shape[-2:]])
        index = [
            np.arange(length) * size // length
            for length, size in zip(shape[-2:], coarse.shape, strict=True)
        ]
        result = result + coarse[np.ix_(*index)] * 0.5
    return np.asarray(result)


def variants(stored: Sequence[Record], count: int) -> list[Arrays]:
    """More inputs out of the recorded ones: other loudness, rolled along the longest axis."""
    random = np.random.default_rng(1)
    made = []
    for index in range(count):
        source = stored[index % len(stored)].inputs
        made.append({name: _vary(array, random) for name, array in source.items()})
    return made


def _vary(array: Array, random: np.random.Generator) -> Array:
    if array.dtype.kind != "f" or array.ndim == 0:
        return array
    axis = int(np.argmax(array.shape))
    moved = np.roll(array, int(random.integers(0, array.shape[axis])), axis)
    return np.asarray(moved * random.choice(SPREAD), array.dtype)


def save(path: Path, samples: Sequence[Arrays], inputs: Sequence[Value]) -> Path:
    """As the command line takes them: samples stacked along a new first axis."""
    stacked = {v.name: np.stack([sample[v.name] for sample in samples]) for v in inputs}
    np.savez(path, allow_pickle=False, **stacked)
    return path
