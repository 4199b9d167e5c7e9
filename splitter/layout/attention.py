"""Softmax and the product that reads it become one unit, `Attend`.

Softmax alone must write probabilities, and TFLite's int8 SOFTMAX writes them in steps of 1/256,
which rounds a row that attends to hundreds of tokens to nothing. Seen together, the division by
the row's sum can come after the product. Decides which pairs are fused; how is `ops.attention`'s.
"""

from __future__ import annotations

from dataclasses import replace

from splitter.graph import Graph, Unit


def fuse_attention(graph: Graph) -> Graph:
    """Softmax over the last axis whose one reader is MatMul(probabilities, values)."""
    fused: dict[str, Unit] = {}
    for unit in graph.units:
        if unit.op == "MatMul" and (softmax := _softmax_before(graph, unit)):
            fused[unit.name] = replace(
                unit,
                op="Attend",
                inputs=(softmax.inputs[0], unit.inputs[1]),
                attrs={"adj_y": bool(unit.attrs.get("adj_y"))},
                nodes=(*softmax.nodes, *unit.nodes),
            )
            fused[softmax.name] = softmax
    gone = {name for name, unit in fused.items() if unit.op == "Softmax"}
    units = tuple(fused.get(unit.name, unit) for unit in graph.units if unit.name not in gone)
    hidden = {name for unit in graph.units if unit.name in gone for name in unit.outputs}
    values = {name: value for name, value in graph.values.items() if name not in hidden}
    return replace(graph, units=units, values=values)


def _softmax_before(graph: Graph, unit: Unit) -> Unit | None:
    softmax = graph.producers.get(unit.inputs[0])
    if softmax is None or softmax.op != "Softmax" or unit.attrs.get("adj_x"):
        return None
    weights, values = graph.shape(unit.inputs[0]), graph.shape(unit.inputs[1])
    same_batch = len(values) >= 2 and values[:-2] == weights[:-2]
    private = len(graph.consumers[unit.inputs[0]]) == 1 and unit.inputs[0] not in graph.outputs
    last = int(softmax.attrs.get("axis", -1)) % len(weights) == len(weights) - 1
    return softmax if same_batch and private and last else None
