"""What it costs to hand a tensor from device to device: bytes, and what the border itself needs.

Decides the changes of form that a border makes necessary. Both sides of a TFLite border read the
same integers in the same order: only bytes move. A compiler that reads ONNX keeps the tensor in the
order of the ONNX file and quantizes by itself, so its border has a TRANSPOSE where the TFLite side
stores the value in another order, and a QUANTIZE between the two scales, both on the CPU.
"""

from __future__ import annotations

from splitter.graph import Graph, Value
from splitter.latency import operator_ms, transfer_ms
from splitter.ops.registry import lite_dtype
from splitter.rules.schema import Target
from splitter.tflite.types import LiteGraph, Operator, Tensor

BYTES = {"float32": 1, "int32": 4}
"""Bytes of an element at the border: activations are int8, indices int32, masks one byte."""


def boundary_bytes(graph: Graph, name: str) -> int:
    """Bytes of a value when it passes between parts."""
    value = graph.values[name]
    return value.elements * BYTES.get(lite_dtype(value.dtype), 1)


def passage_ms(graph: Graph, name: str, target: Target) -> float:
    """Milliseconds to hand a value over once, with the changes of form that this takes.

    Inputs of the model are given in the order of the ONNX file, and what no unit reads is given
    back as it is: these change no form.
    """
    moved = transfer_ms(boundary_bytes(graph, name), target)
    if target.dialect != "onnx" or name in graph.inputs or not graph.consumers[name]:
        return moved
    return moved + sum(_on_cpu(graph.values[name], code, target) for code in _changes(graph, name))


def _changes(graph: Graph, name: str) -> tuple[str, ...]:
    value = graph.values[name]
    ordered = value.axes in ((), tuple(range(len(value.axes))))
    quantized = lite_dtype(value.dtype) == "float32"
    return (*(() if ordered else ("TRANSPOSE",)), *(("QUANTIZE",) if quantized else ()))


def _on_cpu(value: Value, code: str, target: Target) -> float:
    """The operator alone on the whole value."""
    tensors = {name: Tensor(name, value.shape, "int8") for name in ("here", "there")}
    op = Operator(code, ("here",), ("there",))
    return operator_ms(LiteGraph(("here",), ("there",), tensors, (op,)), op, "cpu", target)
