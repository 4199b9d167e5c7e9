"""Samples of a model's inputs, and how they are shared between calibration and verification.

Decides nothing about where they come from (`read`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from splitter.graph import Array, Value


@dataclass(frozen=True)
class Samples:
    """Arrays by ONNX input name, samples along the first axis, as the model takes them.

    source: where they come from, for report and manifest ("64 images of photos").
    random: made up: no figure that rests on them means anything.
    images: the pictures behind the arrays, uint8 [N, H, W, 3 or 1] at the model's size, if any.
    sizes: width and height of each picture before it was resized, int64 [N, 2], with `images`.
    annotations: what is known of each sample, rows as in `arrays`: `labels`, `boxes`, `counts`;
        and `class_names`, which has no rows.
    """

    arrays: Mapping[str, Array]
    source: str = ""
    random: bool = False
    images: Array | None = None
    sizes: Array | None = None
    annotations: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        """Rows of the first input (0 without inputs)."""
        return next((len(array) for array in self.arrays.values()), 0)

    def batches(self, inputs: Sequence[Value]) -> list[dict[str, Array]]:
        """One run's inputs each, of the model's own static shapes; rows over are left out."""
        count = min((len(self.arrays[v.name]) // rows(v) for v in inputs), default=0)
        return [
            {v.name: _cut(self.arrays[v.name], v, index) for v in inputs} for index in range(count)
        ]

    def take(self, runs: Array, inputs: Sequence[Value]) -> Samples:
        """The samples of the given runs (batch indices), everything along with them."""
        arrays = {v.name: self.arrays[v.name][_rows_of(runs, rows(v))] for v in inputs}
        keep = _rows_of(runs, rows(inputs[0]))
        return Samples(
            arrays,
            self.source,
            self.random,
            None if self.images is None else self.images[keep],
            None if self.sizes is None else self.sizes[keep],
            {k: v if k == "class_names" else v[keep] for k, v in self.annotations.items()},
        )


def rows(value: Value) -> int:
    """How many rows of the first axis one run takes: the model's batch, 1 for a scalar input."""
    return value.shape[0] if value.shape else 1


def _cut(array: Array, value: Value, index: int) -> Array:
    step = rows(value)
    return array[index * step : (index + 1) * step].reshape(value.shape)


def _rows_of(runs: Array, step: int) -> Array:
    return np.asarray((runs[:, None] * step + np.arange(step)[None]).reshape(-1))


def spread(count: int, limit: int) -> Array:
    """`limit` of `count` indices, spread evenly, ascending; all of them when limit is 0 or more."""
    if not limit or limit >= count:
        return np.arange(count)
    return np.asarray(np.arange(limit) * count // limit)


@dataclass(frozen=True, slots=True)
class Division:
    """Samples to calibrate on and samples to verify on; `shared` when they are the same ones."""

    calibration: Samples
    validation: Samples
    shared: bool


ENOUGH = 8
"""Runs from which on some are kept back for verification even if calibration wanted them all."""


def divide(
    samples: Samples, inputs: Sequence[Value], *, calibration: int, validation: int
) -> Division:
    """Keep back runs for verification, spread evenly over the set, where there are enough.

    calibration, validation: runs wanted of each. With fewer than both together a quarter is kept
    back; with fewer than `ENOUGH` the same samples serve both and the division says so.
    """
    total = len(samples.batches(inputs))
    if total >= calibration + validation:
        held = validation
    elif total >= ENOUGH:
        held = min(validation, max(1, total // 4))
    else:
        mine = samples.take(spread(total, calibration), inputs)
        return Division(mine, samples.take(spread(total, validation), inputs), shared=True)
    kept_back = spread(total, held) + (total // held) // 2 if held else np.arange(0)
    rest = np.setdiff1d(np.arange(total), kept_back)
    chosen = rest[spread(len(rest), calibration)]
    return Division(samples.take(chosen, inputs), samples.take(kept_back, inputs), shared=False)
