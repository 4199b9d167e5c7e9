"""Inverses by which something is multiplied, as a quotient is written: what of them matters.

Where the numerator is 0 it does not matter by what it is divided, and exporters add a tiny number
to the divisor so that it may be 0 too: the inverse of that would take the whole range. Decides
which values of an inverse count in calibration.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from splitter.tflite.types import Array, LiteGraph

NOTHING = 1 / 512
"""Numerators under this part of the largest are 0 in 8 bits."""


def quotients(graph: LiteGraph) -> Iterator[tuple[str, str]]:
    """(inverse, numerator) of every product with an inverse that nothing else reads."""
    for op in graph.operators:
        if op.code != "MUL":
            continue
        for inverse, numerator in (op.inputs, op.inputs[::-1]):
            maker = graph.producers.get(inverse)
            known = graph.tensors[numerator]
            if maker is None or maker.code != "DIV" or known.data is not None:
                continue
            constant = graph.tensors[maker.inputs[0]].data is not None
            alone = len(graph.consumers[inverse]) == 1 and inverse not in graph.outputs
            if constant and alone and known.shape == graph.tensors[op.outputs[0]].shape:
                yield inverse, numerator


def that_count(inverse: Array, numerator: Array) -> Array:
    """The inverses of which some numerator is not 0, all of them where none is."""
    size = np.abs(numerator)
    shape = (1,) * (numerator.ndim - inverse.ndim) + inverse.shape
    axes = tuple(axis for axis, length in enumerate(shape) if length == 1)
    rows = size.max(axis=axes, keepdims=True, initial=0.0).reshape(inverse.shape)
    kept = inverse[rows > NOTHING * float(size.max(initial=0.0))]
    return np.asarray(kept if kept.size else inverse)
