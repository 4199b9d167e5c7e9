"""One TFLite operator with its tensors at hand: which inputs are data, weights, bias, parameters.

Decides which input slot of an operator code means what; `facts` reads named facts through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor

UNKNOWN = "unknown"

_ALL = -1
_DATA_SLOTS: Mapping[str, tuple[int, ...]] = {
    "TRANSPOSE_CONV": (2,),
    "SPLIT": (1,),
    "PADV2": (0, 2),
    "GATHER": (0, 1),
    "GATHER_ND": (0, 1),
    "SCATTER_ND": (0, 1),
    **dict.fromkeys(
        (
            *("ADD", "SUB", "MUL", "DIV", "POW", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM"),
            *("SQUARED_DIFFERENCE", "PRELU", "BATCH_MATMUL", "CONCATENATION", "PACK", "ADD_N"),
            *("SELECT", "SELECT_V2", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS"),
            *("LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR"),
        ),
        (_ALL,),
    ),
}
"""Which inputs are data. The others are parameters: weights, biases, axes, shapes, sizes."""

WEIGHT_SLOT: Mapping[str, int] = {
    "CONV_2D": 1,
    "DEPTHWISE_CONV_2D": 1,
    "FULLY_CONNECTED": 1,
    "TRANSPOSE_CONV": 1,
}
BIAS_SLOT: Mapping[str, int] = {
    "CONV_2D": 2,
    "DEPTHWISE_CONV_2D": 2,
    "FULLY_CONNECTED": 2,
    "TRANSPOSE_CONV": 3,
}


@dataclass(frozen=True, slots=True)
class View:
    """One operator with its tensors at hand."""

    graph: LiteGraph
    op: Operator

    def input(self, index: int) -> Tensor | None:
        if index >= len(self.op.inputs) or not self.op.inputs[index]:
            return None
        return self.graph.tensors[self.op.inputs[index]]

    @property
    def data(self) -> tuple[Tensor, ...]:
        slots = _DATA_SLOTS.get(self.op.code, (0,))
        wanted = range(len(self.op.inputs)) if slots == (_ALL,) else slots
        return tuple(tensor for i in wanted if (tensor := self.input(i)) is not None)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(self.graph.tensors[name] for name in self.op.outputs if name)

    @property
    def activations(self) -> tuple[Tensor, ...]:
        return (*self.data, *self.outputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first data input, () when there is none."""
        return self.data[0].shape if self.data else ()

    @property
    def out_shape(self) -> tuple[int, ...]:
        return self.outputs[0].shape if self.outputs else ()

    @property
    def weights(self) -> Tensor | None:
        return self.input(WEIGHT_SLOT.get(self.op.code, len(self.op.inputs)))

    @property
    def bias(self) -> Tensor | None:
        return self.input(BIAS_SLOT.get(self.op.code, len(self.op.inputs)))

    def constant(self, index: int) -> tuple[int, ...] | None:
        """Values of a constant integer parameter, None when it is absent or not constant."""
        tensor = self.input(index)
        if tensor is None or tensor.data is None:
            return None
        return tuple(int(value) for value in np.ravel(tensor.data))

    def dim(self, index: int) -> int | str:
        """A dimension of the first data input, counted from the end when negative."""
        shape = self.shape
        return shape[index] if -len(shape) <= index < len(shape) else UNKNOWN

    def kernel(self, axis: int) -> int | str:
        """Kernel size along `axis` (0 height, 1 width)."""
        if self.weights is None:
            name = ("filter_height", "filter_width")[axis]
            return int(self.op.options.get(name, 0)) or UNKNOWN
        return self.weights.shape[1 + axis] if len(self.weights.shape) == 4 else UNKNOWN
