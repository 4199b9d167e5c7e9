"""Which tensors take 16 bits: what `--int16` means on a graph.

Decides that "auto" is every value made on the CPU and every model input that only it reads, and
that a name is a tensor, a unit or an ONNX node's unit (then all that it writes). Values of NPU segments stay at 8 bits: the converters of the
targets here reject int16. Which kernels exist in 16 bits is `quantize`'s matter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from splitter.diagnostics import SplitterError, nearest
from splitter.tflite.types import LiteGraph

AUTO = "auto"


def wide_tensors(graph: LiteGraph, asked: Sequence[str], *, npu: Collection[str]) -> frozenset[str]:
    """Names of the float tensors that become int16. npu: names of the units there.

    Raises SplitterError for names that match nothing, and for values on the NPU, all at once.
    """
    made: dict[str, list[str]] = {}
    for op in graph.operators:
        made.setdefault(op.unit, []).extend(op.outputs)
    on_npu = {name for unit, names in made.items() if unit in npu for name in names}
    on_npu |= {name for name in graph.inputs if any(o.unit in npu for o in graph.consumers[name])}
    every = (*graph.inputs, *graph.producers)
    known = {*made, *every}
    chosen: set[str] = set()
    problems = []
    for name in asked:
        names = [n for n in every if n not in on_npu] if name == AUTO else [name]
        names = made.get(name, names)
        if name != AUTO and name not in known:
            problems.append(f"{name} is no value and no unit; {nearest(name, known)}")
        elif on_npu.intersection(names):
            problems.append(f"{name} is on the NPU, which takes INT8 only; --cpu {name} moves it")
        chosen.update(names)
    if problems:
        raise SplitterError("; ".join(problems), where="--int16")
    return frozenset(name for name in chosen if graph.tensors[name].dtype == "float32")
