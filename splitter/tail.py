"""What follows the leading NPU part of a plan, as a model of its own.

With other widths outside the NPU that part stays as it is, and it is most of the work: so the rest
is tried alone, on the integers that the part hands on. Decides where that border is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.carve import cut
from splitter.glue.board.bundle import Tensor as Carrier
from splitter.glue.board.numbers import dequantize, quantize
from splitter.plan import Plan
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph, Tensor
from splitter.tflite.write import write

Arrays = Mapping[str, Array]


def halves(graph: LiteGraph, plan: Plan) -> tuple[LiteGraph | None, LiteGraph]:
    """(the leading NPU part, all that follows); None and the whole without such a part."""
    first = plan.segments[0]
    units = set(first.units) if first.device == "npu" else set()
    groups: tuple[list[int], list[int]] = ([], [])
    for index, op in enumerate(graph.operators):
        groups[op.unit not in units].append(index)
    if not groups[0] or not groups[1]:
        return (None, graph) if not groups[0] else (graph, LiteGraph((), (), {}, ()))
    lead, tail = cut(graph, groups)
    return lead, tail


def same_border(one: LiteGraph, other: LiteGraph) -> bool:
    """Whether two tails take the same integers: types, scales and zero points of their inputs."""
    if set(one.inputs) != set(other.inputs):
        return False
    return all(
        (one.tensors[n].dtype, one.tensors[n].quantization)
        == (other.tensors[n].dtype, other.tensors[n].quantization)
        for n in one.inputs
    )


class Lead:
    """Everything before an integer tail: quantizes the inputs and runs the NPU part, if any."""

    def __init__(self, lead: LiteGraph | None, tail: LiteGraph) -> None:
        self._tail = tail
        self._graphs = [graph for graph in (lead, tail) if graph is not None]
        self._lead = Interpreter(write(lead)) if lead is not None else None

    def run(self, sample: Arrays) -> dict[str, Array]:
        """A sample by input name -> what the tail takes, raw integers by tensor name."""
        made: dict[str, Array] = {}
        for graph in self._graphs:
            for name in graph.inputs:
                if name in sample:
                    made[name] = quantize(sample[name], carrier(graph.tensors[name]))
        if self._lead is not None:
            made |= self._lead.run({name: made[name] for name in self._lead.inputs})
        return {name: made[name] for name in self._tail.inputs}


class IntegerTail:
    """An integer tail on raw border values; outputs in real numbers."""

    def __init__(self, tail: LiteGraph) -> None:
        self._tail = tail
        self._runtime = Interpreter(write(tail))

    @property
    def graph(self) -> LiteGraph:
        return self._tail

    def run(self, border: Arrays) -> dict[str, Array]:
        made = self._runtime.run({name: border[name] for name in self._tail.inputs})
        return real(self._tail, made)


@dataclass(frozen=True)
class Trial:
    """A tail in other widths, to be run beside on the first `runs` runs; it takes what the bundle's
    own takes. None when there is nothing to try; `why` says so where that is worth knowing."""

    tail: IntegerTail | None = None
    runs: int = 0
    why: str = ""


NO_TRIAL = Trial()


def run_float(tail: LiteGraph, borders: Sequence[Arrays]) -> list[dict[str, Array]]:
    """A float tail on border values in real numbers, indices in the ONNX types."""
    runtime = Interpreter(write(tail))
    types = {name: tail.tensors[name].dtype for name in tail.inputs}
    return [
        runtime.run({name: border[name].astype(dtype) for name, dtype in types.items()})
        for border in borders
    ]


def real(graph: LiteGraph, values: Arrays) -> dict[str, Array]:
    """Raw values of a graph's tensors in real numbers; indices and masks as they are."""
    return {
        name: dequantize(array, carrier(graph.tensors[name]), "float32")
        if graph.tensors[name].quantization is not None
        else array
        for name, array in values.items()
    }


def carrier(tensor: Tensor) -> Carrier:
    """A tensor as the glue on the board sees it: the same arithmetic."""
    q = tensor.quantization
    scale = None if q is None else float(np.float32(q.scale[0]))
    zero = 0 if q is None else int(q.zero_point[0])
    return Carrier(tensor.name, tensor.shape, tensor.dtype, scale, zero)
