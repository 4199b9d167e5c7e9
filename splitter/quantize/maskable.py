"""Which tensors may hold numbers that mean "left out": by what reads them.

Before a Softmax, an exponential or a maximum it does not matter how negative a number is. Decides
by operators alone; `ranges` looks at the values, `masks` gives them a place.
"""

from __future__ import annotations

from splitter.tflite.types import LiteGraph

ENDS = frozenset(("SOFTMAX", "LOG_SOFTMAX", "EXP", "LOGISTIC", "ARG_MAX", "TOPK_V2", "REDUCE_MAX"))
MOVES = frozenset(
    (
        "BROADCAST_TO", "CONCATENATION", "EXPAND_DIMS", "GATHER", "GATHER_ND", "MAXIMUM", "MINIMUM",
        "PACK", "PAD", "PADV2", "RESHAPE", "REVERSE_V2", "SELECT_V2", "SLICE", "SPLIT", "SPLIT_V",
        "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
    )
)  # fmt: skip
SUMS = frozenset(("ADD", "MUL"))


def maskable(graph: LiteGraph) -> frozenset[str]:
    """Variable float tensors of which a very negative value says "left out" to every reader."""
    found: set[str] = set()
    for op in reversed(graph.operators):
        for name in op.outputs:
            if _only_masks(graph, name, found):
                found.add(name)
    found.update(name for name in graph.inputs if _only_masks(graph, name, found))
    return frozenset(found)


def _only_masks(graph: LiteGraph, name: str, found: set[str]) -> bool:
    if name in graph.outputs or graph.tensors[name].dtype != "float32":
        return False
    readers = graph.consumers[name]
    return bool(readers) and all(
        op.code in ENDS
        or (op.code in MOVES | SUMS and op.outputs[0] in found)
        or (op.code == "SUB" and op.inputs[0] == name and op.outputs[0] in found)
        for op in readers
    )
