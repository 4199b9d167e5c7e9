"""Float TFLite graph and ranges -> integer TFLite graph, the whole graph once.

ranges      what the values are (calibration)
authored    what the author of an already quantized model decided
maskable    which of them may be masks, masks: where those go
clipping    how much of a range is covered
kernels     what TFLite's integer kernels ask for
parameters  scale and zero point of every tensor, and where a scale must change
recurrence  one range for all steps of a recurrent cell
reassociate sums of large and small addends in an order that rounds less
saturation  which part of a range the readers of a tensor can tell apart
functions   several operators that are one function of one tensor become one
squares     functions of the sum of two squares, in 16 bits
picks       several operators that are one step with an integer form of its own
fine        weights in two pieces
weights, weighted, lookup, convert   the integer graph written out
"""

from __future__ import annotations

from collections.abc import Collection

from splitter.quantize.authored import Authored, adopt, authored_ranges
from splitter.quantize.clipping import Clip, least_squares
from splitter.quantize.convert import convert
from splitter.quantize.functions import fold_functions
from splitter.quantize.masks import place_masks
from splitter.quantize.parameters import Demands, choose
from splitter.quantize.picks import fold_wholes, unfold_wholes
from splitter.quantize.ranges import Range, Ranges, calibrate
from splitter.quantize.reassociate import reassociate
from splitter.quantize.recurrence import share_steps
from splitter.quantize.saturation import useful
from splitter.tflite.types import LiteGraph

__all__ = ["Demands", "Range", "Ranges", "calibrate", "quantize", "rearranged"]


def rearranged(graph: LiteGraph, ranges: Ranges) -> LiteGraph:
    """The float graph whose values the integers stand for: the same function in another order."""
    folded = fold_wholes(graph)
    return unfold_wholes(_prepare(folded, ranges)[1], graph)


def _prepare(graph: LiteGraph, ranges: Ranges) -> tuple[Authored, LiteGraph, dict[str, Range]]:
    authored = adopt(graph)
    graph, ranges = authored.graph, authored_ranges(authored, ranges)
    graph, ranges = place_masks(graph, share_steps(graph, ranges))
    graph, ranges = reassociate(graph, ranges)
    return authored, graph, ranges


def quantize(
    graph: LiteGraph,
    ranges: Ranges,
    *,
    npu: Collection[str],
    demands: Demands = Demands(),
    int16: Collection[str] = (),
    fine: Collection[str] = (),
    clip: Clip = least_squares,
) -> LiteGraph:
    """The integer form of a float graph; every operator keeps its unit.

    npu: units on the NPU. demands: what its compiler asks for. int16: tensors of 16 bits.
    fine: units whose weights take two 8-bit pieces where they compute in 16 bits.
    Raises SplitterError that lists every operator without an integer form.
    """
    authored, graph, ranges = _prepare(fold_wholes(graph), ranges)
    wide = authored.wide.union(int16).difference(authored.parameters.keys() - authored.wide)
    graph = fold_functions(graph, npu=npu, ranges=ranges, int16=wide)
    known = {n: r for n, r in ranges.items() if n in graph.tensors}
    graph, ranges = useful(graph, known, int16=wide)
    parameters = choose(
        graph,
        ranges,
        npu=npu,
        demands=demands,
        int16=wide,
        clip=clip,
        authored={n: q for n, q in authored.parameters.items() if n in ranges},
    )
    return convert(graph, parameters, npu=npu, ranges=known, fine=fine)
