"""What a part does, as terms of its estimated time: the same sums as `latency`'s, figure by figure.

Decides which figure each operator's time rests on; the tests hold the sum against `latency`.
"""

from __future__ import annotations

from splitter.latency import FREE, MATRIX_CLASSES, NpuWork, cpu_work, npu_work
from splitter.plan import Device
from splitter.refit.fit import Point
from splitter.rules.schema import Target
from splitter.tflite.facts import tensor_bytes
from splitter.tflite.types import LiteGraph


def part_point(label: str, graph: LiteGraph, device: Device, target: Target, ms: float) -> Point:
    """The point of a part that took `ms` milliseconds on a device, its transfers left out."""
    if device == "npu":
        npu = target.latency.npu
        if npu is None:
            raise ValueError(f"{target.name} has no NPU")
        works = [npu_work(graph, op, npu) for op in graph.operators if op.code not in FREE]
        return npu_point(label, works, target, ms)
    rows = [cpu_work(graph, op) for op in graph.operators if op.code not in FREE]
    return Point(
        label,
        ms,
        {"cpu.operator": len(rows)},
        keys=tuple(f"cpu.classes.{kernel}" for kernel, _ in rows),
        work=tuple(float(work) for _, work in rows),
    )


def npu_point(
    label: str, works: list[NpuWork], target: Target, ms: float, *, calls: int = 1
) -> Point:
    """The point of operators on the NPU, in `calls` invocations."""
    invoked = {"npu.invoke": calls} if calls else {}
    return Point(
        label,
        ms,
        {"npu.operator": len(works), **invoked},
        keys=tuple(npu_key(work, target) for work in works),
        work=tuple(float(work.macs or work.elements) for work in works),
        traffic=tuple(float(work.dram) for work in works),
    )


def npu_key(work: NpuWork, target: Target) -> str:
    """The figure that an operator's own time on the NPU rests on (see latency.npu_ns)."""
    own = work.kernel in target.latency.npu_classes
    if own and bool(work.macs) == (work.kernel in MATRIX_CLASSES):
        return f"npu_classes.{work.kernel}"
    if not work.macs:
        return "npu.elements"
    return "npu.depthwise_efficiency" if work.depthwise else "npu.efficiency"


def transfer_point(label: str, graph: LiteGraph, ms: float) -> Point:
    """The point of handing a part its inputs and taking its outputs."""
    sizes = [tensor_bytes(graph.tensors[name]) for name in (*graph.inputs, *graph.outputs)]
    return Point(
        label,
        ms,
        {"npu.transfer_fixed": len(sizes)},
        keys=("npu.transfer",) * len(sizes),
        work=tuple(float(size) for size in sizes),
    )
