"""Which unit computes a value, where operators only hand it on.

A slice, a transpose or a gather of a value keeps its integers and so its width; the width is
decided where the value is computed.
"""

from __future__ import annotations

from splitter.quantize.kernels import KERNELS, data_inputs
from splitter.tflite.types import LiteGraph, Operator


def makers(graph: LiteGraph) -> dict[str, str]:
    """The unit that computes each value, "" for what is moved out of an input of the graph."""
    unit: dict[str, str] = {}
    for op in graph.operators:
        sources = moved(graph, op)
        for name in op.outputs:
            unit[name] = unit.get(sources[0], "") if len(sources) == 1 else op.unit
    return unit


def moved(graph: LiteGraph, op: Operator) -> list[str]:
    """The values that an operator of data movement hands on; none for other operators."""
    if op.code not in KERNELS or not KERNELS[op.code].same:
        return []
    data = (op.inputs[i] for i in data_inputs(op.code, len(op.inputs)))
    return [name for name in data if name and graph.tensors[name].data is None]


EXTREMES = frozenset(("REDUCE_MAX", "REDUCE_MIN"))
SHIFTED = frozenset(("ADD", "MUL", "SUB"))


def extremes_asked(graph: LiteGraph, name: str) -> frozenset[str]:
    """Which of EXTREMES are taken of a value, moved perhaps, or shifted and scaled by constants."""
    asked: set[str] = set()
    waiting, known = [name], {name}
    while waiting:
        for op in graph.consumers[waiting.pop()]:
            if op.code in EXTREMES:
                asked.add(op.code)
            variable = [one for one in op.inputs if one and graph.tensors[one].data is None]
            if moved(graph, op) or (op.code in SHIFTED and len(variable) == 1):
                waiting += [one for one in op.outputs if one not in known]
                known.update(op.outputs)
    return frozenset(asked)
