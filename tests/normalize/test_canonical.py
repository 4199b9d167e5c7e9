"""Old opsets mean the same after they are brought to the common one."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError
from splitter.normalize import normalize
from splitter.normalize.fold import fold_constants
from splitter.normalize.standard import standardize
from tests.normalize.support import as_model, model_of, ops, run_passes, same, weighted

OLD = {
    "squeeze and unsqueeze with axes": (
        11, "g (float[2,1,3] x) => (float[1,2,3] y) "
        "{ a = Squeeze<axes = [1]>(x) y = Unsqueeze<axes = [0]>(a) }"),
    "slice with attributes": (
        9, "g (float[4,6] x) => (float[2,3] y) "
        "{ y = Slice<starts = [1, -4], ends = [3, 5], axes = [0, 1]>(x) }"),
    "split with sizes": (
        11, "g (float[4,6] x) => (float[4,2] a, float[4,4] b) "
        "{ a, b = Split<axis = 1, split = [2, 4]>(x) }"),
    "clip with bounds": (
        10, "g (float[4,6] x) => (float[4,6] y) { y = Clip<min = -0.5, max = 0.25>(x) }"),
    "pad with attributes": (
        10, "g (float[2,3] x) => (float[3,6] y) "
        "{ y = Pad<pads = [0, 1, 1, 2], value = 2.0, mode = \"constant\">(x) }"),
    "top-k with k": (
        9, "g (float[2,9] x) => (float[2,3] v, int64[2,3] i) { v, i = TopK<k = 3, axis = 1>(x) }"),
    "flat softmax": (
        11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis = 1>(x) }"),
    "flat softmax by default": (
        7, "g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax(x) }"),
    "reductions with axes": (
        11, "g (float[2,3,4] x) => (float[2,4] y) "
        "{ a = ReduceMean<axes = [1], keepdims = 0>(x) "
        "b = ReduceSum<axes = [-2], keepdims = 0>(x) y = Sub(a, b) }"),
    "upsample": (
        9, "g (float[1,2,3,4] x) => (float[1,2,6,8] y) "
        "{ s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() "
        "y = Upsample<mode = \"linear\">(x, s) }"),
    "resize of opset 10": (
        10, "g (float[1,2,3,4] x) => (float[1,2,6,8] y) "
        "{ s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() "
        "y = Resize<mode = \"nearest\">(x, s) }"),
    "grid sample with bilinear": (
        16, "g (float[1,2,5,4] x, float[1,3,3,2] p) => (float[1,2,3,3] y) "
        "{ y = GridSample<mode = \"bilinear\">(x, p) }"),
    "dropout with a mask": (
        11, "g (float[2,3] x) => (float[2,3] y) { d, m = Dropout<ratio = 0.5>(x) y = Relu(d) }"),
    "scatter": (
        10, "g (float[2,4] x, float[1,2] u) => (float[2,4] y) "
        "{ i = Constant<value = int64[1,2] {1, 0}>() y = Scatter<axis = 0>(x, i, u) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_an_old_form_means_the_same(name: str) -> None:
    opset, body = OLD[name]
    before = model_of(body, opset=opset)
    assert same(before, normalize(as_model(before)).proto)


def test_group_normalization_of_opset_18_has_one_scale_a_group() -> None:
    body = """g (float[1,6,4] x) => (float[1,6,4] y)
    <float[2] s = {2.0, -1.0}, float[2] b = {0.5, 3}>
    { y = GroupNormalization<num_groups = 2>(x, s, b) }"""
    before = model_of(body, opset=18)
    assert same(before, run_passes(before))


def test_an_unknown_opset_is_refused() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.opset_import[0].version = 99
    with pytest.raises(SplitterError, match="opset 99"):
        normalize(as_model(model))


CONTRIB = {
    "FusedMatMul": ("g (float[2,4,3] x, float[2,5,4] z) => (float[2,3,5] y) "
                    "{ y = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.5>(x, z) }"),
    "FusedMatMul of rows before batches": (
        "g (float[4,2,3,5] x, float[2,3,5,6] z) => (float[2,3,4,6] y) "
        "{ y = com.microsoft.FusedMatMul<transBatchA = 1>(x, z) }"),
    "FusedMatMul of columns before batches": (
        "g (float[5,2,3,4] x, float[6,2,3,5] z) => (float[2,3,4,6] y) { y = com.microsoft."
        "FusedMatMul<transBatchA = 1, transA = 1, transBatchB = 1, transB = 1>(x, z) }"),
    "BiasGelu": "g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.BiasGelu(x, w) }",
    "FastGelu": "g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.FastGelu(x, w) }",
    "QuickGelu": "g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.QuickGelu(x) }",
    "SkipLayerNormalization": (
        "g (float[1,2,3] x, float[1,2,3] z) => (float[1,2,3] y) "
        "{ y = com.microsoft.SkipLayerNormalization<epsilon = 0.001>(x, z, w, b, c) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRIB)
def test_a_contrib_operator_is_taken_apart(name: str) -> None:
    before = weighted(CONTRIB[name], {"w": (3,), "b": (3,), "c": (3,)})
    draft_ops = ops(after := normalize(as_model(before)).proto)
    assert name.split()[0] not in draft_ops and same(before, after, tolerance=1e-5)


def test_a_contrib_operator_behind_another_one_is_taken_apart_too() -> None:
    """ONNX has no shapes for what the first one makes; the second needs its rank."""
    model = model_of("""g (float[2,4,3] x) => (float[2,4,4] y) {
      a = com.microsoft.FusedMatMul<transA = 1>(x, x)
      b = Relu(a)
      c = com.microsoft.FusedMatMul<transB = 1>(x, b)
      y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(c, x)
    }""")
    after = normalize(as_model(model)).proto
    assert "FusedMatMul" not in ops(after) and same(model, after, tolerance=1e-5)


def test_global_pools_are_reductions() -> None:
    body = """g (float[1,3,4,5] x) => (float[1,3,1,1] y) {
      a = GlobalAveragePool(x) b = GlobalMaxPool(x) y = Add(a, b) }"""
    before = model_of(body)
    after = run_passes(before, standardize, fold_constants)
    assert ops(after) == {"ReduceMean": 1, "ReduceMax": 1, "Add": 1} and same(before, after)


@pytest.mark.parametrize(
    ("shapes", "extra"),
    [
        ("float[1,2,5,4] q, float[1,2,6,4] k, float[1,2,6,3] v) => (float[1,2,5,3] y", ""),
        ("float[1,5,8] q, float[1,6,8] k, float[1,6,8] v) => (float[1,5,8] y",
         "<q_num_heads = 2, kv_num_heads = 2>"),
    ],
)  # fmt: skip
def test_attention_is_its_products(shapes: str, extra: str) -> None:
    before = model_of(f"g ({shapes}) {{ y = Attention{extra}(q, k, v) }}", opset=23)
    after = run_passes(before, standardize, fold_constants)
    assert "Attention" not in ops(after) and same(before, after)


@pytest.mark.parametrize("bounds", ["low, high", "low", "edge, high", '"", high'])
def test_bounds_of_a_clip_may_be_computed(bounds: str) -> None:
    before = model_of(f"""g (float[2,3] x) => (float[2,3] y) {{
      edge = Constant<value = float {{-0.5}}>()
      top = ReduceMax<keepdims = 0>(x)
      high = Mul(top, edge)
      low = Sub(high, top)
      y = Clip(x, {bounds})
    }}""")
    after = run_passes(before, standardize, fold_constants)
    assert "Clip" not in ops(after) and same(before, after)
