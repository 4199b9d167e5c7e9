"""Whether a LiteGraph holds together: what must be true before it can be written or run.

Decides nothing of the content. A contradiction (a name without a tensor, data of another shape or
type than its tensor, a value read before it is there, an operand that a kernel takes for granted)
is a bug of the stage that made the graph, so it is a ValueError, not a `SplitterError`.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitter.tflite.types import LiteGraph, Tensor

_STATE: Mapping[str, tuple[int, ...]] = {
    "LSTM": (18, 19),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19),
    "RNN": (4,),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
    "SVDF": (4,),
}
"""Operands that are state, by the kernels' own input numbers."""

_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D")
"""Without a bias the kernel refuses (CONV_2D) or ends the process (DEPTHWISE_CONV_2D), measured on
ai-edge-litert 2.3.0."""


def check(graph: LiteGraph) -> None:
    """ValueError for the first contradiction: see the module."""
    for tensor in graph.tensors.values():
        data = tensor.data
        if data is not None and (data.shape != tensor.shape or data.dtype.name != tensor.dtype):
            raise ValueError(
                f"constant {tensor.name} is {tensor.dtype}{list(tensor.shape)}, "
                f"its data {data.dtype.name}{list(data.shape)}"
            )
        _check_quantization(tensor)
    used = [name for op in graph.operators for name in (*op.inputs, *op.outputs) if name]
    for name in dict.fromkeys([*graph.inputs, *graph.outputs, *used]):
        if name not in graph.tensors:
            raise ValueError(f"no tensor {name} in the graph")
    _check_order(graph)


def _check_order(graph: LiteGraph) -> None:
    """Nothing is read before it is there, and what a kernel takes for granted is."""
    there = {name for name, tensor in graph.tensors.items() if tensor.data is not None}
    there.update(graph.inputs, state(graph))
    for op in graph.operators:
        if op.code in _BIASED and len([name for name in op.inputs if name]) < 3:
            raise ValueError(f"{op.code} writing {op.outputs[0]} has no bias; its kernel needs one")
        for name in op.inputs:
            if name and name not in there:
                raise ValueError(f"{op.code} reads {name} before any operator writes it")
        there.update(op.outputs)
    for name in graph.outputs:
        if name not in there:
            raise ValueError(f"no operator writes the output {name}")


def _check_quantization(tensor: Tensor) -> None:
    q = tensor.quantization
    if q is None:
        return
    if len(q.scale) != len(q.zero_point):
        raise ValueError(f"{tensor.name}: {len(q.scale)} scales, {len(q.zero_point)} zero points")
    if q.per_channel and (
        not 0 <= q.axis < len(tensor.shape) or tensor.shape[q.axis] != len(q.scale)
    ):
        raise ValueError(
            f"{tensor.name}: {len(q.scale)} scales on axis {q.axis} of {list(tensor.shape)}"
        )


def state(graph: LiteGraph) -> frozenset[str]:
    """Tensors that an operator keeps from run to run: its state operands that nothing writes."""
    given = set(graph.inputs) | set(graph.producers)
    state = {
        op.inputs[place]
        for op in graph.operators
        for place in _STATE.get(op.code, ())
        if place < len(op.inputs)
    }
    return frozenset(name for name in state - given - {""} if graph.tensors[name].data is None)
