"""Collects the tensors of one operator and gives them their parameters.

Decides types, constants and quantization of a specimen from the wanted facts; shapes and options
are the builders'. Constants are zeros that take no memory, however large their shape, but where
the sum of weights is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from splitter.tflite.types import Array, LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.view import BIAS_SLOT, WEIGHT_SLOT

Shape = tuple[int, ...]
Want = Mapping[str, Any]

SCALE, WEIGHT_SCALE = 0.05, 0.01

FIXED: Mapping[str, Quantization] = {
    "LOGISTIC": Quantization((1 / 256,), (-128,)),
    "SOFTMAX": Quantization((1 / 256,), (-128,)),
    "TANH": Quantization((1 / 128,), (0,)),
    "LOG_SOFTMAX": Quantization((16 / 256,), (127,)),
    "L2_NORMALIZATION": Quantization((1 / 128,), (0,)),
}
"""What the int8 kernels write whatever the file says (TFLite 8-bit quantization specification)."""

FIXED16: Mapping[str, Quantization] = dict.fromkeys(
    ("LOGISTIC", "SOFTMAX", "TANH"), Quantization((1 / 32768,), (0,))
)


class Bench:
    """Builders ask it for tensors; "x" and "z" and the output "y" are the activations."""

    def __init__(self, code: str, want: Want) -> None:
        self.code = code
        self.want = want
        unscaled = "int8" if want.get("parameters", True) else "int32"
        self.dtype = str(want.get("dtypes", unscaled))
        self.tensors: dict[str, Tensor] = {}

    def get(self, fact: str, default: Any) -> Any:
        return self.want.get(fact, default)

    def number(self, fact: str, default: int) -> int:
        return int(self.want.get(fact, default))

    def flag(self, fact: str, default: bool) -> bool:
        return bool(self.want.get(fact, default))

    @property
    def lead(self) -> int:
        """Length of the first of four axes."""
        return self.number("leading", self.number("batch", 1))

    def data(self, name: str, shape: Shape, *, constant: bool = False, dtype: str = "") -> str:
        """A data input of the wanted type, constant where asked for."""
        return self._add(name, shape, dtype or self.dtype, constant)

    def weights(self, name: str, shape: Shape, kind: str, dtype: str) -> str:
        """Weights or bias ("kind"), as wanted by weights_* and bias_*; "" for no bias."""
        dtype = str(self.get(f"{kind}_dtype", dtype))
        if dtype == "none":
            return ""
        if kind == "weights" and "weight_sum" in self.want:
            self.tensors[name] = Tensor(name, shape, dtype, self._summed(shape, dtype))
            return name
        return self._add(name, shape, dtype, self.flag(f"{kind}_constant", True))

    def _summed(self, shape: Shape, dtype: str) -> Array:
        """Weights of one output channel that add up to the wanted sum."""
        total = self.number("weight_sum", 0)
        data = np.full(shape, 127, dtype)
        flat = data.reshape(-1)
        flat[-1] = 0
        rest = total - 127 * (flat.size - 1)
        flat[-1] = max(min(rest, 127), 0)
        return data

    def parameter(self, name: str, values: Any, *, constant: bool = True) -> str:
        """An int32 parameter: axes, sizes, paddings."""
        array = np.asarray(values, dtype=np.int32)
        self.tensors[name] = Tensor(name, array.shape, "int32", array if constant else None)
        return name

    def finish(
        self, inputs: tuple[str, ...], shape: Shape, *, out_dtype: str = "", **options: Any
    ) -> LiteGraph:
        """The graph of one operator that writes "y"."""
        return self.finish_many(inputs, [shape], out_dtype=out_dtype, **options)

    def finish_many(
        self, inputs: tuple[str, ...], shapes: list[Shape], *, out_dtype: str = "", **options: Any
    ) -> LiteGraph:
        """As `finish`, with outputs "y", "y1", ..."""
        other = "int16" if self.dtype != "int16" else "int8"
        made = out_dtype or (self.dtype if self.flag("same_dtype", True) else other)
        names = tuple(f"y{i or ''}" for i in range(len(shapes)))
        for name, shape in zip(names, shapes, strict=True):
            self._add(name, shape, made, False)
        op = Operator(self.code, inputs, names, options)
        variable = tuple(i for i in inputs if i and self.tensors[i].data is None)
        graph = LiteGraph(variable, names, self.tensors, (op,))
        return self._quantized(self._static(graph), op)

    def _add(self, name: str, shape: Shape, dtype: str, constant: bool) -> str:
        data = np.broadcast_to(np.zeros((), dtype), shape) if constant else None
        self.tensors[name] = Tensor(name, shape, dtype, data)
        return name

    def _static(self, graph: LiteGraph) -> LiteGraph:
        if self.flag("static", True):
            return graph
        x = graph.tensors["x"]
        return replace(graph, tensors={**graph.tensors, "x": replace(x, shape=(-1, *x.shape[1:]))})

    def _quantized(self, graph: LiteGraph, op: Operator) -> LiteGraph:
        if self.dtype.startswith("float"):
            return graph
        slots = {op.inputs[slot]: kind for kind, slot in _slots(op) if slot < len(op.inputs)}
        tensors = {
            name: replace(tensor, quantization=self._parameters(tensor, slots.get(name, ""), op))
            for name, tensor in graph.tensors.items()
        }
        return replace(graph, tensors=tensors)

    def _parameters(self, tensor: Tensor, kind: str, op: Operator) -> Quantization | None:
        zero = self.number("input_zero_points", 0)
        if kind == "weights":
            return Quantization((WEIGHT_SCALE,), (0,))
        if kind == "bias":
            return Quantization((SCALE * WEIGHT_SCALE,), (0,))
        if tensor.dtype in ("bool", "int64"):
            return None
        if tensor.dtype == "int32":
            data = tensor.name[:1] in ("x", "y", "z") and self.flag("parameters", True)
            return Quantization((1.0,), (0,)) if data else None
        if tensor.name in op.outputs:
            return self._output(op, zero)
        if not self.flag("per_tensor", True) and tensor.name == "x":
            channels = tensor.shape[-1]
            scales = tuple(SCALE / (1 + i % 2) for i in range(channels))
            return Quantization(scales, (zero,) * channels, axis=len(tensor.shape) - 1)
        return Quantization((SCALE,), (zero,))

    def _output(self, op: Operator, zero: int) -> Quantization:
        fixed = (FIXED16 if self.dtype == "int16" else FIXED).get(op.code)
        if fixed is not None and self.dtype == "uint8":
            return replace(fixed, zero_point=tuple(z + 128 for z in fixed.zero_point))
        if fixed is not None:
            return fixed
        return Quantization((SCALE if self.flag("scales_equal", True) else SCALE / 2,), (zero,))


def _slots(op: Operator) -> tuple[tuple[str, int], ...]:
    far = len(op.inputs)
    return ("weights", WEIGHT_SLOT.get(op.code, far)), ("bias", BIAS_SLOT.get(op.code, far))


def divisor(number: int, most: int) -> int:
    """The largest divisor that is not over `most`."""
    return next(d for d in range(min(most, number), 0, -1) if number % d == 0)
