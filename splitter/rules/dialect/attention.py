"""Attention in an ONNX graph: the nodes that a tool with a fused attention operator takes as one.

Product of queries and keys, scale and mask, Softmax, product with the values, and the transposes
that sort the heads. Decides which nodes belong together; whether a target takes them is its rules'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from splitter.graph import Origin, OriginNode

_BETWEEN = ("Add", "Mul", "Div", "Where", "Reshape", "Clip", "Cast")
"""What may stand between a product and the Softmax, and after it."""

_HEADS = ("Transpose", "Mul", "Div")
"""What may stand before and after the products; Mul and Div by a constant."""

_FAR = 6
"""Nodes that a walk goes at most."""


def attention_groups(origin: Origin) -> Mapping[str, tuple[OriginNode, ...]]:
    """Node name -> all nodes of its attention, in order; nodes outside are not in it."""
    order = {node.name: index for index, node in enumerate(origin.nodes)}
    groups: dict[str, tuple[OriginNode, ...]] = {}
    for node in origin.nodes:
        if node.op != "Softmax":
            continue
        found = _around(origin, node)
        members = tuple(sorted(found, key=lambda one: order[one.name]))
        groups.update(dict.fromkeys((member.name for member in members), members))
    return groups


def _around(origin: Origin, softmax: OriginNode) -> list[OriginNode]:
    before = _up(origin, softmax.inputs[0])
    after = _down(origin, softmax.outputs[0])
    if not before or not after:
        return []
    first, last = before[-1], after[-1]
    sides = [*first.inputs[:2], *last.inputs[1:2]]
    heads = [node for name in sides for node in _heads(origin, name)]
    tail = origin.consumers.get(last.outputs[0], ())
    turned = [node for node in tail if node.op == "Transpose"] if len(tail) == 1 else []
    found = {node.name: node for node in (*heads, *before, softmax, *after, *turned)}
    return list(found.values())


def _up(origin: Origin, value: str) -> list[OriginNode]:
    """The nodes back to the product of two activations, that product last; none when there is
    no such product."""
    path: list[OriginNode] = []
    for _ in range(_FAR):
        node = origin.producers.get(value)
        if node is None:
            return []
        path.append(node)
        if node.op == "MatMul":
            return path if _variable(origin, node) else []
        if node.op not in _BETWEEN:
            return []
        value = _main_input(origin, node)
    return []


def _down(origin: Origin, value: str) -> list[OriginNode]:
    path: list[OriginNode] = []
    for _ in range(_FAR):
        readers = origin.consumers.get(value, ())
        if len(readers) != 1:
            return []
        node = readers[0]
        path.append(node)
        if node.op == "MatMul":
            return path if node.inputs[0] == value and _variable(origin, node) else []
        if node.op not in _BETWEEN:
            return []
        value = node.outputs[0]
    return []


def _main_input(origin: Origin, node: OriginNode) -> str:
    """The input that leads to a product: the largest that is computed."""
    computed = [name for name in node.inputs if name in origin.producers]
    return max(computed, key=lambda name: origin.values[name].elements, default="")


def _variable(origin: Origin, node: OriginNode) -> bool:
    return not any(name in origin.constants for name in node.inputs[:2])


def _heads(origin: Origin, value: str) -> Iterator[OriginNode]:
    for _ in range(_FAR):
        node = origin.producers.get(value)
        if node is None or node.op not in _HEADS:
            return
        if node.op != "Transpose" and not any(name in origin.constants for name in node.inputs):
            return
        if len(origin.consumers.get(node.outputs[0], ())) > 1:
            return
        yield node
        value = next(name for name in node.inputs if name not in origin.constants)
