"""Takes quantization at run time out of a file: its activations get fixed ranges here anyway.

ONNX Runtime's dynamic quantizer stores weights in 8 bits and has every activation measured and
quantized in each run (DynamicQuantizeLinear, then MatMulInteger or ConvInteger). No NPU does that,
and TFLite's integer kernels do not either. Here such a product is the float product with the same
8-bit weights, and everything later, the comparison with ONNX Runtime too, starts from that model:
what the step itself costs is the file's own error and no figure of ours. Only where all that reads
the quantized activation is known; what is left stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx
from onnx import numpy_helper

from splitter.graph import Array
from splitter.model import Model
from splitter.stored import array_of

CONTRIB = "com.microsoft"
STEP = "DynamicQuantizeLinear"
WHOLE = ("DynamicQuantizeMatMul", "DynamicQuantizeLSTM")
"""Operators of ONNX Runtime that hold the step inside."""


def fixed_ranges(model: Model) -> Model:
    """The model without such steps; the given one when it has none. It is not changed."""
    steps = dynamic_steps(model)
    if not steps:
        return model
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    writer = _Rewriter(proto.graph)
    for node in steps:
        rewrite = writer.products.get(node.op_type, writer.step)
        rewrite(node)
    writer.write()
    return replace(model, proto=proto)


def dynamic_steps(model: Model) -> list[onnx.NodeProto]:
    """The nodes that `fixed_ranges` takes out."""
    graph = model.proto.graph
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    results = {info.name for info in graph.output}
    return [
        node
        for node in graph.node
        if (node.op_type in WHOLE and node.domain == CONTRIB)
        or (node.op_type == STEP and _known(node, readers, results))
    ]


def file_notes(model: Model) -> tuple[str, ...]:
    """What the report must say of a file that stores weights in few bits, or quantizes in runs."""
    notes = []
    steps = len(dynamic_steps(model))
    if steps:
        notes.append(
            f"the file quantizes at run time at {steps} places; here they have fixed ranges, and "
            "the comparison with ONNX Runtime is with the file without these steps"
        )
    packed = sum(node.op_type == "MatMulNBits" for node in model.proto.graph.node)
    if packed:
        notes.append(
            f"the weights of {packed} MatMulNBits are stored in few bits; they were unpacked "
            "and have 8 bits here"
        )
    return tuple(notes)


def _known(
    node: onnx.NodeProto, readers: dict[str, list[onnx.NodeProto]], results: set[str]
) -> bool:
    """Whether the integers and their zero point go into products, as their first operand, only."""
    integers, _, zero = node.output
    products = readers.get(integers, [])
    if {integers, zero} & results or not products:
        return False
    if any(reader not in products for reader in readers.get(zero, [])):
        return False
    return all(
        reader.op_type in ("MatMulInteger", "ConvInteger")
        and list(reader.input).count(integers) == 1
        and reader.input[0] == integers
        and len(reader.input) > 2
        and reader.input[2] == zero
        for reader in products
    )


class _Rewriter:
    """Replaces nodes of a graph by others, in their places."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.instead: dict[str, list[onnx.NodeProto]] = {}
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.products: dict[str, Callable[[onnx.NodeProto], None]] = {
            "MatMulInteger": self._matmul,
            "ConvInteger": self._conv,
            "DynamicQuantizeMatMul": self._dynamic_matmul,
            "DynamicQuantizeLSTM": self._lstm,
        }

    def step(self, node: onnx.NodeProto) -> None:
        """Its integers are the activation itself, its scale is 1."""
        integers, scale, _ = node.output
        self.graph.initializer.append(onnx.helper.make_tensor(scale, 1, (), [1.0]))
        for reader in self.graph.node:
            if integers in reader.input:
                reader.input[0] = node.input[0]
                self.products[reader.op_type](reader)
        self.instead[node.output[0]] = []

    def write(self) -> None:
        nodes = list(self.graph.node)
        del self.graph.node[:]
        for node in nodes:
            key = next((out for out in node.output if out), "")
            self.graph.node.extend(self.instead.get(key, [node]))

    def _matmul(self, node: onnx.NodeProto) -> None:
        x, weight = node.input[:2]
        real, nodes = self._real(node, weight, _input(node, 3), ())
        nodes.append(onnx.helper.make_node("MatMul", [x, real], node.output, node.name))
        self.instead[node.output[0]] = nodes

    def _conv(self, node: onnx.NodeProto) -> None:
        x, weight = node.input[:2]
        real, nodes = self._real(node, weight, _input(node, 3), (-1, 1, 1, 1))
        conv = onnx.helper.make_node("Conv", [x, real], node.output, node.name)
        conv.attribute.extend(node.attribute)
        self.instead[node.output[0]] = [*nodes, conv]

    def _dynamic_matmul(self, node: onnx.NodeProto) -> None:
        """A, B, b scale, b zero?, bias?."""
        x, weight, scale = node.input[:3]
        stem, bias = node.output[0], _input(node, 4)
        real, nodes = self._real(node, weight, _input(node, 3), ())
        scaled, product = f"{stem}/scaled", f"{stem}/product" if bias else stem
        nodes.append(onnx.helper.make_node("Mul", [real, scale], [scaled], f"{node.name}/scale"))
        nodes.append(onnx.helper.make_node("MatMul", [x, scaled], [product], node.name))
        if bias:
            nodes.append(onnx.helper.make_node("Add", [product, bias], [stem], f"{node.name}/bias"))
        self.instead[stem] = nodes

    def _lstm(self, node: onnx.NodeProto) -> None:
        """X, W, R, B, lengths, h, c, P, W scale, W zero, R scale, R zero; W and R [D, I, 4H]."""
        inputs = [*node.input[:8]]
        nodes: list[onnx.NodeProto] = []
        for index, place in ((1, 8), (2, 10)):
            real, made = self._real(node, node.input[index], _input(node, place + 1), (-1, 1, -1))
            stem = f"{node.output[0]}/{index}"
            scale = self._spread(node.input[place], f"{stem}/scale")
            made.append(onnx.helper.make_node("Mul", [real, scale], [f"{stem}/scaled"]))
            turned = onnx.helper.make_node(
                "Transpose", [f"{stem}/scaled"], [f"{stem}/turned"], perm=[0, 2, 1]
            )
            inputs[index] = f"{stem}/turned"
            nodes += [*made, turned]
        while inputs and not inputs[-1]:
            inputs.pop()
        lstm = onnx.helper.make_node("LSTM", inputs, node.output, node.name)
        lstm.attribute.extend(node.attribute)
        key = next(out for out in node.output if out)
        self.instead[key] = [*nodes, lstm]

    def _spread(self, name: str, into: str) -> str:
        """Scales of [D] or [D, 4H] so that they broadcast with [D, I, 4H]."""
        data = array_of(self.weights[name])
        self._store(data.reshape(data.shape[0], 1, -1), into)
        return into

    def _real(
        self, node: onnx.NodeProto, weight: str, zero: str, spread: Sequence[int]
    ) -> tuple[str, list[onnx.NodeProto]]:
        """The weight less its zero point as floats; `spread`: the shape of several zero points."""
        stem = f"{next(out for out in node.output if out)}/{weight}"
        cast = onnx.helper.make_node("Cast", [weight], [f"{stem}/real"], f"{stem}/real", to=1)
        tensor = self.weights.get(zero)
        if not zero or (tensor is not None and not array_of(tensor).any()):
            return f"{stem}/real", [cast]
        if tensor is not None and spread and array_of(tensor).size > 1:
            data = array_of(tensor)
            shape = (len(data), 1, -1) if len(spread) == 3 else spread
            zero = self._store(data.reshape(shape), f"{stem}/zeros")
        point = onnx.helper.make_node("Cast", [zero], [f"{stem}/zero"], f"{stem}/zero", to=1)
        names = [f"{stem}/real", f"{stem}/zero"]
        less = onnx.helper.make_node("Sub", names, [f"{stem}/centered"], f"{stem}/centered")
        return f"{stem}/centered", [cast, point, less]

    def _store(self, data: Array, name: str) -> str:
        self.graph.initializer.append(numpy_helper.from_array(data, name))
        return name


def _input(node: onnx.NodeProto, index: int) -> str:
    return str(node.input[index]) if len(node.input) > index else ""
