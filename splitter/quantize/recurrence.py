"""Tensors of a recurrence share one range over all its steps.

The steps of an unrolled cell see the same kind of values in another order: what one sample says at
one step, another says at another. Ranges of single steps would fit the calibration samples and
saturate on the next recording.
"""

from __future__ import annotations

import numpy as np

from splitter.quantize.ranges import Range, Ranges, subsample
from splitter.tflite.types import LiteGraph


def share_steps(graph: LiteGraph, ranges: Ranges) -> dict[str, Range]:
    """The ranges, joined over tensors that are `alike`."""
    groups: dict[str, list[str]] = {}
    for name in ranges:
        tensor = graph.tensors.get(name)
        if tensor is not None and tensor.alike:
            groups.setdefault(tensor.alike, []).append(name)
    shared = dict(ranges)
    for names in groups.values():
        entries = [ranges[name] for name in names]
        whole = Range(
            min(entry.low for entry in entries),
            max(entry.high for entry in entries),
            subsample(np.concatenate([entry.values for entry in entries])),
            any(entry.masked for entry in entries),
            min(entry.top for entry in entries),
            min(entry.least for entry in entries),
        )
        shared.update(dict.fromkeys(names, whole))
    return shared
