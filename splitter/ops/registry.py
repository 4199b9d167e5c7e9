"""How an operator is described: its lowerings, its work, how a transpose passes through it.

An op module builds `Op` values out of small functions; `splitter.ops.OPS` is the one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from splitter.graph import Graph, Unit
from splitter.tflite.types import LiteGraph, Operator, Tensor, Whole

Array = NDArray[Any]

Commute = Literal["none", "elementwise", "axis", "channels_last"]
"""How a transpose of the data passes through the operator:
none           it does not
elementwise    same shape in and out, numpy broadcasting of the inputs: permute every input
axis           has one or more axis attributes or constant axis inputs that can be renumbered
channels_last  a spatial operator: in our graph its data is channels-last always
"""


@dataclass(frozen=True, slots=True)
class Lowering:
    """One way to write a unit in TFLite operators.

    emit:    writes the operators of the unit into the emitter.
    applies: None when the lowering can do this unit, else the reason in words.
    error:   stated bound on the absolute error of the rewrite in float, 0 when exact.
    """

    name: str
    emit: Callable[[Emitter, Unit], None]
    applies: Callable[[Graph, Unit], str | None] = lambda graph, unit: None
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Op:
    """All that is known of one canonical operator. Lowerings in order of preference."""

    name: str
    lowerings: tuple[Lowering, ...]
    commute: Commute = "none"


NARROW = ("int8", "uint8", "int16", "uint16")
"""Integer types that TFLite int32 holds with room to spare."""

DEEPEST = 4832
"""Channels that DEPTHWISE_CONV_2D may write: its float kernel keeps so many sums and never ends on
more (kAccBufferMaxSize, tensorflow/lite/kernels/internal/optimized/depthwiseconv_float.h)."""

WRAPPING = frozenset(("ADD", "SUB", "MUL", "NEG", "ABS", "POW"))
"""Operators whose int32 result may lie outside a narrower type."""


class Emitter:
    """Collects the TFLite operators of units. Float and int32 only; `quantize` comes later.

    Names: values of the graph keep their name; what a lowering adds is named UNIT/hint[_n].
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors: dict[str, Tensor] = {}
        self.operators: list[Operator] = []
        self._unit = ""
        self._counter: dict[str, int] = {}
        self._step: tuple[str, int] | None = None
        self._whole: Whole | None = None

    def emit_unit(self, unit: Unit, lowering: Lowering) -> None:
        self._unit = unit.name
        lowering.emit(self, unit)

    def start(self, unit: str, tensors: Mapping[str, Tensor]) -> None:
        """Write for a unit on tensors that are there already."""
        self._unit = unit
        self.tensors.update(tensors)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step of a recurrence: what is written inside is `alike` what the same place wrote in
        the other steps of this name."""
        self._step = (f"{self._unit}/{name}", 0)
        yield
        self._step = None

    @contextmanager
    def whole(self, code: str, *, reads: Sequence[str] = (), **options: Any) -> Iterator[None]:
        """What is written inside is one thing that `quantize` writes in its own way. reads: what
        its integer form reads, "" for what is absent."""
        self._whole = Whole(code, options, tuple(reads))
        yield
        self._whole = None

    def _alike(self) -> str:
        if self._step is None:
            return ""
        name, place = self._step
        self._step = (name, place + 1)
        return f"{name}/{place}"

    def value(self, name: str) -> str:
        """The tensor of a value of the graph; constants become constant tensors."""
        if name not in self.tensors:
            value = self.graph.values[name]
            data = self.graph.constants.get(name)
            dtype = lite_dtype(value.dtype)
            self.tensors[name] = Tensor(
                name, value.shape, dtype, None if data is None else narrow(data, dtype)
            )
        return name

    def constant_data(self, name: str) -> Array | None:
        return self.graph.constants.get(name)

    def shape(self, tensor: str) -> tuple[int, ...]:
        return self.tensors[tensor].shape

    def dtype(self, tensor: str) -> str:
        return self.tensors[tensor].dtype

    def const(self, data: Any, hint: str, *, dtype: str = "float32") -> str:
        array = np.ascontiguousarray(np.asarray(data, dtype=dtype))
        name = self._fresh(hint)
        self.tensors[name] = Tensor(name, np.shape(data), dtype, array.reshape(np.shape(data)))
        return name

    def op(
        self,
        code: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        *,
        dtype: str = "float32",
        out: str = "",
        hint: str = "",
        **options: Any,
    ) -> str:
        """Add an operator with one output; returns the output's name.

        `out` names a value of the graph (its last operator), else a fresh name is made.
        """
        if code == "DEPTHWISE_CONV_2D" and shape[-1] > DEEPEST:
            return self._by_depth(inputs, tuple(shape), out=out, hint=hint, **options)
        return self.multi(code, inputs, [(out, tuple(shape), dtype)], hint=hint, **options)[0]

    def _by_depth(
        self, inputs: Sequence[str], shape: tuple[int, ...], *, out: str, hint: str, **options: Any
    ) -> str:
        """DEPTHWISE_CONV_2D of slices of the channels, which the kernel takes, side by side."""
        x, *constants = inputs
        kernel, bias = (np.asarray(self.tensors[name].data) for name in constants)
        size, times = self.shape(x), int(options["depth_multiplier"])
        count = -(-shape[-1] // DEEPEST)
        ends = [size[-1] * i // count for i in range(count + 1)]
        parts = []
        for first, end in pairwise(ends):
            piece = self.slice(x, (*(0,) * (len(size) - 1), first), (*size[:-1], end - first))
            own = slice(first * times, end * times)
            weights = self.const(kernel[..., own], "kernel")
            sums = [piece, weights, self.const(bias[own], "bias")]
            wide = (*shape[:-1], (end - first) * times)
            parts.append(self.op("DEPTHWISE_CONV_2D", sums, wide, hint=hint, **options))
        return self.concat(parts, len(shape) - 1, out=out)

    def finish(self, code: str, unit: Unit, inputs: Sequence[str], **options: Any) -> str:
        """Add the unit's last operator: it writes the unit's first output.

        Results of arithmetic wrap around as the ONNX type does, where int32 is wider than it.
        """
        value = self.graph.values[unit.outputs[0]]
        wraps = code in WRAPPING and value.dtype in NARROW
        y = self.op(
            code,
            inputs,
            value.shape,
            dtype=lite_dtype(value.dtype),
            out="" if wraps else value.name,
            **options,
        )
        return self.wrapped(y, value.dtype, out=value.name) if wraps else y

    def wrapped(self, tensor: str, dtype: str, *, out: str = "") -> str:
        """An int32 tensor reduced to what the narrower `dtype` holds, still as int32."""
        low = self.op("CAST", [tensor], self.shape(tensor), dtype=dtype, hint="narrow")
        return self.op("CAST", [low], self.shape(tensor), dtype="int32", out=out, hint="wrapped")

    def bind(self, tensor: str, unit: Unit) -> None:
        """The unit's first output is this tensor: the last operator writes it under its name, or
        RESHAPE does where the shape differs or the tensor is not the last one written."""
        out = unit.outputs[0]
        shape = self.graph.shape(out)
        last = self.operators[-1] if self.operators else None
        made = last is not None and last.unit == self._unit and last.outputs == (tensor,)
        if last is None or not made or self.shape(tensor) != shape:
            self.reshape(tensor, shape, out=out)
            return
        self.operators[-1] = replace(last, outputs=(out,))
        self.tensors[out] = replace(self.tensors.pop(tensor), name=out)

    def reshape(self, tensor: str, shape: Sequence[int], *, out: str = "") -> str:
        """RESHAPE unless the shape is already right (and no output name is asked for)."""
        shape = tuple(int(d) for d in shape)
        if self.shape(tensor) == shape and not out:
            return tensor
        target = self.const(shape, "shape", dtype="int32")
        return self.op(
            "RESHAPE",
            [tensor, target],
            shape,
            dtype=self.dtype(tensor),
            out=out,
            hint="reshape",
            new_shape=shape,
        )

    def transpose(self, tensor: str, perm: Sequence[int], *, out: str = "") -> str:
        """TRANSPOSE unless it changes nothing (and no output name is asked for)."""
        perm = tuple(perm)
        if perm == tuple(range(len(perm))) and not out:
            return tensor
        shape = tuple(self.shape(tensor)[axis] for axis in perm)
        order = self.const(perm, "perm", dtype="int32")
        return self.op(
            "TRANSPOSE",
            [tensor, order],
            shape,
            dtype=self.dtype(tensor),
            out=out,
            hint="transpose",
        )

    def slice(
        self, tensor: str, begin: Sequence[int], size: Sequence[int], *, out: str = ""
    ) -> str:
        """SLICE of `size` elements an axis from `begin`."""
        starts = self.const(tuple(begin), "begin", dtype="int32")
        sizes = self.const(tuple(size), "size", dtype="int32")
        return self.op(
            "SLICE",
            [tensor, starts, sizes],
            size,
            dtype=self.dtype(tensor),
            out=out,
            hint="slice",
        )

    def concat(self, tensors: Sequence[str], axis: int, *, out: str = "") -> str:
        """CONCATENATION along `axis` (not negative)."""
        shape = list(self.shape(tensors[0]))
        shape[axis] = sum(self.shape(tensor)[axis] for tensor in tensors)
        return self.op(
            "CONCATENATION",
            list(tensors),
            shape,
            dtype=self.dtype(tensors[0]),
            out=out,
            hint="concat",
            axis=axis,
            fused_activation_function="NONE",
        )

    def multi(
        self,
        code: str,
        inputs: Sequence[str],
        outputs: Sequence[tuple[str, tuple[int, ...], str]],
        *,
        hint: str = "",
        **options: Any,
    ) -> tuple[str, ...]:
        """Add an operator with several outputs, each (name or "", shape, dtype)."""
        names = []
        for name, shape, dtype in outputs:
            chosen = name or self._fresh(hint or code.lower())
            size = tuple(int(d) for d in shape)
            self.tensors[chosen] = Tensor(chosen, size, dtype, alike=self._alike())
            names.append(chosen)
        made = Operator(code, tuple(inputs), tuple(names), options, self._unit, self._whole)
        self.operators.append(made)
        return tuple(names)

    def _fresh(self, hint: str) -> str:
        stem = f"{self._unit}/{hint}"
        index = self._counter.get(stem, 0)
        self._counter[stem] = index + 1
        return stem if index == 0 else f"{stem}_{index}"


_LITE_DTYPES = {
    **dict.fromkeys(("float64", "float16", "bfloat16"), "float32"),
    **dict.fromkeys(("int64", "int16", "int8", "uint8", "uint16", "uint32", "uint64"), "int32"),
}


def lite_dtype(dtype: str) -> str:
    """The TFLite type of a value that is not quantized: float32, int32 or bool.

    int32 is the type TFLite's integer kernels have in common; int8 and int16 without parameters
    would be read as quantized.
    """
    return _LITE_DTYPES.get(dtype, dtype)


def narrow(data: Array, dtype: str) -> Array:
    """Cast to the TFLite type; int64 sentinels (slice ends) saturate."""
    if np.issubdtype(data.dtype, np.integer) and dtype == "int32":
        info = np.iinfo(np.int32)
        return np.clip(data, info.min, info.max).astype(np.int32).reshape(data.shape)
    return np.ascontiguousarray(data, dtype=dtype).reshape(data.shape)


def fragment(graph: Graph, unit: Unit, lowering: Lowering) -> LiteGraph:
    """The unit alone as a LiteGraph: what rules and the latency model look at."""
    emitter = Emitter(graph)
    emitter.emit_unit(unit, lowering)
    variable = [
        name
        for op in emitter.operators
        for name in op.inputs
        if name and emitter.tensors[name].data is None
    ]
    made = {name for op in emitter.operators for name in op.outputs}
    inputs = tuple(dict.fromkeys(name for name in variable if name not in made))
    outputs = tuple(name for name in unit.outputs if name)
    return LiteGraph(inputs, outputs, emitter.tensors, tuple(emitter.operators))
