"""Weights beside 16-bit values in two 8-bit pieces: the weights, and what rounding left of them.

TFLite has no kernels of 16-bit weights. Two of 8 bits, the second with a 254th of the scale, hold
15 bits: the operator is written twice and the results are added, for twice the work. Decides how;
`widen` says for which units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from splitter.quantize.affine import usable
from splitter.quantize.kernels import KERNELS
from splitter.quantize.weights import channel_axis, quantize_bias, quantize_weights
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization, Tensor

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer

STEPS = 254
"""What rounding leaves is at most half a step of the weights: 127 steps of a 254th."""

WHOLE = 1e-3
"""Steps of the weights that are none: what float32 makes of a scale."""

ROOM = 1 + 1 / 64
"""How much wider than the sum the first result may be, which is off by what the second adds."""


def rounded_weights(graph: LiteGraph, unit: str) -> LiteGraph:
    """The float graph with the weights of the unit's operators as 8 bits hold them."""
    tensors, operators = dict(graph.tensors), []
    for op in graph.operators:
        if op.unit == unit and is_weighted(graph, op):
            place = KERNELS[op.code].places[1]
            weight = graph.tensors[op.inputs[place]]
            made = quantize_weights(
                weight, channel_axis(op.code), input_scale=1.0, bias=None, bias_dtype="int64"
            )
            name = f"{weight.name}/8 bits"
            tensors[name] = replace(weight, name=name, data=held(made).astype(np.float32))
            inputs = (*op.inputs[:place], name, *op.inputs[place + 1 :])
            op = replace(op, inputs=inputs)
        operators.append(op)
    return replace(graph, tensors=tensors, operators=tuple(operators))


def is_weighted(graph: LiteGraph, op: Operator) -> bool:
    """Whether the operator has constant weights."""
    kernel = KERNELS.get(op.code)
    return kernel is not None and kernel.weighted and graph.is_constant(op.inputs[kernel.places[1]])


def held(weights: Tensor) -> Array:
    """What integer weights stand for."""
    assert weights.data is not None and weights.quantization is not None
    return np.asarray(weights.data.astype(np.float64) * _scales(weights))


def _scales(weights: Tensor) -> Array:
    """The scale of each channel, to be multiplied with the weights."""
    assert weights.quantization is not None
    axis, rank = weights.quantization.axis, len(weights.shape)
    scales = np.array(weights.quantization.scale, np.float64)
    return scales.reshape([-1 if a == axis else 1 for a in range(rank)])


def write_in_two(
    writer: Writer, op: Operator, inputs: Sequence[str], weight: Tensor, weights: Tensor
) -> bool:
    """Write the operator in two pieces; False where 8 bits hold its weights as they are.

    op: of the float graph. inputs: of the integer one. weight, weights: in float, in 8 bits.
    """
    assert weight.data is not None and weights.quantization is not None
    left = weight.data.astype(np.float64) - held(weights)
    if not (np.abs(left) > WHOLE * _scales(weights)).any():
        return False
    rest = _rest(weight, weights, left)
    x, y = writer.tensors[inputs[KERNELS[op.code].places[0]]], op.outputs[0]
    target = writer.tensors[writer.variable(y)]
    assert target.quantization is not None
    roomy = Quantization((usable(target.quantization.scale[0] * ROOM),), (0,))
    first = writer.add(replace(target, name=f"{y}/coarse", quantization=roomy))
    q = Quantization((_step(left, x, target, weights.quantization.axis),), (0,))
    second = writer.add(Tensor(f"{y}/fine", target.shape, "int16", None, q))
    plain = {**op.options, "fused_activation_function": "NONE"}
    for name, given in ((first, list(inputs)), (second, _of_rest(writer, op, inputs, rest))):
        writer.operators.append(Operator(op.code, tuple(given), (name,), plain, op.unit))
    fused = {"fused_activation_function": op.options.get("fused_activation_function", "NONE")}
    writer.operators.append(Operator("ADD", (first, second), (y,), fused, op.unit))
    return True


def _rest(weight: Tensor, weights: Tensor, left: Array) -> Tensor:
    q = weights.quantization
    assert q is not None
    fine = replace(q, scale=tuple(usable(one / STEPS) for one in q.scale))
    rest = replace(weights, name=f"{weight.name}/fine", quantization=fine)
    values = np.clip(np.rint(left / _scales(rest)), -127, 127)
    return replace(rest, data=values.astype(np.int8))


def _step(left: Array, x: Tensor, target: Tensor, axis: int) -> float:
    """The scale of the second result: of the most that it can be, at most the sum's own."""
    assert x.quantization is not None and target.quantization is not None
    other = tuple(a for a in range(left.ndim) if a != axis)
    most = float(np.abs(left).sum(axis=other).max()) * x.quantization.scale[0] * 32767
    return usable(min(most / 32767, target.quantization.scale[0]))


def _of_rest(writer: Writer, op: Operator, inputs: Sequence[str], rest: Tensor) -> list[str]:
    """The inputs with the second piece of the weights, and a bias of zeros."""
    data_at, weight_at, bias_at = KERNELS[op.code].places
    given = list(inputs)
    given[weight_at] = writer.add(rest)
    if given[bias_at]:
        q = writer.tensors[inputs[data_at]].quantization
        assert q is not None
        zeros = np.zeros(writer.tensors[given[bias_at]].shape)
        scale = q.scale[0]
        bias = quantize_bias(f"{rest.name}/bias", zeros, rest, input_scale=scale, dtype="int64")
        given[bias_at] = writer.add(bias)
    return given
