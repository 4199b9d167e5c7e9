"""Networks with published latencies, as INT8 TFLite graphs of the right shapes (weights are zeros).

Built from their papers, to set the latency estimate beside measurements: MobileNetV1
(arXiv:1704.04861), MobileNetV2 (1801.04381), MobileNetV3-Large minimalistic (1905.02244),
EfficientNet-Lite0 (TensorFlow's efficientnet/lite), ResNet50 v1 (1512.03385), YOLOv5 6.0 and
YOLOv8 (Ultralytics: the part before the decoding of boxes, SiLU as LOGISTIC and MUL as exporters
write it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, prod
from typing import Any

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor


class Net:
    """Adds layers; values are names of NHWC tensors."""

    def __init__(self, size: int) -> None:
        self.tensors = {"x": Tensor("x", (1, size, size, 3), "int8")}
        self.operators: list[Operator] = []

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def constant(self, shape: tuple[int, ...], dtype: str = "int8") -> str:
        name = f"c{len(self.tensors)}"
        data = np.broadcast_to(np.zeros((), dtype), shape)
        self.tensors[name] = Tensor(name, shape, dtype, data)
        return name

    def op(self, code: str, inputs: list[str], shape: tuple[int, ...], **options: Any) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = Tensor(name, shape, "int8")
        self.operators.append(Operator(code, tuple(inputs), (name,), options))
        return name

    def conv(self, x: str, out: int, kernel: int, stride: int = 1) -> str:
        _, h, w, c = self.shape(x)
        weights = [self.constant((out, kernel, kernel, c)), self.constant((out,), "int32")]
        shape = (1, ceil(h / stride), ceil(w / stride), out)
        return self.op("CONV_2D", [x, *weights], shape, stride_h=stride, stride_w=stride)

    def depthwise(self, x: str, kernel: int, stride: int = 1) -> str:
        _, h, w, c = self.shape(x)
        weights = [self.constant((1, kernel, kernel, c)), self.constant((c,), "int32")]
        shape = (1, ceil(h / stride), ceil(w / stride), c)
        return self.op("DEPTHWISE_CONV_2D", [x, *weights], shape, stride_h=stride, stride_w=stride)

    def classify(self, x: str, classes: int = 1000) -> LiteGraph:
        c = self.shape(x)[-1]
        axes = self.constant((2,), "int32")
        x = self.op("MEAN", [x, axes], (1, c))
        x = self.op("FULLY_CONNECTED", [x, self.constant((classes, c))], (1, classes))
        return self.graph(self.op("SOFTMAX", [x], (1, classes)))

    def graph(self, *outputs: str) -> LiteGraph:
        return LiteGraph(("x",), outputs, self.tensors, tuple(self.operators))

    def silu(self, x: str) -> str:
        gate = self.op("LOGISTIC", [x], self.shape(x))
        return self.op("MUL", [x, gate], self.shape(x))

    def concat(self, *parts: str) -> str:
        channels = sum(self.shape(part)[-1] for part in parts)
        return self.op("CONCATENATION", list(parts), (*self.shape(parts[0])[:-1], channels))


def mobilenet_v1() -> LiteGraph:
    net = Net(224)
    x = net.conv("x", 32, 3, 2)
    rows = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5]
    for out, stride in (*rows, (1024, 2), (1024, 1)):
        x = net.conv(net.depthwise(x, 3, stride), out, 1)
    return net.classify(x, 1001)


def inverted(net: Net, x: str, *, mid: int, out: int, kernel: int, stride: int) -> str:
    """Inverted residual: expand, depthwise, project, add where shapes agree."""
    y = net.conv(x, mid, 1) if mid != net.shape(x)[-1] else x
    y = net.conv(net.depthwise(y, kernel, stride), out, 1)
    return net.op("ADD", [x, y], net.shape(y)) if net.shape(x) == net.shape(y) else y


def mobilenet_v2() -> LiteGraph:
    net = Net(224)
    x = net.conv("x", 32, 3, 2)
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    for factor, out, repeats, stride in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeats):
            mid = net.shape(x)[-1] * factor
            x = inverted(net, x, mid=mid, out=out, kernel=3, stride=stride if i == 0 else 1)
    return net.classify(net.conv(x, 1280, 1), 1001)


def mobilenet_v3_minimalistic() -> LiteGraph:
    net = Net(224)
    x = net.conv("x", 16, 3, 2)
    rows = [
        *((16, 16, 1), (64, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1), (120, 40, 1)),
        *((240, 80, 2), (200, 80, 1), (184, 80, 1), (184, 80, 1), (480, 112, 1), (672, 112, 1)),
        *((672, 160, 2), (960, 160, 1), (960, 160, 1)),
    ]
    for mid, out, stride in rows:
        x = inverted(net, x, mid=mid, out=out, kernel=3, stride=stride)
    x = net.conv(x, 960, 1)
    x = net.op("MEAN", [x, net.constant((2,), "int32")], (1, 1, 1, 960))
    return net.classify(net.conv(x, 1280, 1), 1001)


def efficientnet_lite0() -> LiteGraph:
    net = Net(224)
    x = net.conv("x", 32, 3, 2)
    rows = [(1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2)]
    for factor, kernel, out, repeats, stride in (
        *rows,
        *((6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)),
    ):
        for i in range(repeats):
            mid = net.shape(x)[-1] * factor
            x = inverted(net, x, mid=mid, out=out, kernel=kernel, stride=stride if i == 0 else 1)
    return net.classify(net.conv(x, 1280, 1))


def resnet50() -> LiteGraph:
    net = Net(224)
    x = net.conv("x", 64, 7, 2)
    x = net.op("MAX_POOL_2D", [x], (1, 56, 56, 64), filter_height=3, filter_width=3)
    for width, repeats, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(repeats):
            step = stride if i == 0 else 1
            y = net.conv(net.conv(net.conv(x, width, 1, step), width, 3), 4 * width, 1)
            skip = net.conv(x, 4 * width, 1, step) if i == 0 else x
            x = net.op("ADD", [skip, y], net.shape(y))
    return net.classify(x)


class Yolo(Net):
    """YOLOv8 up to the raw head; `widths` are the channels of the strides 4 to 32."""

    def block(self, x: str, out: int, kernel: int, stride: int = 1) -> str:
        return self.silu(self.conv(x, out, kernel, stride))

    def c2f(self, x: str, out: int, repeats: int, *, add: bool) -> str:
        x = self.block(x, out, 1)
        half = (*self.shape(x)[:-1], out // 2)
        ends = [self.constant((4,), "int32"), self.constant((4,), "int32")]
        parts = [self.op("SLICE", [x, *ends], half), self.op("SLICE", [x, *ends], half)]
        for _ in range(repeats):
            y = self.block(self.block(parts[-1], out // 2, 3), out // 2, 3)
            parts.append(self.op("ADD", [parts[-1], y], half) if add else y)
        return self.block(self.concat(*parts), out, 1)

    def c3(self, x: str, out: int, repeats: int, *, add: bool) -> str:
        y = self.block(x, out // 2, 1)
        for _ in range(repeats):
            z = self.block(self.block(y, out // 2, 1), out // 2, 3)
            y = self.op("ADD", [y, z], self.shape(y)) if add else z
        return self.block(self.concat(y, self.block(x, out // 2, 1)), out, 1)

    def sppf(self, x: str) -> str:
        out = self.shape(x)[-1]
        parts = [self.block(x, out // 2, 1)]
        for _ in range(3):
            shape = self.shape(parts[-1])
            window = {"filter_height": 5, "filter_width": 5, "padding": "SAME"}
            parts.append(self.op("MAX_POOL_2D", [parts[-1]], shape, **window))
        return self.block(self.concat(*parts), out, 1)

    def up(self, x: str) -> str:
        _, h, w, c = self.shape(x)
        size = self.constant((2,), "int32")
        return self.op("RESIZE_NEAREST_NEIGHBOR", [x, size], (1, 2 * h, 2 * w, c))

    def branch(self, x: str, mid: int, out: int) -> str:
        return self.conv(self.block(self.block(x, mid, 3), mid, 3), out, 1)


def yolov8(depth: float, width: float, most: int, *, pose: bool = False) -> LiteGraph:
    net = Yolo(640)
    c = [int(ceil(min(base, most) * width / 8) * 8) for base in (64, 128, 256, 512, 1024)]
    n = [max(round(repeats * depth), 1) for repeats in (3, 6)]
    x = net.block(net.block("x", c[0], 3, 2), c[1], 3, 2)
    x = net.c2f(x, c[1], n[0], add=True)
    p3 = net.c2f(net.block(x, c[2], 3, 2), c[2], n[1], add=True)
    p4 = net.c2f(net.block(p3, c[3], 3, 2), c[3], n[1], add=True)
    p5 = net.sppf(net.c2f(net.block(p4, c[4], 3, 2), c[4], n[0], add=True))
    m4 = net.c2f(net.concat(net.up(p5), p4), c[3], n[0], add=False)
    o3 = net.c2f(net.concat(net.up(m4), p3), c[2], n[0], add=False)
    o4 = net.c2f(net.concat(net.block(o3, c[2], 3, 2), m4), c[3], n[0], add=False)
    o5 = net.c2f(net.concat(net.block(o4, c[3], 3, 2), p5), c[4], n[0], add=False)
    classes = 1 if pose else 80
    heads = [(max(16, c[2] // 4, 64), 64), (max(c[2], min(classes, 100)), classes)]
    heads += [(max(c[2] // 4, 51), 51)] if pose else []
    return net.graph(*(net.branch(x, *head) for x in (o3, o4, o5) for head in heads))


def yolov5(depth: float, width: float) -> LiteGraph:
    net = Yolo(640)
    c = [int(ceil(base * width / 8) * 8) for base in (64, 128, 256, 512, 1024)]
    n = [max(round(repeats * depth), 1) for repeats in (3, 6, 9)]
    x = net.block(net.block("x", c[0], 6, 2), c[1], 3, 2)
    x = net.c3(x, c[1], n[0], add=True)
    p3 = net.c3(net.block(x, c[2], 3, 2), c[2], n[1], add=True)
    p4 = net.c3(net.block(p3, c[3], 3, 2), c[3], n[2], add=True)
    p5 = net.sppf(net.c3(net.block(p4, c[4], 3, 2), c[4], n[0], add=True))
    m5 = net.block(p5, c[3], 1)
    m4 = net.block(net.c3(net.concat(net.up(m5), p4), c[3], n[0], add=False), c[2], 1)
    o3 = net.c3(net.concat(net.up(m4), p3), c[2], n[0], add=False)
    o4 = net.c3(net.concat(net.block(o3, c[2], 3, 2), m4), c[3], n[0], add=False)
    o5 = net.c3(net.concat(net.block(o4, c[3], 3, 2), m5), c[4], n[0], add=False)
    return net.graph(*(net.conv(x, 255, 1) for x in (o3, o4, o5)))


NETWORKS: Mapping[str, Callable[[], LiteGraph]] = {
    "MobileNetV1": mobilenet_v1,
    "MobileNetV2": mobilenet_v2,
    "MobileNetV3 minimalistic": mobilenet_v3_minimalistic,
    "EfficientNet-Lite0": efficientnet_lite0,
    "ResNet50 v1": resnet50,
    "YOLOv5n": lambda: yolov5(0.33, 0.25),
    "YOLOv5s": lambda: yolov5(0.33, 0.50),
    "YOLOv5m": lambda: yolov5(0.67, 0.75),
    "YOLOv8n": lambda: yolov8(0.33, 0.25, 1024),
    "YOLOv8s": lambda: yolov8(0.33, 0.50, 1024),
    "YOLOv8m": lambda: yolov8(0.67, 0.75, 768),
    "YOLOv8l": lambda: yolov8(1.00, 1.00, 512),
    "YOLOv8x": lambda: yolov8(1.00, 1.25, 512),
    "YOLOv8n-pose": lambda: yolov8(0.33, 0.25, 1024, pose=True),
}


def parameters(graph: LiteGraph) -> int:
    """Bytes of constants."""
    return sum(prod(t.shape) for t in graph.tensors.values() if t.data is not None)
