"""TFLite graphs as plain data: tensors, operators, one subgraph. Knows no ONNX, no file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine parameters, real = scale * (q - zero_point).

    One scale and zero point for the tensor, or one for each index of `axis` (per-channel weights).
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        return len(self.scale) > 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """dtype is a numpy name (float32, int8, int16, int32, int64, bool, uint8); data: constants.

    open: data decides how long the first axis is; `shape` says the most.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: Array | None = None
    quantization: Quantization | None = None
    alike: str = ""
    open: bool = False

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Operators that together compute one thing, of which the integer form is another one: `code`
    names it, `options` say which, and `reads` are the tensors that the integer form reads, "" for
    what is absent. Those of one thing have one and the same `Whole`."""

    code: str
    options: Mapping[str, Any]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """`code` is the BuiltinOperator name ("CONV_2D"), or "CUSTOM:NAME".

    `options` holds the builtin options by their schema names in snake case (stride_h, padding,
    fused_activation_function, ...), enums as their schema names ("SAME", "RELU").
    An absent optional input is "". `unit` is the unit of the splitter's graph it came from.
    """

    code: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    whole: Whole | None = None


@dataclass(frozen=True)
class LiteGraph:
    """One subgraph, operators in execution order."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    operators: tuple[Operator, ...]

    @cached_property
    def producers(self) -> Mapping[str, Operator]:
        return {name: op for op in self.operators for name in op.outputs}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Operator, ...]]:
        table: dict[str, list[Operator]] = {name: [] for name in self.tensors}
        for op in self.operators:
            for name in dict.fromkeys(op.inputs):
                if name:
                    table[name].append(op)
        return {name: tuple(ops) for name, ops in table.items()}

    @property
    def open_ended(self) -> tuple[str, ...]:
        """Outputs with as many rows as the data decides."""
        return tuple(name for name in self.outputs if self.tensors[name].open)

    def is_constant(self, name: str) -> bool:
        return self.tensors[name].data is not None
