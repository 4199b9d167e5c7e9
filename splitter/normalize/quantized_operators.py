"""Operators that ONNX Runtime's quantizer writes (QLinearConv and its kin), in the QDQ form.

Each is DequantizeLinear of its operands, the float operator, and QuantizeLinear of the result: what
a model in the QDQ form says too. So one path keeps the scales and zero points that an author chose.
Products of integers without a scale (ConvInteger) stay integers in value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.exchange import elem_type
from splitter.normalize.writer import Writer

Rule = Callable[[Draft, Node], None]


def _real(w: Writer, value: str, scale: str, zero: str, axis: int = 1) -> str:
    """The real values of a quantized tensor, its scales along the axis if there are several."""
    return w.add("DequantizeLinear", [value, scale, *([zero] if zero else [])], axis=axis)


def _stored(w: Writer, value: str, scale: str, zero: str) -> None:
    """Quantized, as the node's own result."""
    w.add("QuantizeLinear", [value, scale, *([zero] if zero else [])], out=w.out)


def _kept(node: Node, *drop: str) -> dict[str, Any]:
    return {key: value for key, value in node.attrs.items() if key not in drop}


def _last_to_second(w: Writer, value: str, rank: int) -> str:
    return w.add("Transpose", [value], perm=[0, rank - 1, *range(1, rank - 1)])


def _second_to_last(w: Writer, value: str, rank: int) -> str:
    return w.add("Transpose", [value], perm=[0, *range(2, rank), 1])


def _conv(draft: Draft, node: Node) -> None:
    """x, scale, zero, w, scale, zero, y scale, y zero, bias (int32, in the scales' product)."""
    x, xs, xz, weight, ws, wz, ys, yz = node.inputs[:8]
    rank = draft.rank(weight)
    last = bool(node.attrs.get("channels_last", 0))
    if last and rank is None:
        return
    w = Writer(draft, node)
    data = _real(w, x, xs, xz)
    operands = [data, _real(w, weight, ws, wz, axis=0)]
    if last:
        operands[0] = _last_to_second(w, data, rank or 4)
    if node.input(8):
        unit = w.add("Mul", [xs, ws])
        operands.append(w.add("Mul", [w.add("Cast", [node.inputs[8]], to=1), unit]))
    y = w.add("Conv", operands, **_kept(node, "channels_last"))
    _stored(w, _second_to_last(w, y, rank or 4) if last else y, ys, yz)


def _matmul(draft: Draft, node: Node) -> None:
    a, sa, za, b, sb, zb, ys, yz = node.inputs[:8]
    ranks = draft.rank(a), draft.rank(b)
    if ranks[0] is None or ranks[1] is None:
        return
    w = Writer(draft, node)
    left = _real(w, a, sa, za, axis=max(ranks[0] - 2, 0))
    right = _real(w, b, sb, zb, axis=ranks[1] - 1)
    _stored(w, w.add("MatMul", [left, right]), ys, yz)


def _gemm(draft: Draft, node: Node) -> None:
    """QGemm: A, scale, zero, B, scale, zero, C (int32)?, y scale?, y zero? (else float)."""
    a, sa, za, b, sb, zb = node.inputs[:6]
    rows = 0 if node.attrs.get("transB", 0) else 1
    w = Writer(draft, node)
    operands = [_real(w, a, sa, za), _real(w, b, sb, zb, axis=rows)]
    alpha = float(node.attrs.get("alpha", 1.0))
    if node.input(6):
        unit = w.add("Mul", [w.add("Mul", [sa, sb]), w.const(alpha, "float32")])
        operands.append(w.add("Mul", [w.add("Cast", [node.inputs[6]], to=1), unit]))
    done = not node.input(7)
    y = w.add("Gemm", operands, out=w.out if done else "", **node.attrs)
    if not done:
        _stored(w, y, node.inputs[7], node.input(8))


def _two(op: str) -> Rule:
    def rule(draft: Draft, node: Node) -> None:
        a, sa, za, b, sb, zb, ys = node.inputs[:7]
        w = Writer(draft, node)
        y = w.add(op, [_real(w, a, sa, za), _real(w, b, sb, zb)])
        _stored(w, y, ys, node.input(7))

    return rule


def _one(op: str, *drop: str) -> Rule:
    """x, scale, zero, y scale, y zero."""

    def rule(draft: Draft, node: Node) -> None:
        x, xs, xz, ys = node.inputs[:4]
        w = Writer(draft, node)
        y = w.add(op, [_real(w, x, xs, xz)], **_kept(node, *drop))
        _stored(w, y, ys, node.input(4))

    return rule


def _pool(op: str) -> Rule:
    """Average pools, channels second or last."""

    def rule(draft: Draft, node: Node) -> None:
        x, xs, xz, ys = node.inputs[:4]
        rank = draft.rank(x)
        last = bool(node.attrs.get("channels_last", 0))
        if rank is None:
            return
        w = Writer(draft, node)
        data = _real(w, x, xs, xz)
        data = _last_to_second(w, data, rank) if last else data
        if op == "GlobalAveragePool":
            y = w.add("ReduceMean", [data, w.const(list(range(2, rank)))], keepdims=1)
        else:
            y = w.add(op, [data], **_kept(node, "channels_last"))
        _stored(w, _second_to_last(w, y, rank) if last else y, ys, node.input(4))

    return rule


def _reduce_mean(draft: Draft, node: Node) -> None:
    x, xs, xz, ys = node.inputs[:4]
    w = Writer(draft, node)
    axes = [w.const(node.attrs["axes"])] if node.attrs.get("axes") else []
    data = [_real(w, x, xs, xz), *axes]
    y = w.add("ReduceMean", data, keepdims=int(node.attrs.get("keepdims", 1)))
    _stored(w, y, ys, node.input(4))


def _concat(draft: Draft, node: Node) -> None:
    """y scale, y zero, then (value, scale, zero) for each operand."""
    ys, yz, *rest = node.inputs
    w = Writer(draft, node)
    triples = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    operands = [_real(w, *triple) for triple in triples]
    _stored(w, w.add("Concat", operands, axis=int(node.attrs["axis"])), ys, yz)


def _where(draft: Draft, node: Node) -> None:
    condition, a, sa, za, b, sb, zb, ys, yz = node.inputs[:9]
    w = Writer(draft, node)
    y = w.add("Where", [condition, _real(w, a, sa, za), _real(w, b, sb, zb)])
    _stored(w, y, ys, yz)


def _conv_integer(draft: Draft, node: Node) -> None:
    """Sums of integers as int32; float32 holds them as long as they stay under 2^24."""
    x, weight = node.inputs[:2]
    shape = draft.shape(weight)
    if shape is None or np.prod(shape[1:], dtype=np.int64) * 255 * 255 > 1 << 24:
        return
    w = Writer(draft, node)
    operands = [_centered(w, x, node.input(2)), _centered(w, weight, node.input(3))]
    y = w.add("Round", [w.add("Conv", operands, **node.attrs)])
    w.add("Cast", [y], out=w.out, to=elem_type("int32"))


def _centered(w: Writer, value: str, zero: str) -> str:
    """Integers less their zero point, as floats; a zero point a filter stands along axis 0."""
    real = w.add("Cast", [value], to=1)
    if not zero:
        return real
    point = w.add("Cast", [zero], to=1)
    if (w.draft.shape(zero) or ()) not in ((), (1,)):
        rank = w.draft.rank(value) or 4
        point = w.add("Reshape", [point, w.const([-1, *[1] * (rank - 1)])])
    return w.add("Sub", [real, point])


def _to_float(draft: Draft, node: Node) -> None:
    """MatMulIntegerToFloat: A, B, a scale, b scale, a zero?, b zero?, bias?."""
    a, b, sa, sb = node.inputs[:4]
    ranks = draft.rank(a), draft.rank(b)
    if ranks[0] is None or ranks[1] is None:
        return
    w = Writer(draft, node)
    operands = [
        _real(w, a, sa, node.input(4), axis=max(ranks[0] - 2, 0)),
        _real(w, b, sb, node.input(5), axis=ranks[1] - 1),
    ]
    bias = node.input(6)
    y = w.add("MatMul", operands, out="" if bias else w.out)
    if bias:
        w.add("Add", [y, bias], out=w.out)


def _dynamic_matmul(draft: Draft, node: Node) -> None:
    """DynamicQuantizeMatMul: A (float), B, b scale, b zero?, bias?."""
    a, b, sb = node.inputs[:3]
    w = Writer(draft, node)
    parts = [draft.name(f"{node.name}/{part}") for part in ("integers", "scale", "zero")]
    draft.add(Node("DynamicQuantizeLinear", [a], parts, {}, parts[0], sources=node.sources))
    inputs = [parts[0], b, parts[1], sb, parts[2], node.input(3), node.input(4)]
    while not inputs[-1]:
        inputs.pop()
    inner = Node("MatMulIntegerToFloat", inputs, [w.out], {}, node.name, "com.microsoft",
                 node.sources)  # fmt: skip
    draft.add(inner)
    _to_float(draft, inner)


def _standard(op: str) -> Rule:
    """An operator of ONNX Runtime's domain that has become, or is, a standard one."""

    def rule(draft: Draft, node: Node) -> None:
        node.op, node.domain = op, ""

    return rule


MOVED = frozenset(("Transpose", "Reshape", "Squeeze", "Unsqueeze", "MaxPool", "Identity"))
"""Operators that leave the parameters of a quantized tensor as they are."""


def _resize(draft: Draft, node: Node) -> None:
    """Resize of quantized values mixes them: it is done in real ones, in the same parameters."""
    value = node.inputs[0]
    maker = draft.producer.get(value)
    while maker is not None and maker.op in MOVED and not maker.domain:
        maker = draft.producer.get(maker.inputs[0])
    quantized = draft.dtype(value) in ("int8", "uint8") and maker is not None
    if not quantized or maker is None or maker.op != "QuantizeLinear":
        return
    if node.attrs.get("mode", "nearest") == "nearest" or maker.attrs.get("axis", 1) != 1:
        return
    scale, zero = maker.inputs[1], maker.input(2)
    if draft.scalar(scale) is None:
        return
    w = Writer(draft, node)
    real = _real(w, value, scale, zero)
    _stored(w, w.add("Resize", [real, *node.inputs[1:]], **node.attrs), scale, zero)


STANDARD: dict[str, Rule] = {
    "Resize": _resize,
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "ConvInteger": _conv_integer,
}
CONTRIB: dict[str, Rule] = {
    "QLinearConv": _conv,
    "QGemm": _gemm,
    "QLinearAdd": _two("Add"),
    "QLinearMul": _two("Mul"),
    "QLinearLeakyRelu": _one("LeakyRelu"),
    "QLinearSigmoid": _one("Sigmoid"),
    "QLinearSoftmax": _one("Softmax", "opset"),
    "QLinearAveragePool": _pool("AveragePool"),
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"),
    "QLinearReduceMean": _reduce_mean,
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
    "MatMulIntegerToFloat": _to_float,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "QuantizeLinear": _standard("QuantizeLinear"),
    "DequantizeLinear": _standard("DequantizeLinear"),
}
