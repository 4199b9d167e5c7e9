"""Which widths the values of an integer graph have: counted from the graph, not from options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splitter.tflite.types import LiteGraph, Operator

WIDTHS: Mapping[str, int] = {
    "int8": 8,
    "uint8": 8,
    "bool": 8,
    "int16": 16,
    "float16": 16,
    "int32": 32,
    "float32": 32,
    "int64": 64,
}


@dataclass(frozen=True)
class Precision:
    """bits: by variable tensor. average: of a quantized activation value, weighted by elements.

    counts: variable tensors by data type. wide: codes of the operators that touch int16 values.
    """

    bits: Mapping[str, int]
    average: float
    counts: Mapping[str, int]
    wide: tuple[str, ...] = ()


def precision(graph: LiteGraph) -> Precision:
    """Widths of all variable tensors; indices and masks count in `bits`, not in the average."""
    variable = [tensor for tensor in graph.tensors.values() if tensor.data is None]
    counts: dict[str, int] = {}
    for tensor in variable:
        counts[tensor.dtype] = counts.get(tensor.dtype, 0) + 1
    values = [t for t in variable if t.quantization is not None and t.dtype in ("int8", "int16")]
    elements = sum(t.elements for t in values)
    total = sum(t.elements * WIDTHS[t.dtype] for t in values)
    return Precision(
        {t.name: WIDTHS[t.dtype] for t in variable},
        total / elements if elements else 0.0,
        dict(sorted(counts.items())),
        tuple(sorted({op.code for op in graph.operators if _is_wide(graph, op)})),
    )


def _is_wide(graph: LiteGraph, op: Operator) -> bool:
    names = (name for name in (*op.inputs, *op.outputs) if name)
    return any(graph.tensors[name].dtype == "int16" for name in names)
