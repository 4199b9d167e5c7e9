"""Operators of ONNX Runtime's optimizers and quantizers, against ONNX Runtime itself."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from splitter.normalize import normalize
from splitter.normalize.evaluate import session
from tests.normalize.support import as_model, ops, same, samples_of

STEP = 0.0471
SCALES = """
  xs = Constant<value = float {0.02}>() xz = Constant<value = uint8 {120}>()
  ws = Constant<value = float {0.01}>() wz = Constant<value = int8 {0}>()
  ys = Constant<value = float {STEP}>() yz = Constant<value = uint8 {130}>()
  vs = Constant<value = float[4] {0.01, 0.02, 0.03, 0.015}>()
  vz = Constant<value = int8[4] {0, 0, 0, 0}>()
  a = QuantizeLinear(x, xs, xz)
  y = DequantizeLinear(q, ys, yz)
}""".replace("STEP", str(STEP))
IMAGE = "(float[1,3,8,8] x) => (float[K,L,M,N] y) {"

QUANTIZED = {
    "conv": "v = QuantizeLinear<axis = 0>(w4, vs, vz)"
    " q = QLinearConv<pads = [1,1,1,1]>(a, xs, xz, v, vs, vz, ys, yz, bias)",
    "conv without bias": "v = QuantizeLinear(w4, ws, wz)"
    " q = QLinearConv(a, xs, xz, v, ws, wz, ys, yz)",
    "add": "q = com.microsoft.QLinearAdd(a, xs, xz, a, xs, xz, ys, yz)",
    "mul": "q = com.microsoft.QLinearMul(a, xs, xz, a, xs, xz, ys, yz)",
    "leaky relu": "q = com.microsoft.QLinearLeakyRelu<alpha = 0.1>(a, xs, xz, ys, yz)",
    "sigmoid": "q = com.microsoft.QLinearSigmoid(a, xs, xz, ys, yz)",
    "softmax": "q = com.microsoft.QLinearSoftmax<axis = -1, opset = 13>(a, xs, xz, ys, yz)",
    "average pool": "q = com.microsoft.QLinearAveragePool<kernel_shape = [2,2], strides = [2,2]>"
    "(a, xs, xz, ys, yz)",
    "global average pool": "q = com.microsoft.QLinearGlobalAveragePool(a, xs, xz, ys, yz)",
    "concat": "q = com.microsoft.QLinearConcat<axis = 1>(ys, yz, a, xs, xz, a, xs, xz)",
    "product": "flat = Constant<value = int64[2] {8, 24}>() r = Reshape(a, flat)"
    " v = QuantizeLinear<axis = 1>(w24, vs, vz)"
    " p = QLinearMatMul(r, xs, xz, v, vs, vz, ys, yz)"
    " four = Constant<value = int64[4] {1, 1, 8, 4}>() q = Reshape(p, four)",
    "gemm": "flat = Constant<value = int64[2] {8, 24}>() r = Reshape(a, flat)"
    " v = QuantizeLinear<axis = 1>(w24, vs, vz)"
    " p = com.microsoft.QGemm(r, xs, xz, v, vs, vz, bias, ys, yz)"
    " four = Constant<value = int64[4] {1, 1, 8, 4}>() q = Reshape(p, four)",
}

FLOAT = {
    "attention": "(float[2,6,8] x) => (float[2,6,8] y) {"
    " y = com.microsoft.Attention<num_heads = 2>(x, w24, b24) }",
    "causal attention": "(float[2,6,8] x) => (float[2,6,8] y) {"
    " y = com.microsoft.Attention<num_heads = 2, unidirectional = 1>(x, w24, b24) }",
    "attention with a mask": "(float[2,6,8] x, int32[2,6] m) => (float[2,6,8] y) {"
    " y = com.microsoft.Attention<num_heads = 2>(x, w24, b24, m) }",
    "attention with lengths": "(float[2,6,8] x) => (float[2,6,8] y) {"
    " n = Constant<value = int32[2] {4, 6}>()"
    " y = com.microsoft.Attention<num_heads = 2>(x, w24, b24, n) }",
    "heads": "(float[2,6,8] x, float[2,5,8] k) => (float[2,6,8] y) {"
    " y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.3>(x, k, k, b24) }",
    "heads with a mask": "(float[2,6,8] x, int32[2,6] m) => (float[2,6,8] y) {"
    " y = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x, , m) }",
    "gemm with activation": "(float[6,8] x) => (float[6,24] y) {"
    ' y = com.microsoft.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.2>(x, w24, b24) }',
    "embeddings": "(int32[2,6] x, int32[2,6] m) => (float[2,6,24] y, int32[2] n) {"
    " y, n = com.microsoft.EmbedLayerNormalization<epsilon = 0.001>"
    "(x, m, w24, w24, w24, b24, b24, m) }",
    "pool": "(float[1,8,8,3] x) => (uint8[1,4,4,3] y) {"
    " s = Constant<value = float {0.05}>() z = Constant<value = uint8 {128}>()"
    " q = QuantizeLinear(x, s, z)"
    " y = com.microsoft.NhwcMaxPool<kernel_shape = [2,2], strides = [2,2]>(q) }",
    "positions": "(float[2,6,8] x) => (float[2,6,8] y) {"
    " p = Constant<value = int64[1] {1}>()"
    " y = com.microsoft.RotaryEmbedding<num_heads = 2>(x, p, w82, w82) }",
}
WEIGHTS = {"w4": (4, 3, 3, 3), "w24": (24, 4), "b24": (24,), "w82": (8, 2)}


def model_of(body: str, **more: tuple[int, ...]) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\ng {body}'
    model = parser.parse_model(text)
    generator = np.random.default_rng(7)
    for name, shape in {**WEIGHTS, **more}.items():
        data = (0.3 * generator.standard_normal(shape)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    bias = np.asarray([100, -300, 50, 7], np.int32)
    model.graph.initializer.append(numpy_helper.from_array(bias, "bias"))
    return model


@pytest.mark.parametrize("name", QUANTIZED)
def test_a_quantized_operator_is_its_float_form_between_scales(name: str) -> None:
    before = model_of(IMAGE + QUANTIZED[name] + SCALES)
    after = normalize(as_model(before)).proto
    onnx.checker.check_model(after)
    for sample in samples_of(before):
        wanted, made = (session(m).run(["y"], sample)[0] / STEP for m in (before, after))
        # Half way between two steps either side is right: a few numbers, one step each.
        gap = np.abs(wanted - made)
        assert gap.max() < 1.01 and np.mean(gap > 0.5) < 0.05
    known = {"QuantizeLinear", "DequantizeLinear"}
    assert known <= set(ops(after)) and not any(node.domain for node in after.graph.node)


def test_a_resize_of_quantized_values_mixes_real_ones_in_the_same_steps() -> None:
    """ONNX Runtime cuts off what is between two steps where QuantizeLinear rounds."""
    before = model_of("""(float[1,3,8,8] x) => (float[1,3,16,16] y) {
      none = Constant<value = float[0] {}>()
      sizes = Constant<value = int64[4] {1, 3, 16, 16}>()
      m = MaxPool<kernel_shape = [1, 1]>(a)
      q = Resize<mode = "linear">(m, none, none, sizes)
    """ + SCALES)  # fmt: skip
    after = normalize(as_model(before)).proto
    kinds = ops(after)
    assert kinds["QuantizeLinear"] == 2 and kinds["DequantizeLinear"] == 2
    for sample in samples_of(before):
        wanted, made = (session(m).run(["y"], sample)[0] / STEP for m in (before, after))
        assert np.abs(wanted - made).max() < 1.01


@pytest.mark.parametrize("name", FLOAT)
def test_a_fused_operator_is_taken_apart(name: str) -> None:
    before = model_of(FLOAT[name], w24=(8, 24))
    after = normalize(as_model(before)).proto
    assert same(before, after, tolerance=1e-5)
    assert not any(node.domain for node in after.graph.node)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_are_what_they_stand_for(bits: int, zeros: bool) -> None:
    generator = np.random.default_rng(1)
    depth, rows, size = 40, 6, 16
    blocks, packed = 3, 16 * bits // 8
    text = f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2,5,{depth}] x) => (float[2,5,{rows}] y) {{
      y = com.microsoft.MatMulNBits<K = {depth}, N = {rows}, bits = {bits}, block_size = {size}>
        (x, w, s{", z" if zeros else ""})
    }}"""
    before = parser.parse_model(text)
    data = {
        "w": generator.integers(0, 256, (rows, blocks, packed), np.uint8),
        "s": generator.uniform(0.01, 0.1, rows * blocks).astype(np.float32),
        "z": generator.integers(0, 256, rows * -(-blocks * bits // 8), np.uint8),
    }
    for name, array in data.items():
        if name != "z" or zeros:
            before.graph.initializer.append(numpy_helper.from_array(array, name))
    after = normalize(as_model(before)).proto
    assert same(before, after, tolerance=1e-5) and "MatMul" in ops(after)
