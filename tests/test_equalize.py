"""Factors that cancel are moved; the function stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from models.build_outliers import add_outliers
from splitter.equalize import equalize
from splitter.graph import Array, Graph
from splitter.layout import layout
from splitter.lower import lower
from splitter.normalize import normalize
from splitter.ops import OPS
from splitter.tflite.runtime import Interpreter
from splitter.tflite.write import write
from tests.normalize.support import as_model

TINY = Path(__file__).resolve().parent.parent / "models" / "rf_detr_tiny.onnx"


def graph_of(proto: onnx.ModelProto) -> Graph:
    return layout(normalize(as_model(proto)))


def run(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    names = {
        unit.name: next(
            one.name for one in OPS[unit.op].lowerings if one.applies(graph, unit) is None
        )
        for unit in graph.units
    }
    return Interpreter(write(lower(graph, names))).run(inputs)


def spread(graph: Graph, op: str) -> float:
    """How much the largest row of a layer's weights exceeds the median one, at worst."""
    ratios = []
    for unit in graph.units:
        if unit.op == op and graph.constants[unit.inputs[1]].shape[0] > 8:
            rows = np.sqrt(np.square(graph.constants[unit.inputs[1]]).sum(1))
            ratios.append(rows.max() / np.median(rows))
    return float(max(ratios))


@pytest.mark.parametrize("strength", [4, 40])
def test_outlier_channels_that_cancel_are_gone_and_the_function_is_the_same(strength: int) -> None:
    made, _ = add_outliers(onnx.load(TINY), strength=strength, seed=1)
    before = graph_of(made)
    after = equalize(before)
    image = np.random.default_rng(0).standard_normal((1, 3, 128, 128)).astype(np.float32)
    wanted, found = run(before, {"input": image}), run(after, {"input": image})
    for name, values in wanted.items():
        error = np.sqrt(np.mean((values - found[name]) ** 2) / np.mean(values**2))
        assert error < 1e-5, name
    tame = spread(equalize(graph_of(onnx.load(TINY))), "FullyConnected")
    assert spread(after, "FullyConnected") < 1.2 * tame
    if strength > 10:
        assert spread(before, "FullyConnected") > 3 * tame


def test_a_layer_whose_output_is_added_to_another_keeps_its_weights() -> None:
    from tests.normalize.support import weighted

    proto = weighted(
        """g (float[1,4,8] x) => (float[1,4,8] y)
        { a = MatMul (x, v)
          b = Add (a, x)
          y = MatMul (b, w) }""",
        {"v": (8, 8), "w": (8, 8)},
    )
    graph = graph_of(proto)
    after = equalize(graph)
    assert all(np.array_equal(after.constants[k], graph.constants[k]) for k in graph.constants)


def test_channels_are_followed_through_heads_and_a_relu_layer() -> None:
    from tests.normalize.support import weighted

    proto = weighted(
        """g (float[1,4,8] x) => (float[1,4,8] y)
        { a = MatMul (x, v)
          r = Relu (a)
          s = Reshape <allowzero=0> (r, heads)
          t = Transpose <perm=[0,2,1,3]> (s)
          u = Transpose <perm=[0,2,1,3]> (t)
          m = Reshape (u, flat)
          y = MatMul (m, w) }""",
        {"v": (8, 12), "w": (12, 8)},
    )
    for name, value in (("heads", [1, 4, 3, 4]), ("flat", [1, 4, 12])):
        proto.graph.initializer.append(
            onnx.numpy_helper.from_array(np.array(value, np.int64), name)
        )
    weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]).copy()
    weights[:, 5] *= 100
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "v"))
    graph = graph_of(proto)
    after = equalize(graph)
    assert spread(graph, "FullyConnected") > 5 * spread(after, "FullyConnected")
    x = {"x": np.random.default_rng(2).standard_normal((1, 4, 8)).astype(np.float32)}
    assert np.allclose(run(graph, x)["y"], run(after, x)["y"], rtol=1e-4, atol=1e-3)
