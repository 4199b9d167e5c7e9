"""exp(x - max) / sum(exp(x - max)) is Softmax(x).

Whatever is subtracted, if it is one number for all that is summed, cancels out; so the maximum need
not be recognized, and a Softmax without one is a Softmax too.
"""

from __future__ import annotations

from splitter.draft import Draft, Node


def fuse_softmax(draft: Draft) -> None:
    """Softmax of every quotient of an exponential and its sum over one axis."""
    for node in draft.nodes:
        if node.op == "Div" and not node.domain and draft.alive(node):
            _fuse(draft, node)
    draft.prune()


def _fuse(draft: Draft, node: Node) -> None:
    exponential, total = (draft.producer.get(value) for value in node.inputs)
    if exponential is None or total is None or exponential.op != "Exp":
        return
    if total.op != "ReduceSum" or total.inputs[0] != exponential.outputs[0]:
        return
    axes, rank = draft.ints(total.input(1)) if total.input(1) else None, draft.rank(node.inputs[0])
    if axes is None or rank is None or len(axes) != 1 or not total.attrs.get("keepdims", 1):
        return
    axis = axes[0] % rank
    source = _without_shift(draft, exponential.inputs[0], axis)
    out, known = node.outputs[0], draft.types[node.outputs[0]]
    sources = tuple(dict.fromkeys(s for one in (exponential, total, node) for s in one.sources))
    draft.remove(node)
    softmax = Node("Softmax", [source], [out], {"axis": axis}, node.name, sources=sources)
    draft.add(softmax, [known])


def _without_shift(draft: Draft, value: str, axis: int) -> str:
    shift = draft.producer.get(value)
    if shift is None or shift.op != "Sub":
        return value
    source, subtracted = shift.inputs
    shape = draft.shape(subtracted)
    same = draft.shape(source) == draft.shape(value)
    if not same or shape is None or len(shape) != draft.rank(value) or shape[axis] != 1:
        return value
    return source
