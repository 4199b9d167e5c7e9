"""Sums of a large and several small addends: the small ones are added first.

A box coordinate is a reference plus a correction a layer; each intermediate sum would be rounded
to the step of the large reference, so three corrections cost three roundings. Added up among
themselves first, at their own fine step, they cost one. The same sum in real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from splitter.quantize.ranges import KEPT, Range, Ranges
from splitter.tflite.types import LiteGraph, Operator, Tensor

SMALL = 4.0
"""An addend counts as small when the other one's range is at least this much wider: two bits."""


def reassociate(graph: LiteGraph, ranges: Ranges) -> tuple[LiteGraph, dict[str, Range]]:
    """The graph with such sums in another order, and the ranges with those of the new tensors.

    Only for tensors of which every value was kept in calibration, so the new ranges are exact.
    """
    known = dict(ranges)
    tensors = dict(graph.tensors)
    operators: list[Operator] = []
    split: dict[str, tuple[str, str]] = {}
    for op in graph.operators:
        parts = _parts(op, tensors, known)
        if parts is None:
            operators.append(op)
            continue
        large, small = parts
        if large in split:
            base, inner = split[large]
            total = f"{op.outputs[0]}/corrections"
            tensors[total] = Tensor(total, tensors[small].shape, "float32")
            known[total] = _sum(known[inner], known[small])
            operators.append(replace(op, inputs=(inner, small), outputs=(total,)))
            op = replace(op, inputs=(base, total))
            large, small = base, total
        split[op.outputs[0]] = (large, small)
        operators.append(op)
    return replace(graph, tensors=tensors, operators=tuple(operators)), known


def _parts(op: Operator, tensors: Mapping[str, Tensor], ranges: Ranges) -> tuple[str, str] | None:
    """(large, small) addends of a plain sum of two calibrated tensors of equal shape."""
    if op.code != "ADD" or op.options.get("fused_activation_function", "NONE") != "NONE":
        return None
    a, b = op.inputs
    if a not in ranges or b not in ranges or tensors[a].shape != tensors[b].shape:
        return None
    if tensors[a].elements > KEPT:
        return None
    wide, narrow = (a, b) if _width(ranges[a]) >= _width(ranges[b]) else (b, a)
    return (wide, narrow) if _width(ranges[wide]) >= SMALL * _width(ranges[narrow]) else None


def _width(entry: Range) -> float:
    return max(entry.high, 0.0) - min(entry.low, 0.0)


def _sum(a: Range, b: Range) -> Range:
    values = a.values + b.values
    return Range(float(values.min()), float(values.max()), values)
