"""How much an operator does: multiply-accumulates and bytes moved. Decides nothing."""

from __future__ import annotations

from math import prod

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.tflite.view import View


def matmul_depth(view: View) -> int:
    return view.shape[-2] if view.op.options.get("adj_x", False) else view.shape[-1]


def macs(graph: LiteGraph, op: Operator) -> int:
    """Multiply-accumulates of convolutions and matrix products, 0 for everything else."""
    view = View(graph, op)
    out = prod(view.out_shape)
    if op.code == "BATCH_MATMUL":
        return out * matmul_depth(view)
    weights = view.weights
    if weights is None:
        return 0
    if op.code == "TRANSPOSE_CONV":
        return prod(view.shape) * prod(weights.shape[:3])
    if op.code == "DEPTHWISE_CONV_2D":
        return out * prod(weights.shape[1:3])
    return out * prod(weights.shape[1:])


def moved_bytes(graph: LiteGraph, op: Operator) -> int:
    """Bytes of all inputs (constants too, each tensor once) and outputs."""
    names = dict.fromkeys(name for name in (*op.inputs, *op.outputs) if name)
    return sum(tensor_bytes(graph.tensors[name]) for name in names)


def tensor_bytes(tensor: Tensor) -> int:
    return tensor.elements * np.dtype(tensor.dtype).itemsize
