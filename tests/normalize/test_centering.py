"""Weights changed on both sides of a LayerNormalization: exact, and only where allowed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitter.normalize.center_residual import center_residual
from splitter.normalize.evaluate import session
from splitter.normalize.norm_affine import fold_norm_affine
from tests.normalize.support import ops, run_passes, same, samples_of, weighted

BLOCK = """g (float[2,5,8] x) => (float[2,5,6] y) <int64[1] zero = {0}, int64[1] one = {1}> {
  e = MatMul(x, w0) e1 = Add(e, b0) t = Concat<axis = 1>(token, e1) p = Add(t, position)
  n1 = LayerNormalization<axis = -1, epsilon = 0.001>(p, s1, c1)
  f = MatMul(n1, w1) f1 = Add(f, b1) r = Add(f1, p)
  n2 = LayerNormalization<axis = -1, epsilon = 0.001>(r, s2, c2)
  q = MatMul(n2, w2) cut = Slice(q, one, six, one) y = Relu(cut) }"""
SHAPES = {
    "w0": (8, 7), "b0": (7,), "token": (2, 1, 7), "position": (1, 6, 7), "s1": (7,), "c1": (7,),
    "w1": (7, 7), "b1": (7,), "s2": (7,), "c2": (7,), "w2": (7, 6),
}  # fmt: skip


def block() -> onnx.ModelProto:
    return weighted(BLOCK.replace("int64[1] one", "int64[1] six = {6}, int64[1] one"), SHAPES)


def centered(model: onnx.ModelProto) -> list[bool]:
    return [
        any(p.key == "splitter.mark.centered" for p in node.metadata_props)
        for node in model.graph.node
        if node.op_type == "LayerNormalization"
    ]


def test_a_stream_that_only_norms_read_has_mean_zero() -> None:
    before = block()
    after = run_passes(before, center_residual)
    assert centered(after) == [True, True] and same(before, after, tolerance=1e-5)
    streams = [n.input[0] for n in after.graph.node if n.op_type == "LayerNormalization"]
    seen = onnx.ModelProto()
    seen.CopyFrom(after)
    seen.graph.output.extend(onnx.ValueInfoProto(name=name) for name in streams)
    for sample in samples_of(before):
        for value in session(seen).run(streams, sample):
            assert np.abs(np.asarray(value).mean(axis=-1)).max() < 1e-6


def test_a_stream_that_something_else_reads_is_left_alone() -> None:
    body = """g (float[2,5,8] x) => (float[2,5,7] y, float[2,5,7] other) {
      e = MatMul(x, w0) y = LayerNormalization<axis = -1>(e, s1, c1) other = Relu(e) }"""
    before = weighted(body, SHAPES)
    after = run_passes(before, center_residual)
    assert centered(after) == [False] and same(before, after)


@pytest.mark.parametrize("source", ["x", "h"])
def test_a_stream_that_an_input_or_a_nonlinearity_feeds_is_left_alone(source: str) -> None:
    body = f"""g (float[2,5,8] x) => (float[2,5,8] y) {{
      h = Relu(x) e = MatMul(x, w) r = Add({source}, e)
      y = LayerNormalization<axis = -1>(r, s, c) }}"""
    before = weighted(body, {"w": (8, 8), "s": (8,), "c": (8,)})
    after = run_passes(before, center_residual)
    assert centered(after) == [False] and same(before, after)


def test_a_convolution_before_a_norm_over_its_channels_is_centered() -> None:
    body = """g (float[1,3,4,4] x) => (float[1,4,4,6] y) {
      e = Conv(x, w, b) t = Transpose<perm = [0, 2, 3, 1]>(e)
      y = LayerNormalization<axis = -1>(t, s, c) }"""
    before = weighted(body, {"w": (6, 3, 1, 1), "b": (6,), "s": (6,), "c": (6,)})
    after = run_passes(before, center_residual)
    assert centered(after) == [True] and same(before, after, tolerance=1e-5)


def test_scale_and_bias_of_a_norm_go_into_all_its_readers() -> None:
    body = """g (float[2,5,8] x) => (float[2,5,4] y, float[10,3] z) <int64[2] flat = {10, 8}> {
      n = LayerNormalization<axis = -1>(x, s, c) y = MatMul(n, w1)
      r = Reshape(n, flat) z0 = MatMul(r, w2) z = Add(z0, b2) }"""
    before = weighted(body, {"s": (8,), "c": (8,), "w1": (8, 4), "w2": (8, 3), "b2": (3,)})
    after = run_passes(before, fold_norm_affine)
    assert ops(after) == {"LayerNormalization": 1, "MatMul": 2, "Add": 2, "Reshape": 1}
    assert same(before, after, tolerance=1e-5)
    norm = next(n for n in after.graph.node if n.op_type == "LayerNormalization")
    scale = next(t for t in after.graph.initializer if t.name == norm.input[1])
    assert len(norm.input) == 2 and set(onnx.numpy_helper.to_array(scale)) == {1.0}


def test_scale_and_bias_stay_when_something_else_reads_the_norm() -> None:
    body = """g (float[2,5,8] x) => (float[2,5,4] y, float[2,5,8] z) {
      n = LayerNormalization<axis = -1>(x, s, c) y = MatMul(n, w1) z = Relu(n) }"""
    before = weighted(body, {"s": (8,), "c": (8,), "w1": (8, 4)})
    after = run_passes(before, fold_norm_affine)
    assert ops(after) == {"LayerNormalization": 1, "MatMul": 1, "Relu": 1} and same(before, after)
