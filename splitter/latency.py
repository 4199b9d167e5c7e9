"""Estimated time of an operator on a device, of a transfer, of calling an NPU segment.

Decides the form of the estimate; every number comes from the target's rule file, where its source
and confidence stand. NPU: roofline, the longest of computing (channels padded to the NPU's step),
element-wise work and DRAM traffic, plus a cost for each job (the form of NXP's own model, arXiv
2509.14388: the sum of max(DMA, compute) and a cost for each DMA job). Kernels that an NPU runs at a
rate of their own have one in the rule file (npu_classes): a matrix product of two activations is no
convolution to an NPU that keeps weights still. CPU: nanoseconds a MAC or an element, by class of
kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from splitter.plan import Device
from splitter.rules.schema import CpuFigures, NpuFigures, Target
from splitter.tflite.facts import macs, tensor_bytes
from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.tflite.view import View

FREE = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
"""Operators that only rename bytes."""

KERNELS: Mapping[str, str] = {
    "CONV_2D": "convolution",
    "TRANSPOSE_CONV": "convolution",
    "DEPTHWISE_CONV_2D": "depthwise",
    **dict.fromkeys(("FULLY_CONNECTED", "BATCH_MATMUL"), "matrix"),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), "softmax"),
    **dict.fromkeys(
        (
            *("LOGISTIC", "TANH", "GELU", "EXP", "LOG", "SQRT", "RSQRT", "SIN", "COS", "POW"),
            *("HARD_SWISH", "ELU", "DIV"),
        ),
        "lookup",
    ),
    **dict.fromkeys(
        (
            *("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL"),
            *("REDUCE_ANY", "ARG_MAX", "ARG_MIN", "CUMSUM", "L2_NORMALIZATION"),
        ),
        "reduce",
    ),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), "pool"),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), "resize"),
    **dict.fromkeys(
        (
            *("CONCATENATION", "SLICE", "SPLIT", "SPLIT_V", "PAD", "PADV2", "MIRROR_PAD", "PACK"),
            *("UNPACK", "TILE", "BROADCAST_TO", "STRIDED_SLICE"),
        ),
        "copy",
    ),
    **dict.fromkeys(("TRANSPOSE", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "REVERSE_V2"), "transpose"),
    **dict.fromkeys(("GATHER", "GATHER_ND", "SCATTER_ND", "ONE_HOT"), "gather"),
    "TOPK_V2": "sort",
}
"""Class of the CPU kernel of an operator; "elementwise" for those not named."""

NPU_KERNELS: Mapping[str, str] = {**KERNELS, "BATCH_MATMUL": "product", "PRELU": "prelu"}
"""Class of an operator on the NPU: "product" multiplies activations, "matrix" has constants; PRELU
is several operators to Vela."""

MATRIX_CLASSES = ("convolution", "depthwise", "matrix", "product")
"""Their work is counted in multiply-accumulates, that of others in elements."""

PIECES = ("SLICE", "STRIDED_SLICE", "GATHER")
"""Operators that read a part of their first input."""

_BY_INPUT = ("reduce", "sort")


def operator_ms(graph: LiteGraph, op: Operator, device: Device, target: Target) -> float:
    """Milliseconds of one operator whose tensors have their final types (see support.as_int8)."""
    if op.code in FREE:
        return 0.0
    if device == "cpu":
        return _cpu_ms(graph, op, target.latency.cpu)
    if target.latency.npu is None:
        raise ValueError(f"{target.name} has no NPU")
    return npu_work_ms(npu_work(graph, op, target.latency.npu), target)


def graph_ms(graph: LiteGraph, device: Device, target: Target) -> float:
    """Milliseconds of all operators of a graph on one device."""
    return sum(operator_ms(graph, op, device, target) for op in graph.operators)


def transfer_ms(size: int, target: Target) -> float:
    """Milliseconds to hand one tensor of `size` bytes from device to device."""
    npu = target.latency.npu
    if npu is None:
        return 0.0
    return npu.transfer_fixed.value + size / (npu.transfer.value * 1e6)


def invoke_ms(target: Target) -> float:
    """Milliseconds to call one NPU segment, its work left out."""
    return target.latency.npu.invoke.value if target.latency.npu else 0.0


def padded_macs(graph: LiteGraph, op: Operator, step: int) -> int:
    """Multiply-accumulates with input and output channels padded to multiples of `step`."""
    exact = macs(graph, op)
    if not exact:
        return 0
    view = View(graph, op)
    if op.code == "DEPTHWISE_CONV_2D":
        return exact // view.out_shape[-1] * _padded(view.out_shape[-1], step)
    columns = view.out_shape[-1]
    depth = view.shape[-1]
    if op.code == "BATCH_MATMUL" and view.op.options.get("adj_x", False):
        depth = view.shape[-2]
    elif view.weights is not None:
        depth = view.weights.shape[-1]
    return exact // (columns * depth) * _padded(columns, step) * _padded(depth, step)


@dataclass(frozen=True, slots=True)
class NpuWork:
    """What an operator asks of the NPU: padded MACs, elements of operators without, DRAM bytes.

    kernel: its class in NPU_KERNELS, "elementwise" for those not named there.
    """

    macs: int
    depthwise: bool
    elements: int
    dram: int
    kernel: str = "elementwise"


def npu_work(graph: LiteGraph, op: Operator, npu: NpuFigures) -> NpuWork:
    view = View(graph, op)
    work = padded_macs(graph, op, int(npu.channel_step.value))
    return NpuWork(
        macs=work,
        depthwise=op.code == "DEPTHWISE_CONV_2D",
        elements=0 if work else _npu_elements(view),
        dram=_dram_bytes(graph, op, int(npu.local_memory.value)),
        kernel=NPU_KERNELS.get(op.code, "elementwise"),
    )


def _npu_elements(view: View) -> int:
    """The larger of input and output, of a picked piece the piece."""
    made = prod(view.out_shape)
    return made if view.op.code in PIECES else max(prod(view.shape), made)


def npu_work_ms(work: NpuWork, target: Target) -> float:
    """Milliseconds of an operator on the NPU. Raises ValueError for a target without one."""
    npu = target.latency.npu
    if npu is None:
        raise ValueError(f"{target.name} has no NPU")
    return npu.operator.value + max(
        (work.macs or work.elements) * npu_ns(work, target) * 1e-6,
        work.dram / (npu.memory.value * 1e6),
    )


def npu_ns(work: NpuWork, target: Target) -> float:
    """Nanoseconds of a padded MAC, or of an element where there are none."""
    npu = target.latency.npu
    if npu is None:
        raise ValueError(f"{target.name} has no NPU")
    own = target.latency.npu_classes.get(work.kernel)
    if own is not None and bool(work.macs) == (work.kernel in MATRIX_CLASSES):
        return own.value
    if not work.macs:
        return 1 / npu.elements.value
    efficiency = npu.depthwise_efficiency if work.depthwise else npu.efficiency
    return 1 / (npu.peak.value * efficiency.value)


def _dram_bytes(graph: LiteGraph, op: Operator, local: int) -> int:
    """Bytes that cannot stay on the chip: constants, and activations larger than its memory.

    An operator that picks a piece of its input reads no more than it writes.
    """
    if op.code in PIECES:
        source, piece = (graph.tensors[name] for name in (op.inputs[0], op.outputs[0]))
        return 2 * tensor_bytes(piece) if tensor_bytes(source) > local else 0
    names = dict.fromkeys(name for name in (*op.inputs, *op.outputs) if name)
    tensors = [graph.tensors[name] for name in names]
    return sum(tensor_bytes(t) for t in tensors if t.data is not None or tensor_bytes(t) > local)


def _cpu_ms(graph: LiteGraph, op: Operator, cpu: CpuFigures) -> float:
    kernel, work = cpu_work(graph, op)
    return cpu.operator.value + cpu.classes[kernel].value * 1e-6 * work


def cpu_work(graph: LiteGraph, op: Operator) -> tuple[str, int]:
    """(class of its kernel, MACs for the matrix classes or elements for the others)."""
    kernel = KERNELS.get(op.code, "elementwise")
    return kernel, _cpu_work(View(graph, op), kernel)


def _cpu_work(view: View, kernel: str) -> int:
    if kernel in MATRIX_CLASSES:
        return macs(view.graph, view.op)
    if kernel in _BY_INPUT:
        return prod(view.shape)
    if kernel == "pool":
        height, width = view.kernel(0), view.kernel(1)
        if isinstance(height, int) and isinstance(width, int):
            return prod(view.out_shape) * height * width
    return sum(_elements(tensor) for tensor in view.outputs)


def _elements(tensor: Tensor) -> int:
    return prod(tensor.shape)


def _padded(value: int, step: int) -> int:
    return -(-value // step) * step
