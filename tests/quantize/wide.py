"""What tests of 16 bits share: the integer form with every value in 16 bits, and its outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from splitter.quantize import calibrate, quantize
from splitter.quantize.affine import quantize_values
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph
from splitter.tflite.write import write
from tests.ops.lowered import Lowered, as_lite, real


def wide(made: Lowered, *, fine: Collection[str] = ()) -> LiteGraph:
    """The integer form with every value in 16 bits. fine: units of weights in two pieces."""
    ranges = calibrate(made.graph, [as_lite(made.graph, s) for s in made.samples], threads=1)
    return quantize(made.graph, ranges, npu=(), int16=list(ranges), fine=fine)


def outputs(graph: LiteGraph, sample: Mapping[str, Array]) -> Array:
    """The real values of y."""
    given = {}
    for name, values in sample.items():
        q = graph.tensors[name].quantization
        assert q is not None
        given[name] = quantize_values(values.astype(np.float64), q, 16).astype(np.int16)
    return real(graph, "y", Interpreter(write(graph)).run(given)["y"])
