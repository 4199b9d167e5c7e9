"""Writes FULLY_CONNECTED and convolutions: weights of 8 bits by channel, bias in 32 or 64 bits.

Beside 16-bit values the weights of some units take two pieces (`fine`). Decides nothing about
scales of values, which `parameters` chose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from splitter.quantize.fine import write_in_two
from splitter.quantize.kernels import KERNELS
from splitter.quantize.weights import channel_axis, quantize_bias, quantize_weights
from splitter.tflite.types import Operator, Tensor

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer


def write_weighted(writer: Writer, index: int, op: Operator) -> None:
    """FULLY_CONNECTED and convolutions: per-channel weights, bias in 32 or 64 bits."""
    data_at, weight_at, bias_at = KERNELS[op.code].places
    source = op.inputs[data_at]
    if source in writer.parameters.tensors:
        x = writer.input(index, data_at, op, source)
    else:
        x = writer.constant(op, data_at, None)
    q = writer.tensors[x].quantization
    assert q is not None
    weight = writer.graph.tensors[op.inputs[weight_at]]
    has_bias = len(op.inputs) > bias_at and op.inputs[bias_at]
    bias = writer.graph.tensors[op.inputs[bias_at]] if has_bias else None
    if weight.data is None or (bias is not None and bias.data is None):
        writer.problems.append(f"{op.code} of {op.unit} with weights that are not constant")
        return
    dtype = "int32" if writer.bits_of(op) == 8 else "int64"
    data = None if bias is None else bias.data
    weights = _weights(writer, op, weight, bias, q.scale[0], dtype)
    inputs = [
        name if i in (data_at, weight_at, bias_at) else writer.variable(name)
        for i, name in enumerate(op.inputs)
    ]
    inputs += [""] * (bias_at + 1 - len(inputs))
    inputs[data_at], inputs[weight_at] = x, writer.add(weights)
    if bias is not None and data is not None:
        made = quantize_bias(bias.name, data, weights, input_scale=q.scale[0], dtype=dtype)
        inputs[bias_at] = writer.add(made)
    in_two = op.unit in writer.fine and writer.bits_of(op) == 16
    if in_two and write_in_two(writer, op, inputs, weight, weights):
        return
    outputs = tuple(writer.variable(name) for name in op.outputs)
    writer.operators.append(replace(op, inputs=tuple(inputs), outputs=outputs))


def _weights(
    writer: Writer, op: Operator, weight: Tensor, bias: Tensor | None, scale: float, dtype: str
) -> Tensor:
    """The integer weights, made once for all steps of a recurrence."""
    target = writer.parameters.tensors.get(op.outputs[0])
    result = target.scale[0] if target is not None else 0.0
    key = (weight.name, bias.name if bias else "", scale, result, dtype, channel_axis(op.code))
    if key not in writer.weighed:
        writer.weighed[key] = quantize_weights(
            weight,
            channel_axis(op.code),
            input_scale=scale,
            bias=bias.data if bias else None,
            bias_dtype=dtype,
            output_scale=result,
            lattice=writer.parameters.lattice,
        )
    return writer.weighed[key]
