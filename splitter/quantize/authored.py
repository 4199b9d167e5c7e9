"""Scales and zero points that the author of an already quantized model chose.

In the float graph they stand as QUANTIZE and DEQUANTIZE around nothing. Here the pairs go, and the
tensor in front of each gets what the pair said. Where a tensor cannot have it (two pairs say
different things of it, or its kernel writes parameters of its own) a RESHAPE to the same shape
stays: `parameters` then finds that input and output of a same-scale operator differ, and changes
the scale there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from splitter.ops.quantized import CENTERED
from splitter.quantize.affine import LEAST
from splitter.quantize.kernels import KERNELS
from splitter.quantize.ranges import Range, Ranges
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor

AVERAGING = frozenset(("MEAN", "AVERAGE_POOL_2D", "RESIZE_BILINEAR"))
"""Operators that may have to keep the scale, and whose output is not some of their inputs."""


@dataclass(frozen=True)
class Authored:
    """graph: without the pairs. parameters: by tensor. wide: the tensors of 16 bits among them."""

    graph: LiteGraph
    parameters: Mapping[str, Quantization]
    wide: frozenset[str]


def adopt(graph: LiteGraph) -> Authored:
    """Take the author's parameters out of the operators."""
    integers = {
        op.outputs[0]: op.inputs[0]
        for op in graph.operators
        if op.code == "QUANTIZE" and graph.tensors[op.inputs[0]].dtype == "float32"
    }
    if not integers:
        return Authored(graph, {}, frozenset())
    taker = _Taker(graph, integers)
    for op in graph.operators:
        taker.operator(op)
    return taker.result()


class _Taker:
    """Walks in order; `names` says under which name an output of a pair lives on."""

    def __init__(self, graph: LiteGraph, integers: Mapping[str, str]) -> None:
        self.graph, self.integers = graph, integers
        self.names: dict[str, str] = {}
        self.operators: list[Operator] = []
        self.tensors = dict(graph.tensors)
        self.parameters: dict[str, Quantization] = {}
        self.wide: set[str] = set()

    def operator(self, op: Operator) -> None:
        if op.code == "QUANTIZE" and op.outputs[0] in self.integers:
            return
        if op.code == "DEQUANTIZE" and op.inputs[0] in self.integers:
            self._pair(op)
            return
        inputs = tuple(self.names.get(name, name) for name in op.inputs)
        self.operators.append(replace(op, inputs=inputs))

    def _pair(self, op: Operator) -> None:
        integers = self.graph.tensors[op.inputs[0]]
        chosen, out = integers.quantization, op.outputs[0]
        assert chosen is not None
        source = self.integers[integers.name]
        source = self.names.get(source, source)
        fits = self._free(source, chosen) or self.parameters.get(source) == chosen
        if fits and out not in self.graph.outputs:
            self.names[out] = out = source
        elif fits and source in self.graph.producers and source not in self.graph.outputs:
            self._rename(source, out)
        else:
            self.operators.append(self._copy(source, out, op.unit))
            if self._free(source, chosen):
                self._set(source, chosen, integers.dtype)
        self._set(out, chosen, integers.dtype)

    def _set(self, name: str, chosen: Quantization, dtype: str) -> None:
        """Parameters no kernel takes (a tensor that was 0 on all samples) are not the author's."""
        if not all(LEAST < scale < np.inf for scale in chosen.scale):
            return
        self.parameters[name] = chosen
        if dtype == "int16":
            self.wide.add(name)

    def _rename(self, old: str, new: str) -> None:
        """What was made as `old` is the model's output `new`."""
        self.names[old] = new
        self.operators = [
            replace(
                op,
                inputs=tuple(new if name == old else name for name in op.inputs),
                outputs=tuple(new if name == old else name for name in op.outputs),
            )
            for op in self.operators
        ]
        if old in self.parameters:
            self.parameters[new] = self.parameters.pop(old)

    def _free(self, name: str, chosen: Quantization) -> bool:
        """Whether nothing has decided the tensor's parameters yet."""
        maker = self.graph.producers.get(name)
        if name in self.parameters:
            return False
        if maker is None:
            return True
        kernel = KERNELS.get(maker.code)
        fixed = kernel is not None and (kernel.fixed8 is not None or kernel.fixed16 is not None)
        return not fixed and len(maker.outputs) == 1 and not self._would_saturate(maker, chosen)

    def _would_saturate(self, maker: Operator, chosen: Quantization) -> bool:
        """Whether the operator averages values that its output's parameters do not reach.

        Where input and output must be equal, the input would be cut off before the average, and
        not the average as the author meant. The scale then changes behind the operator.
        """
        if maker.code not in AVERAGING:
            return False
        known = self.parameters.get(maker.inputs[0])
        return known is None or not _covers(chosen, known)

    def _copy(self, source: str, out: str, unit: str) -> Operator:
        shape = self.graph.tensors[out].shape
        name = f"{out}/shape"
        self.tensors[name] = Tensor(name, (len(shape),), "int32", np.array(shape, np.int32))
        return Operator("RESHAPE", (source, name), (out,), {"new_shape": shape}, unit)

    def result(self) -> Authored:
        used = {n for op in self.operators for n in (*op.inputs, *op.outputs) if n}
        used |= {*self.graph.inputs, *self.graph.outputs}
        tensors = {name: tensor for name, tensor in self.tensors.items() if name in used}
        graph = replace(self.graph, tensors=tensors, operators=tuple(self.operators))
        known = {name: q for name, q in self.parameters.items() if name in used}
        return Authored(graph, known, frozenset(self.wide & used))


def _covers(wide: Quantization, narrow: Quantization) -> bool:
    """Whether all integers of 8 bits of the one have their value within the other's."""

    def ends(q: Quantization) -> tuple[float, float]:
        return (-128 - q.zero_point[0]) * q.scale[0], (127 - q.zero_point[0]) * q.scale[0]

    (low, high), (least, most) = ends(wide), ends(narrow)
    step = wide.scale[0] / 2
    return low - step <= least and most <= high + step


def authored_ranges(authored: Authored, ranges: Ranges) -> dict[str, Range]:
    """The ranges of the tensors that are left, those with parameters as far as these reach."""
    left = {name: entry for name, entry in ranges.items() if name in authored.graph.tensors}
    for name, q in authored.parameters.items():
        top = 2 ** (15 if name in authored.wide else 7)
        low, high = ((end - q.zero_point[0]) * q.scale[0] for end in (-top, top - 1))
        left[name] = replace(left[name], low=low, high=high)
    return left


def kept_scales(graph: LiteGraph, whole: LiteGraph) -> Iterator[str]:
    """One sentence for the report, where the model came quantized.

    graph: in float, with the author's pairs. whole: the integer graph made of it.
    """
    stated: dict[str, Quantization] = {}
    holders: dict[str, list[str]] = {}
    for op in graph.operators:
        chosen = graph.tensors[op.outputs[0]].quantization
        if op.code == "QUANTIZE" and chosen is not None:
            stated[op.outputs[0]] = chosen
            holders[op.outputs[0]] = [op.inputs[0]]
        elif op.code == "DEQUANTIZE" and op.inputs[0] in holders:
            holders[op.inputs[0]].append(op.outputs[0])
    if not stated:
        return
    lost = [
        names[-1]
        for integers, names in holders.items()
        if not any(_has(whole, name, stated[integers]) for name in names)
    ]
    steps = [
        q.scale[0]
        for op in whole.operators
        if op.outputs[0].endswith("/rescaled")
        and (q := whole.tensors[op.outputs[0]].quantization) is not None
    ]
    moved = sum(name.rpartition("/")[2].startswith(CENTERED) for name in stated)
    kept = len(stated) - len(lost) - moved
    text = (
        f"the model came quantized: {kept} of {len(stated)} values keep the "
        "scale and zero point of its author"
    )
    if moved:
        text += (
            f"; {moved} of 16 bits had a zero point, which TFLite's 16 bits do not, and take the "
            "scale that reaches as far around 0"
        )
    if lost:
        text += f", not {', '.join(lost[:5])}" + (" ..." if len(lost) > 5 else "")
    if steps:
        changes = "1 change" if len(steps) == 1 else f"{len(steps)} changes"
        text += (
            f"; {changes} of scale at operators that need equal ones, each off by at most half "
            f"a step ({max(steps) / 2:.3g} at most)"
        )
    yield text


def _has(whole: LiteGraph, name: str, chosen: Quantization) -> bool:
    tensor = whole.tensors.get(name)
    q = None if tensor is None else tensor.quantization
    return q is not None and (q.scale, q.zero_point) == (chosen.scale, chosen.zero_point)
