"""Operators that ONNX Runtime's optimizers and quantizers write, as those they were made from.

Attention with its projections, embeddings with their norm, products with 4-bit weights, windows
with channels last. What uses a cache of past keys, or packs several sequences into one batch, stays
as it is and is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.draft import Array, Draft, Node, Type
from splitter.normalize.exchange import elem_type
from splitter.normalize.writer import Writer

Rule = Callable[[Draft, Node], None]
DOMAIN = "com.microsoft"


def _attention(draft: Draft, node: Node) -> None:
    """input [B, T, D], weights [D, 3 N H], bias, mask, past, attention bias -> [B, T, N H]."""
    x, weight = node.inputs[:2]
    shape, outer = draft.shape(x), draft.shape(weight)
    if shape is None or outer is None or node.input(4) or any(node.outputs[1:]):
        return
    if node.attrs.get("do_rotary", 0):
        return
    sizes = list(node.attrs.get("qkv_hidden_sizes") or [outer[1] // 3] * 3)
    mask = _mask_shape(draft, node, node.input(3))
    if mask is None:
        return
    w = Writer(draft, node)
    y = w.add("MatMul", [x, weight])
    if node.input(2):
        y = w.add("Add", [y, node.inputs[2]])
    parts = _split(w, y, sizes)
    bias = _biases(w, node, node.input(3), mask, node.input(5), (shape[1], shape[1]))
    _attend(w, node, parts, bias)


def _multi_head(draft: Draft, node: Node) -> None:
    """query [B, T, D], key and value [B, S, D], bias, padding mask, attention bias."""
    query, key, value = node.inputs[0], node.input(1), node.input(2)
    shape, other = draft.shape(query), draft.shape(key) if key else None
    if shape is None or other is None or not value or len(shape) != 3 or len(other) != 3:
        return
    if any(node.input(i) for i in range(6, len(node.inputs))) or any(node.outputs[1:]):
        return
    mask = _mask_shape(draft, node, node.input(4))
    if mask is None:
        return
    w = Writer(draft, node)
    parts = [query, key, value]
    if node.input(3):
        sizes = [(draft.shape(name) or (0,))[-1] for name in parts]
        biases = _split(w, node.inputs[3], sizes)
        parts = [w.add("Add", pair) for pair in zip(parts, biases, strict=True)]
    bias = _biases(w, node, node.input(4), mask, node.input(5), (shape[1], other[1]))
    _attend(w, node, parts, bias)


def _mask_shape(draft: Draft, node: Node, mask: str) -> tuple[int, ...] | None:
    """() without a mask; None for one of a form that is not known here."""
    if not mask:
        return ()
    shape = draft.shape(mask)
    query = draft.shape(node.inputs[0])
    if shape is None or query is None or len(shape) > 4:
        return None
    return None if len(shape) == 1 and shape[0] != query[0] else shape


def _split(w: Writer, value: str, sizes: list[int]) -> list[str]:
    outs = [w.draft.name(f"{w.node.name}/part") for _ in sizes]
    inputs = [value, w.const(sizes)]
    w.draft.add(Node("Split", inputs, outs, {"axis": -1}, outs[0], sources=w.node.sources))
    return outs


def _biases(
    w: Writer,
    node: Node,
    mask: str,
    shape: tuple[int, ...],
    given: str,
    lengths: tuple[int, int],
) -> str:
    """What is added to the scores: mask, causality, the given bias; "" for nothing."""
    low = float(node.attrs.get("mask_filter_value", -10000.0))
    found = [_mask_bias(w, mask, shape, low, lengths[1])] if mask else []
    if node.attrs.get("unidirectional", 0):
        later = np.triu(np.ones(lengths, np.float32), 1 + lengths[1] - lengths[0])
        found.append(w.const(np.where(later, np.float32(np.finfo(np.float32).min), 0), "float32"))
    found += [given] if given else []
    total = ""
    for bias in found:
        total = w.add("Add", [total, bias]) if total else bias
    return total


def _mask_bias(w: Writer, mask: str, shape: tuple[int, ...], low: float, length: int) -> str:
    """0 where a key counts, else `low`; [B] are lengths, [B, S], [B, T, S] say it for each key."""
    if len(shape) == 1:
        places = w.const(np.arange(length).reshape(1, 1, 1, length), "int32")
        limits = w.add("Reshape", [mask, w.const([-1, 1, 1, 1])])
        counts = w.add("Less", [places, limits])
    else:
        rows = {2: [0, 1, 1, -1], 3: [0, 1, shape[1], -1]}.get(len(shape))
        if rows:
            rows[0] = shape[0]
            mask = w.add("Reshape", [mask, w.const(rows)])
        counts = w.add("Cast", [mask], to=elem_type("bool"))
    return w.add("Where", [counts, w.const(0.0, "float32"), w.const(low, "float32")])


def _attend(w: Writer, node: Node, parts: list[str], bias: str) -> None:
    heads = int(node.attrs["num_heads"])
    scale = float(node.attrs.get("scale", 0.0))
    attrs = {"q_num_heads": heads, "kv_num_heads": heads, **({"scale": scale} if scale else {})}
    w.add("Attention", [*parts, *([bias] if bias else [])], out=w.out, **attrs)


def _embed_norm(draft: Draft, node: Node) -> None:
    """Word, position and segment embeddings, summed and normalized; output 1: lengths by mask."""
    ids, segments, words, places, kinds, gamma, beta = (node.input(i) for i in range(7))
    shape = draft.shape(ids)
    mask, position = node.input(7), node.input(8)
    lengths, total = ((*node.outputs[1:], "", "")[i] for i in (0, 1))
    if shape is None or (lengths and node.attrs.get("mask_index_type", 1) == 2):
        return
    w = Writer(draft, node)
    if not position:
        position = w.const(np.arange(shape[1]).reshape(1, -1))
    terms = [w.add("Gather", [words, ids]), w.add("Gather", [places, position])]
    if segments:
        terms.append(w.add("Gather", [kinds, segments]))
    value = terms[0]
    for index, term in enumerate(terms[1:], start=2):
        value = w.add("Add", [value, term], out=total if index == len(terms) else "")
    epsilon = float(node.attrs.get("epsilon", 1e-12))
    w.add("LayerNormalization", [value, gamma, beta], out=w.out, axis=-1, epsilon=epsilon)
    if lengths and mask:
        w.add("ReduceSum", [mask, w.const([1])], out=lengths, keepdims=0)
    elif lengths:
        draft.constants[lengths] = np.zeros(shape[0], np.int32)


def _few_bits(draft: Draft, node: Node) -> None:
    """MatMulNBits: the weights as the floats that they stand for."""
    weight = few_bits_weight(draft, node)
    if weight is None:
        return
    w = Writer(draft, node)
    bias = node.input(5)
    y = w.add("MatMul", [node.inputs[0], w.const(weight, "float32")], out="" if bias else w.out)
    if bias:
        w.add("Add", [y, bias], out=w.out)


def few_bits_weight(draft: Draft, node: Node) -> Array | None:
    """[K, N] float32 from blocks of packed integers, low bits first; None when not constant."""
    data, scales = (draft.constant(node.input(i)) for i in (1, 2))
    zeros = draft.constant(node.input(3)) if node.input(3) else None
    if data is None or scales is None or (node.input(3) and zeros is None) or node.input(4):
        return None
    rows, depth = int(node.attrs["N"]), int(node.attrs["K"])
    bits, size = int(node.attrs.get("bits", 4)), int(node.attrs["block_size"])
    blocks = -(-depth // size)
    values = _unpacked(data.reshape(rows, -1), bits)[:, : blocks * size]
    values = values.reshape(rows, blocks, size).astype(np.float32)
    points = np.full((rows, blocks), float(1 << (bits - 1)), np.float32)
    if zeros is not None and zeros.dtype == np.uint8:
        points = _unpacked(zeros.reshape(rows, -1), bits)[:, :blocks].astype(np.float32)
    elif zeros is not None:
        points = zeros.reshape(rows, blocks).astype(np.float32)
    real = (values - points[..., None]) * scales.reshape(rows, blocks, 1).astype(np.float32)
    return np.ascontiguousarray(real.reshape(rows, -1)[:, :depth].T)


def _unpacked(data: Array, bits: int) -> Array:
    """[rows, bytes] to [rows, bytes * 8 / bits]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    split = (data.astype(np.uint8)[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(split.reshape(len(data), -1))


def _fused_gemm(draft: Draft, node: Node) -> None:
    kind = str(node.attrs.get("activation", ""))
    names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Elu": ("alpha",)}
    if kind not in ("Relu", "Sigmoid", "Tanh", *names):
        return
    w = Writer(draft, node)
    plain = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    given = {k: node.attrs[f"activation_{k}"] for k in names.get(kind, ())
             if f"activation_{k}" in node.attrs}  # fmt: skip
    w.add(kind, [w.add("Gemm", [n for n in node.inputs if n], **plain)], out=w.out, **given)


def _channels_last(op: str, domain: str = "") -> Rule:
    """A window operator on [N, H, W, C]; weights are as ever."""

    def rule(draft: Draft, node: Node) -> None:
        rank = draft.rank(node.inputs[0])
        if rank is None or node.input(3):
            return
        w = Writer(draft, node)
        inner = w.add("Transpose", [node.inputs[0]], perm=[0, rank - 1, *range(1, rank - 1)])
        y = draft.name(f"{node.name}/{op}")
        rest = [n for n in node.inputs[1:3] if n]
        attrs = dict(node.attrs)
        draft.add(Node(op, [inner, *rest], [y], attrs, y, domain, node.sources))
        w.add("Transpose", [y], out=w.out, perm=[0, *range(2, rank), 1])

    return rule


def _group_norm(draft: Draft, node: Node) -> None:
    """GroupNorm: [N, H, W, C] or, with channels_last 0, [N, C, ...]; SiLU with activation 1."""
    rank = draft.rank(node.inputs[0])
    if rank is None or len(node.inputs) > 3:
        return
    w = Writer(draft, node)
    last = bool(node.attrs.get("channels_last", 1))
    value, silu = node.inputs[0], bool(node.attrs.get("activation", 0))
    if last:
        value = w.add("Transpose", [value], perm=[0, rank - 1, *range(1, rank - 1)])
    attrs = {"epsilon": float(node.attrs.get("epsilon", 1e-5)), "num_groups": node.attrs["groups"]}
    end = not last and not silu
    inputs = [value, *node.inputs[1:3]]
    value = w.add("GroupNormalization", inputs, out=w.out if end else "", **attrs)
    if silu:
        gate = w.add("Sigmoid", [value])
        value = w.add("Mul", [value, gate], out="" if last else w.out)
    if last:
        w.add("Transpose", [value], out=w.out, perm=[0, *range(2, rank), 1])


def _rotary(draft: Draft, node: Node) -> None:
    """RotaryEmbedding: positions are the second input here, and one number is a first position."""
    x, positions, cosines, sines = node.inputs[:4]
    shape, known = draft.shape(x), draft.shape(positions)
    scaled = float(node.attrs.get("scale", 1.0)) != 1.0
    if shape is None or known is None or scaled or node.attrs.get("is_packed_batching", 0):
        return
    w = Writer(draft, node)
    if len(known) < 2:
        length = shape[-2]
        steps = w.const(np.tile(np.arange(length), (shape[0], 1)))
        positions = w.add("Add", [steps, positions])
    keys = ("interleaved", "num_heads", "rotary_embedding_dim")
    attrs = {key: node.attrs[key] for key in keys if node.attrs.get(key)}
    w.add("RotaryEmbedding", [x, cosines, sines, positions], out=w.out, **attrs)


def _quantized_attention(draft: Draft, node: Node) -> None:
    """QAttention: x, weight, bias, x scale, weight scale, mask, x zero, weight zero, past."""
    if node.input(8) or any(node.outputs[1:]) or "num_heads" not in node.attrs:
        return
    w = Writer(draft, node)
    x = w.add("DequantizeLinear", [n for n in (node.inputs[0], node.inputs[3], node.input(6)) if n])
    weight = w.add(
        "DequantizeLinear",
        [n for n in (node.inputs[1], node.inputs[4], node.input(7)) if n],
        axis=1,
    )
    inputs = [x, weight, node.input(2), node.input(5)]
    while not inputs[-1]:
        inputs.pop()
    for name, source in ((x, node.inputs[0]), (weight, node.inputs[1])):
        draft.types[name] = Type("float32", draft.shape(source))
    inner = Node("Attention", inputs, [w.out], dict(node.attrs), node.name, DOMAIN, node.sources)
    draft.add(inner)
    _attention(draft, inner)


RULES: dict[str, Rule] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head,
    "QAttention": _quantized_attention,
    "EmbedLayerNormalization": _embed_norm,
    "MatMulNBits": _few_bits,
    "FusedGemm": _fused_gemm,
    "NhwcMaxPool": _channels_last("MaxPool"),
    "NhwcFusedConv": _channels_last("FusedConv", DOMAIN),
    "GroupNorm": _group_norm,
    "RotaryEmbedding": _rotary,
}
