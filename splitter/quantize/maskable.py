"""Which tensors may hold numbers that mean "left out": by what reads them.

Before a Softmax, an exponential or a maximum it does not matter how negative a number is. Decides
by operators alone; `ranges` looks at the values, `masks` gives them a place.
"""

from __future__ import annotations

from splitter.tflite.types import LiteGraph, Operator

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
    return _found(graph, ENDS)


def relative(graph: LiteGraph) -> frozenset[str]:
    """Those of `maskable` whose readers only see how far below the largest of its row a value is:
    what lies far below all others says "left out" too."""
    return _found(graph, frozenset(("SOFTMAX", "LOG_SOFTMAX")))


def _found(graph: LiteGraph, ends: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for op in reversed(graph.operators):
        for name in op.outputs:
            if _only_masks(graph, name, found, ends):
                found.add(name)
    found.update(name for name in graph.inputs if _only_masks(graph, name, found, ends))
    return frozenset(found)


def _only_masks(graph: LiteGraph, name: str, found: set[str], ends: frozenset[str]) -> bool:
    if name in graph.outputs or graph.tensors[name].dtype != "float32":
        return False
    readers = graph.consumers[name]
    return bool(readers) and all(
        op.code in ends
        or (op.code in MOVES | SUMS and op.outputs[0] in found)
        or (op.code == "SUB" and op.inputs[0] == name and op.outputs[0] in found)
        or _below_top(graph, op, found)
        for op in readers
    )


def _below_top(graph: LiteGraph, op: Operator, found: set[str]) -> bool:
    """An operator of exp(x - largest of a row of x), a Softmax written out: the maximum that goes
    nowhere else, the difference, the exponential. A row may be masked as a whole."""
    if op.code == "REDUCE_MAX":
        readers = graph.consumers[op.outputs[0]]
        return bool(readers) and all(_is_difference(graph, reader) for reader in readers)
    if op.code == "EXP":
        maker = graph.producers.get(op.inputs[0])
        return maker is not None and _is_difference(graph, maker)
    return _is_difference(graph, op) and op.outputs[0] in found


def _is_difference(graph: LiteGraph, op: Operator) -> bool:
    """x - largest of a row of x."""
    top = graph.producers.get(op.inputs[1]) if op.code == "SUB" else None
    return top is not None and top.code == "REDUCE_MAX" and top.inputs[0] == op.inputs[0]
