"""Operators that are special cases, or come from ONNX Runtime's own domain, as standard ones.

Global pools are reductions over the spatial axes. Contrib operators that ONNX Runtime's optimizer
writes (FusedMatMul, BiasGelu, SkipLayerNormalization, ...) are taken apart again. Attention is its
products and its Softmax.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.exchange import elem_type
from splitter.normalize.fold import fold_constants, infer
from splitter.normalize.reverse import write_reverse
from splitter.normalize.writer import Writer

CONTRIB = "com.microsoft"


def standardize(draft: Draft) -> None:
    """Rewrite to standard operators. Types of new values are found by the next fold_constants.

    A rule that needs a rank waits for what comes before it to be rewritten.
    """
    while _rewrite(draft):
        fold_constants(draft)
    draft.prune()


def _rewrite(draft: Draft) -> bool:
    """One walk; whether it wrote something that others may have waited for."""
    written = waiting = False
    for node in draft.nodes:
        table = _CONTRIB if node.domain == CONTRIB else _STANDARD if not node.domain else {}
        rule = table.get(node.op)
        if rule is not None:
            rule(draft, node)
            waiting = waiting or draft.alive(node)
            written = written or not draft.alive(node)
    return written and waiting


def _global_pool(op: str) -> Callable[[Draft, Node], None]:
    def rule(draft: Draft, node: Node) -> None:
        rank = draft.rank(node.inputs[0])
        if rank is None:
            return
        writer = Writer(draft, node)
        axes = writer.const(list(range(2, rank)))
        writer.add(op, [node.inputs[0], axes], out=writer.out, keepdims=1)

    return rule


def _fused_matmul(draft: Draft, node: Node) -> None:
    ranks = [draft.rank(value) for value in node.inputs]
    turns = [
        (bool(node.attrs.get(f"trans{side}", 0)), bool(node.attrs.get(f"transBatch{side}", 0)))
        for side in "AB"
    ]
    if any(any(turn) and rank is None for turn, rank in zip(turns, ranks, strict=True)):
        return
    writer = Writer(draft, node)
    operands = []
    for value, rank, (swap, batch) in zip(node.inputs, ranks, turns, strict=True):
        perm = list(range(rank or 2))
        if batch:  # the rows come first, before the batch axes
            perm = [*perm[1:-1], 0, perm[-1]]
        if swap:
            perm = [*perm[:-2], perm[-1], perm[-2]]
        moved = perm != sorted(perm)
        operands.append(writer.add("Transpose", [value], perm=perm) if moved else value)
    alpha = float(node.attrs.get("alpha", 1.0))
    product = writer.add("MatMul", operands, out=writer.out if alpha == 1.0 else "")
    if alpha != 1.0:
        writer.add("Mul", [product, writer.const(alpha, "float32")], out=writer.out)


def _bias_gelu(approximate: str) -> Callable[[Draft, Node], None]:
    def rule(draft: Draft, node: Node) -> None:
        writer = Writer(draft, node)
        value = node.inputs[0]
        if node.input(1):
            value = writer.add("Add", node.inputs[:2])
        writer.add("Gelu", [value], out=writer.out, approximate=approximate)

    return rule


def _quick_gelu(draft: Draft, node: Node) -> None:
    writer = Writer(draft, node)
    alpha = writer.const(float(node.attrs.get("alpha", 1.702)), "float32")
    gate = writer.add("Sigmoid", [writer.add("Mul", [node.inputs[0], alpha])])
    writer.add("Mul", [node.inputs[0], gate], out=writer.out)


def _skip_norm(op: str) -> Callable[[Draft, Node], None]:
    """Skip(Simplified)LayerNormalization: x + skip (+ bias), then the norm; output 3 is the sum."""

    def rule(draft: Draft, node: Node) -> None:
        parameters = 2 if op == "LayerNormalization" else 1
        scale = node.inputs[2 : 2 + parameters]
        bias = node.input(2 + parameters)
        if any(node.outputs[1:3]):
            return
        total = node.outputs[3] if len(node.outputs) > 3 else ""
        writer = Writer(draft, node)
        value = writer.add("Add", node.inputs[:2], out="" if bias else total)
        if bias:
            value = writer.add("Add", [value, bias], out=total)
        epsilon = float(node.attrs.get("epsilon", 1e-12))
        writer.add(
            op,
            [value, *(s for s in scale if s)],
            out=writer.out,
            axis=-1,
            epsilon=epsilon,
        )

    return rule


def _simplified_norm(draft: Draft, node: Node) -> None:
    node.op, node.domain = "RMSNormalization", ""
    keys = ("axis", "epsilon", "stash_type")
    node.attrs = {k: v for k, v in node.attrs.items() if k in keys}


def _fused_conv(draft: Draft, node: Node) -> None:
    if node.input(3):
        return
    attrs = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    kind = str(node.attrs.get("activation", ""))
    parameters = list(node.attrs.get("activation_params", []))
    if kind not in ("", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"):
        return
    writer = Writer(draft, node)
    value = writer.add("Conv", node.inputs, out="" if kind else writer.out, **attrs)
    if kind == "Clip":
        bounds = [writer.const(p, "float32") for p in parameters]
        writer.add("Clip", [value, *bounds], out=writer.out)
    elif kind:
        names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}.get(kind, ())
        writer.add(kind, [value], out=writer.out, **dict(zip(names, parameters, strict=False)))


def _attention(draft: Draft, node: Node) -> None:
    """Attention of opset 23 without caches: softmax(scale Q K^T + mask) V.

    Q, K and V are [B, H, T, D], or [B, T, H D] with the numbers of heads as attributes.
    """
    shapes = [draft.shape(value) for value in node.inputs[:3]]
    plain = not any(node.input(i) for i in (4, 5, 6)) and not any(node.outputs[1:])
    if any(s is None for s in shapes) or not plain or node.attrs.get("is_causal", 0):
        return
    if node.attrs.get("softcap", 0.0):
        return
    if any(int(node.attrs.get(f"{side}_window_size", -1)) >= 0 for side in ("left", "right")):
        return
    flat = len(shapes[0] or ()) == 3
    heads = [int(node.attrs.get(k, 0)) for k in ("q_num_heads", "kv_num_heads", "kv_num_heads")]
    if not flat:
        heads = [(s or ())[1] for s in shapes]
    if heads[0] != heads[1]:
        return  # grouped queries stay an operator
    dtype = draft.dtype(node.inputs[0])
    mask = node.input(3)
    if mask and draft.dtype(mask) == "bool":
        return
    writer = Writer(draft, node)
    parts = [
        _split_heads(writer, value, shape or (), count) if flat else value
        for value, shape, count in zip(node.inputs[:3], shapes, heads, strict=True)
    ]
    width = (shapes[0] or ())[-1] // (heads[0] if flat else 1)
    scale = writer.const(float(node.attrs.get("scale", width**-0.5)), dtype)
    key = writer.add("Transpose", [parts[1]], perm=[0, 1, 3, 2])
    scores = writer.add("MatMul", [writer.add("Mul", [parts[0], scale]), key])
    if mask:
        scores = writer.add("Add", [scores, mask])
    weights = writer.add("Softmax", [scores], axis=-1)
    if not flat:
        writer.add("MatMul", [weights, parts[2]], out=writer.out)
        return
    value = writer.add("MatMul", [weights, parts[2]])
    batch, length = (shapes[0] or ())[:2]
    merged = writer.add("Transpose", [value], perm=[0, 2, 1, 3])
    target = writer.const([batch, length, -1])
    writer.add("Reshape", [merged, target], out=writer.out)


def _split_heads(writer: Writer, value: str, shape: tuple[int, ...], heads: int) -> str:
    batch, length, width = shape
    target = writer.const([batch, length, heads, width // heads])
    return writer.add("Transpose", [writer.add("Reshape", [value, target])], perm=[0, 2, 1, 3])


def _rename(domain_op: str) -> Callable[[Draft, Node], None]:
    def rule(draft: Draft, node: Node) -> None:
        node.op, node.domain = domain_op, ""

    return rule


def _drop_empty(draft: Draft, node: Node) -> None:
    """A tensor without elements adds nothing to a Concat."""
    kept = [value for value in node.inputs if 0 not in (draft.shape(value) or (1,))]
    if kept and len(kept) < len(node.inputs):
        draft.set_inputs(node, kept)


def _split_off_nothing(draft: Draft, node: Node) -> None:
    """Parts without elements that nothing reads are left out (Keras cuts [n, n, rest])."""
    lengths = [draft.shape(out) for out in node.outputs]
    read = [bool(draft.users(out)) or out in draft.outputs for out in node.outputs]
    kept = [i for i, shape in enumerate(lengths) if read[i] or 0 not in (shape or (1,))]
    if None in lengths or len(kept) == len(lengths) or not kept:
        return
    axis = int(node.attrs.get("axis", 0)) % (draft.rank(node.inputs[0]) or 1)
    sizes = np.asarray([(lengths[i] or ())[axis] for i in kept], np.int64)
    made = Node("Split", [node.inputs[0]], [node.outputs[i] for i in kept], {"axis": axis},
                node.name, sources=node.sources)  # fmt: skip
    if len(kept) == 1:
        made.op, made.attrs = "Identity", {}
    else:
        made.inputs.append(draft.constant_of(sizes, f"{node.name}/sizes"))
    draft.remove(node)
    infer(draft, draft.add(made))


def _cast_like(draft: Draft, node: Node) -> None:
    """The type of the second input is known, its values do not matter."""
    dtype = draft.dtype(node.inputs[1])
    if dtype:
        node.op = "Cast"
        node.attrs = {"to": elem_type(dtype)}
        draft.set_inputs(node, node.inputs[:1])


def _computed_clip(draft: Draft, node: Node) -> None:
    """Bounds that are computed: min(max(x, low), high), as ONNX defines it."""
    bounds = [node.input(1), node.input(2)]
    if all(not bound or draft.constant(bound) is not None for bound in bounds):
        return
    writer = Writer(draft, node)
    low, high = bounds
    value = node.inputs[0]
    if low:
        value = writer.add("Max", [value, low], out="" if high else writer.out)
    if high:
        writer.add("Min", [value, high], out=writer.out)


Table = dict[str, Callable[[Draft, Node], None]]
_STANDARD: Table = {
    "CastLike": _cast_like, "Clip": _computed_clip, "Concat": _drop_empty,
    "Split": _split_off_nothing, "ReverseSequence": write_reverse,
    "GlobalAveragePool": _global_pool("ReduceMean"), "GlobalMaxPool": _global_pool("ReduceMax"),
    "Attention": _attention,
    # written without a domain by ONNX Runtime's optimizer:
    "SimplifiedLayerNormalization": _simplified_norm,
}  # fmt: skip
_CONTRIB: Table = {
    "FusedMatMul": _fused_matmul, "TransposeMatMul": _fused_matmul,
    "BiasGelu": _bias_gelu("none"), "Gelu": _bias_gelu("none"), "FastGelu": _bias_gelu("tanh"),
    "QuickGelu": _quick_gelu, "SkipLayerNormalization": _skip_norm("LayerNormalization"),
    "SkipSimplifiedLayerNormalization": _skip_norm("RMSNormalization"),
    "SimplifiedLayerNormalization": _simplified_norm, "FusedConv": _fused_conv,
    "GridSample": _rename("GridSample"),
}  # fmt: skip
