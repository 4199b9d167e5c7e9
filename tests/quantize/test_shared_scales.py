"""Which tensors share a scale: what is joined to something wider keeps its own where it is read."""

from __future__ import annotations

import numpy as np

from splitter.quantize import Range, quantize
from splitter.tflite.types import LiteGraph, Operator, Tensor
from tests.ops.lowered import Lowered, every_lowering, parsed

SHAPES = {"h": (1, 40), "c": (1, 1, 40), "small": (1, 40), "a": (1, 1, 40), "state": (2, 1, 40)}
STATE = (
    Operator("ADD", ("h", "h"), ("small",), {"fused_activation_function": "NONE"}, "cell"),
    Operator("RESHAPE", ("small", "shape"), ("a",), {"new_shape": (1, 1, 40)}, "cell"),
    Operator("CONCATENATION", ("a", "c"), ("state",), {"axis": 0}, "cell"),
    Operator("LOGISTIC", ("small",), ("y",), {}, "next"),
)
POOLED = """(float[1,2,8,8] x) => (float[1,2,4,4] y) {
  mean = AveragePool<kernel_shape = [2, 2], strides = [2, 2]> (x)
  y = Sigmoid (mean)
}"""


def only(body: str, sample: dict[str, np.ndarray]) -> Lowered:
    arrays = {name: array.astype(np.float32) for name, array in sample.items()}
    return next(made for _, made in every_lowering(parsed(body, opset=17), [arrays]))


def test_a_hidden_state_beside_a_wide_cell_state_keeps_its_scale_for_others() -> None:
    """It goes into the joined state through a reshape, which must not hide its other reader."""
    tensors = {name: Tensor(name, shape, "float32") for name, shape in SHAPES.items()}
    tensors["y"] = Tensor("y", (1, 40), "float32")
    tensors["shape"] = Tensor("shape", (3,), "int32", np.array([1, 1, 40], np.int32))
    graph = LiteGraph(("h", "c"), ("state", "y"), tensors, STATE)
    wide, narrow = (np.linspace(-size, size, 99, dtype=np.float32) for size in (40, 2))
    ranges = {n: Range(-40, 40, wide) if n in ("c", "state") else Range(-2, 2, narrow)
              for n in (*SHAPES, "y")}  # fmt: skip
    made = quantize(graph, ranges, npu=())
    scales = {n: t.quantization.scale[0] for n, t in made.tensors.items() if t.quantization}
    assert scales["state"] > 0.2
    assert scales["small"] < 0.02


def test_values_that_a_mean_evens_out_are_not_cut_for_what_follows_it() -> None:
    """Means of +-60 pairs lie where a sigmoid changes, the pairs themselves far outside."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, (1, 2, 8, 8))
    x[..., ::2, :] += 90
    x[..., 1::2, :] -= 70
    assert only(POOLED, {"x": x}).integer_error() <= 0.05
