"""A `Graph` written back as ONNX, so that its layout can be proven by value in ONNX Runtime.

Decides nothing. Shapes cannot prove a layout (equal lengths hide a transpose), numbers can: the
model made here and the one `layout` was given must compute the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from splitter.graph import Array, Graph, Unit
from splitter.layout.ports import REDUCE
from splitter.layout.spatial import SPATIAL
from splitter.normalize.exchange import elem_type, tensor_proto

OPSET = 23
_ACTIVATION = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def as_onnx(graph: Graph) -> onnx.ModelProto:
    """The graph as an ONNX model with the same inputs and outputs."""
    writer = _Writer(graph)
    for unit in graph.units:
        writer.unit(unit)
    used = {name for node in writer.nodes for name in node.input}
    tensors = [tensor_proto(data, n) for n, data in graph.constants.items() if n in used]
    body = helper.make_graph(
        writer.nodes, "graph", [_info(graph, n) for n in graph.inputs],
        [_info(graph, n) for n in graph.outputs], [*tensors, *writer.tensors],
    )  # fmt: skip
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _info(graph: Graph, name: str) -> onnx.ValueInfoProto:
    value = graph.values[name]
    return helper.make_tensor_value_info(name, elem_type(value.dtype), value.shape)


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def unit(self, unit: Unit) -> None:
        attrs = dict(unit.attrs)
        activation = attrs.pop("activation", "")
        outputs = list(unit.outputs)
        if activation:
            outputs[0] += ":linear"
        if unit.op in SPATIAL and len(self.graph.shape(unit.inputs[0])) == 4:
            self.spatial(unit, attrs, outputs)
        else:
            rule = _RULES.get(unit.op, _Writer.plain)
            rule(self, unit, attrs, outputs)
        if activation:
            self.clip(outputs[0], unit.outputs[0], *_ACTIVATION[activation])

    def node(self, op: str, inputs: list[str], outputs: list[str], **attrs: Any) -> None:
        self.nodes.append(helper.make_node(op, inputs, outputs, **attrs))

    def const(self, data: Any, stem: str) -> str:
        name = f"{stem}#{len(self.tensors)}"
        self.tensors.append(tensor_proto(np.asarray(data), name))
        return name

    def ints(self, values: Any, unit: Unit) -> str:
        return self.const(np.asarray(values, np.int64), unit.name)

    def clip(self, source: str, out: str, low: float | None, high: float | None) -> None:
        dtype = self.graph.values[out].dtype
        bounds = ["" if b is None else self.const(np.asarray(b, dtype), out) for b in (low, high)]
        self.node("Clip", [source, *bounds], [out])

    def spatial(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        """Channels first around the ONNX operator, unless a Resize kept the ONNX layout."""
        whole = unit.op == "Resize" and len(attrs["sizes"]) == 4
        inputs, inner = list(unit.inputs), list(outputs)
        if not whole:
            inputs[0], inner[0] = f"{unit.name}:in", f"{unit.name}:out"
            self.node("Transpose", [unit.inputs[0]], [inputs[0]], perm=[0, 3, 1, 2])
        if "kernel" in attrs:
            attrs["kernel_shape"] = attrs.pop("kernel")
        if unit.op == "Resize":
            self.resize(unit, attrs, inputs, whole=whole)
        self.node(unit.op, inputs, inner, **_onnx_attrs(attrs))
        if not whole:
            self.node("Transpose", [inner[0]], [outputs[0]], perm=[0, 2, 3, 1])

    def resize(self, unit: Unit, attrs: dict[str, Any], inputs: list[str], *, whole: bool) -> None:
        """Sizes where the scales are their ratio, else the scales (rounded down to the sizes)."""
        shape = self.graph.shape(unit.inputs[0])
        sizes, scales = attrs.pop("sizes"), attrs.pop("scales")
        lengths = shape if whole else shape[1:3]
        roi = ""
        if "roi" in attrs:
            region = attrs.pop("roi")
            half = len(region) // 2
            pad = ([], []) if whole else ([0.0, 0.0], [1.0, 1.0])
            full_region = [*pad[0], *region[:half], *pad[1], *region[half:]]
            roi = self.const(np.asarray(full_region, np.float32), unit.name)
        ratio = [size / length for size, length in zip(sizes, lengths, strict=True)]
        if np.allclose(ratio, scales, rtol=1e-6, atol=0.0):
            full = list(sizes) if whole else [*self.channels(unit), *sizes]
            inputs += [roi, "", self.ints(full, unit)]
            return
        factors = scales if whole else (1.0, 1.0, *scales)
        inputs += [roi, self.const(np.asarray(factors, np.float32), unit.name)]

    def channels(self, unit: Unit) -> list[int]:
        shape = self.graph.shape(unit.inputs[0])
        return [shape[0], shape[3]]

    def plain(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        attrs.pop("centered", None)
        self.node(unit.op, list(unit.inputs), outputs, **_onnx_attrs(attrs))

    def with_ints(self, unit: Unit, outputs: list[str], values: Any, **attrs: Any) -> None:
        self.node(unit.op, [unit.inputs[0], self.ints(values, unit)], outputs, **attrs)

    def reshape(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        self.with_ints(unit, outputs, attrs["shape"])

    def tile(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        self.with_ints(unit, outputs, attrs["repeats"])

    def reduce(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        if "axis" in attrs:
            self.plain(unit, attrs, outputs)
        elif attrs["axes"]:
            self.with_ints(unit, outputs, attrs["axes"], keepdims=int(attrs["keepdims"]))
        else:
            self.node(unit.op, list(unit.inputs), outputs, noop_with_empty_axes=1)

    def slice(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        shape = self.graph.shape(unit.inputs[0])
        ends = [
            e if step > 0 or e >= 0 else -length - 1
            for e, step, length in zip(attrs["ends"], attrs["steps"], shape, strict=True)
        ]
        parts = [attrs["starts"], ends, range(len(shape)), attrs["steps"]]
        self.node("Slice", [unit.inputs[0], *(self.ints(list(p), unit) for p in parts)], outputs)

    def pad(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        flat = [p[0] for p in attrs["pads"]] + [p[1] for p in attrs["pads"]]
        dtype = self.graph.values[unit.inputs[0]].dtype
        value = self.const(np.asarray(attrs["value"], dtype), unit.name)
        inputs = [unit.inputs[0], self.ints(flat, unit), value]
        self.node("Pad", inputs, outputs, mode=attrs["mode"])

    def split(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        self.with_ints(unit, outputs, attrs["sizes"], axis=attrs["axis"])

    def topk(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        names = [n or f"{unit.name}:unused{i}" for i, n in enumerate(outputs)]
        names += [f"{unit.name}:unused"] * (2 - len(names))
        flags = {k: int(attrs[k]) for k in ("axis", "largest", "sorted")}
        self.with_ints(unit, names, [attrs["k"]], **flags)

    def clip_unit(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        self.clip(unit.inputs[0], outputs[0], attrs["min"], attrs["max"])

    def cast(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        self.node("Cast", list(unit.inputs), outputs, to=elem_type(attrs["to"]))

    def cumsum(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        axis = self.const(np.asarray(attrs.pop("axis"), np.int64), unit.name)
        self.node("CumSum", [unit.inputs[0], axis], outputs, **_onnx_attrs(attrs))

    def one_hot(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        dtype = self.graph.values[unit.outputs[0]].dtype
        values = self.const(np.asarray(attrs["values"], dtype), unit.name)
        inputs = [unit.inputs[0], self.ints([attrs["depth"]], unit), values]
        self.node("OneHot", inputs, outputs, axis=attrs["axis"])

    def trilu(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        k = self.const(np.asarray(attrs["k"], np.int64), unit.name)
        self.node("Trilu", [unit.inputs[0], k], outputs, upper=int(attrs["upper"]))

    def matmul(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        inputs = list(unit.inputs)
        for index, key in enumerate(("adj_x", "adj_y")):
            if attrs.get(key):
                rank = len(self.graph.shape(unit.inputs[index]))
                perm = [*range(rank - 2), rank - 1, rank - 2]
                name = f"{unit.name}:{key}"
                self.node("Transpose", [inputs[index]], [name], perm=perm)
                inputs[index] = name
        self.node("MatMul", inputs, outputs)

    def attend(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        weights = f"{unit.name}:weights"
        self.node("Softmax", [unit.inputs[0]], [weights], axis=-1)
        product = Unit(unit.name, "MatMul", (weights, unit.inputs[1]), unit.outputs, attrs)
        self.matmul(product, attrs, outputs)

    def magnitude(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        squares = [f"{unit.name}:{name}" for name in "ab"]
        for value, square in zip(unit.inputs, squares, strict=True):
            self.node("Mul", [value, value], [square])
        self.node("Add", squares, [f"{unit.name}:sum"])
        self.node("Sqrt", [f"{unit.name}:sum"], outputs)

    def fake_quantize(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        scale = self.const(np.float32(attrs["scale"]), unit.name)
        zero = self.const(np.asarray(attrs["zero_point"], attrs["dtype"]), unit.name)
        self.node("QuantizeLinear", [unit.inputs[0], scale, zero], [f"{unit.name}:integers"])
        self.node("DequantizeLinear", [f"{unit.name}:integers", scale, zero], outputs)

    def fully_connected(self, unit: Unit, attrs: dict[str, Any], outputs: list[str]) -> None:
        weight: Array = self.graph.constants[unit.inputs[1]]
        matrix = self.const(np.ascontiguousarray(weight.T), unit.name)
        bias = len(unit.inputs) > 2
        product = f"{unit.name}:product" if bias else outputs[0]
        self.node("MatMul", [unit.inputs[0], matrix], [product])
        if bias:
            self.node("Add", [product, unit.inputs[2]], outputs)


def _onnx_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    return {k: int(v) if isinstance(v, bool) else v for k, v in attrs.items()}


_RULES: dict[str, Callable[[_Writer, Unit, dict[str, Any], list[str]], None]] = {
    "Reshape": _Writer.reshape, "Expand": _Writer.reshape, "Tile": _Writer.tile,
    "Slice": _Writer.slice, "Pad": _Writer.pad, "Split": _Writer.split, "TopK": _Writer.topk,
    "Clip": _Writer.clip_unit, "Cast": _Writer.cast, "CumSum": _Writer.cumsum,
    "OneHot": _Writer.one_hot, "Trilu": _Writer.trilu, "MatMul": _Writer.matmul,
    "FullyConnected": _Writer.fully_connected, "Attend": _Writer.attend,
    "FakeQuantize": _Writer.fake_quantize, "Magnitude": _Writer.magnitude,
    **dict.fromkeys(REDUCE, _Writer.reduce),
}  # fmt: skip
