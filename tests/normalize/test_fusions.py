"""Each rewrite: the operators that are left, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from splitter.normalize.activations import fuse_activations
from splitter.normalize.arithmetic import merge_constants, simplify_arithmetic
from splitter.normalize.batch_norm import split_batch_norm
from splitter.normalize.concats import hoist_concats
from splitter.normalize.dedupe import dedupe
from splitter.normalize.einsum import expand_einsum
from splitter.normalize.fold import fold_constants
from splitter.normalize.gemm import split_gemm
from splitter.normalize.group_norm import fuse_group_norm
from splitter.normalize.nan_guards import drop_nan_guards
from splitter.normalize.noops import remove_noops
from splitter.normalize.norms import absorb_affine, fuse_norms
from splitter.normalize.one_dimension import lift_one_dimension
from splitter.normalize.pads import fold_pads
from splitter.normalize.scale_weights import scale_weights
from splitter.normalize.selection import gather_rows
from splitter.normalize.slices import push_slices, slice_gathers
from tests.normalize.support import model_of, ops, run_passes, same, weighted

GELU = {
    "x (1 + erf) 0.5": "t = Add(r, one) m = Mul(x, t) y = Mul(m, half)",
    "x (0.5 (1 + erf))": "t = Add(one, r) m = Mul(half, t) y = Mul(m, x)",
    "(0.5 x) (1 + erf)": "t = Add(r, one) h = Mul(x, half) y = Mul(h, t)",
}
ARGUMENT = {"divided": "a = Div(x, root)", "multiplied": "a = Mul(inverse, x)"}


@pytest.mark.parametrize("argument", ARGUMENT)
@pytest.mark.parametrize("form", GELU)
def test_gelu_with_erf_is_one_operator_in_every_order(argument: str, form: str) -> None:
    body = f"""g (float[2,5] x) => (float[2,5] y) {{
      root = Constant<value = float {{1.4142135381698608}}>()
      inverse = Constant<value = float {{0.7071067690849304}}>()
      one = Constant<value = float {{1.0}}>()
      half = Constant<value = float {{0.5}}>()
      {ARGUMENT[argument]} r = Erf(a) {GELU[form]} }}"""
    before = model_of(body)
    after = run_passes(before, simplify_arithmetic, fuse_activations)
    assert ops(after) == {"Gelu": 1} and same(before, after)
    assert after.graph.node[0].attribute[0].s == b"none"


TANH = {
    "a cube": "c = Mul(x, x) d = Mul(c, x)",
    "a power": "three = Constant<value = float {3.0}>() d = Pow(x, three)",
}


@pytest.mark.parametrize("cube", TANH)
def test_gelu_with_tanh_is_one_operator(cube: str) -> None:
    body = f"""g (float[2,5] x) => (float[2,5] y) {{
      k = Constant<value = float {{0.044715}}>()
      s = Constant<value = float {{0.7978845608}}>()
      one = Constant<value = float {{1.0}}>()
      half = Constant<value = float {{0.5}}>()
      {TANH[cube]} e = Mul(d, k) f = Add(x, e) h = Mul(f, s)
      t = Tanh(h) u = Add(t, one) v = Mul(x, half) y = Mul(v, u) }}"""
    before = model_of(body)
    after = run_passes(before, simplify_arithmetic, fuse_activations)
    assert ops(after) == {"Gelu": 1} and same(before, after)
    assert after.graph.node[0].attribute[0].s == b"tanh"


def test_an_inner_value_that_others_read_keeps_the_gelu_apart() -> None:
    body = """g (float[2,5] x) => (float[2,5] y, float[2,5] r) {
      i = Constant<value = float {0.70710678}>() one = Constant<value = float {1.0}>()
      half = Constant<value = float {0.5}>()
      a = Mul(x, i) r = Erf(a) t = Add(r, one) m = Mul(x, t) y = Mul(m, half) }"""
    assert "Gelu" not in ops(run_passes(model_of(body), fuse_activations))


def test_nearly_gelu_is_not_gelu() -> None:
    body = """g (float[2,5] x) => (float[2,5] y) {
      i = Constant<value = float {0.71}>() one = Constant<value = float {1.0}>()
      half = Constant<value = float {0.5}>()
      a = Mul(x, i) r = Erf(a) t = Add(r, one) m = Mul(x, t) y = Mul(m, half) }"""
    assert "Gelu" not in ops(run_passes(model_of(body), fuse_activations))


def test_hard_swish_out_of_clip_is_one_operator() -> None:
    body = """g (float[2,5] x) => (float[2,5] y) {
      three = Constant<value = float {3.0}>() zero = Constant<value = float {0.0}>()
      six = Constant<value = float {6.0}>()
      a = Add(x, three) c = Clip(a, zero, six) m = Mul(x, c) y = Div(m, six) }"""
    before = model_of(body)
    after = run_passes(before, simplify_arithmetic, fuse_activations)
    assert ops(after) == {"HardSwish": 1} and same(before, after)


NORM = """g (float[2,4,6] x) => (float[2,4,6] y) <float eps = {0.001}, float two = {2.0}> {
  m = ReduceMean<axes = [%d]>(x) d = Sub(x, m) %s
  v = ReduceMean<axes = [%d]>(q) e = Add(v, eps) %s %s }"""
SQUARE = {"power": "q = Pow(d, two)", "product": "q = Mul(d, d)"}
ROOT = {
    "divided": "s = Sqrt(e) n = Div(d, s)",
    "reciprocal": "s = Sqrt(e) i = Reciprocal(s) n = Mul(d, i)",
}


@pytest.mark.parametrize("root", ROOT)
@pytest.mark.parametrize("square", SQUARE)
def test_a_decomposed_layer_norm_is_one_operator(square: str, root: str) -> None:
    affine = "w0 = Mul(n, w) y = Add(w0, b)"
    body = NORM % (-1, SQUARE[square], -1, ROOT[root], affine)
    before = weighted(body, {"w": (6,), "b": (6,)}, opset=13)
    after = run_passes(before, simplify_arithmetic, dedupe, fuse_norms, absorb_affine)
    assert ops(after) == {"LayerNormalization": 1} and same(before, after, tolerance=1e-5)


def test_a_layer_norm_over_the_channels_gets_transposes_around() -> None:
    body = NORM % (1, SQUARE["power"], 1, ROOT["divided"], "w0 = Mul(n, w) y = Add(w0, b)")
    before = weighted(body, {"w": (4, 1), "b": (1, 4, 1)}, opset=13)
    after = run_passes(before, simplify_arithmetic, dedupe, fuse_norms, absorb_affine)
    assert ops(after) == {"Transpose": 2, "LayerNormalization": 1}
    assert same(before, after, tolerance=1e-5)


def test_a_decomposed_rms_norm_is_one_operator() -> None:
    body = """g (float[2,4,6] x) => (float[2,4,6] y) <float eps = {0.001}, float two = {2.0}> {
      q = Pow(x, two) v = ReduceMean<axes = [-1]>(q) e = Add(v, eps) s = Sqrt(e)
      i = Reciprocal(s) n = Mul(x, i) y = Mul(w, n) }"""
    before = weighted(body, {"w": (6,)}, opset=13)
    after = run_passes(before, simplify_arithmetic, dedupe, fuse_norms, absorb_affine)
    assert ops(after) == {"RMSNormalization": 1} and same(before, after, tolerance=1e-5)


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0)])
def test_gemm_is_matmul_and_add(transpose: int, alpha: float, beta: float) -> None:
    body = f"""g (float[3,4] x) => (float[3,5] y)
    {{ y = Gemm<transB = {transpose}, alpha = {alpha}, beta = {beta}>(x, w, b) }}"""
    before = weighted(body, {"w": (5, 4) if transpose else (4, 5), "b": (5,)})
    after = run_passes(before, split_gemm)
    assert ops(after) == {"MatMul": 1, "Add": 1} and same(before, after)


LINEAR = {
    "Conv": ("float[1,4,5,5] x) => (float[1,6,5,5] y", "Conv<pads = [1,1,1,1]>(x, w)",
             (6, 4, 3, 3)),
    "grouped Conv": ("float[1,4,5,5] x) => (float[1,6,5,5] y",
                     "Conv<pads = [1,1,1,1], group = 2>(x, w)", (6, 2, 3, 3)),
    "ConvTranspose": ("float[1,4,5,5] x) => (float[1,6,7,7] y", "ConvTranspose(x, w)",
                      (4, 6, 3, 3)),
    "grouped ConvTranspose": ("float[1,4,5,5] x) => (float[1,6,7,7] y",
                              "ConvTranspose<group = 2>(x, w)", (4, 3, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_batch_normalization_goes_into_the_convolution(name: str) -> None:
    shapes, call, weight = LINEAR[name]
    body = f"""g ({shapes}) <float[6] v = {{1, 2, 3, 0.5, 0.25, 4}}> {{
      c = {call} y = BatchNormalization<epsilon = 0.01>(c, s, b, m, v) }}"""
    before = weighted(body, {"w": weight, "s": (6,), "b": (6,), "m": (6,)})
    after = run_passes(before, split_batch_norm, scale_weights)
    kind = name.removeprefix("grouped ")
    assert ops(after) == {kind: 1} and same(before, after, tolerance=1e-5)


def test_layer_scale_goes_into_the_matrix_and_its_bias() -> None:
    body = """g (float[2,3,4] x) => (float[1,6,5] y) <int64[3] s = {1, 6, 5}> {
      a = MatMul(x, w) c = Add(b, a) r = Reshape(c, s) y = Mul(r, g) }"""
    before = weighted(body, {"w": (4, 5), "b": (5,), "g": (5,)})
    after = run_passes(before, scale_weights)
    assert ops(after) == {"MatMul": 1, "Add": 1, "Reshape": 1} and same(before, after)


def test_an_attention_scale_passes_views_and_products() -> None:
    body = """g (float[2,3,4] x, float[2,3,2] z) => (float[2,2,3] y)
    <float k = {0.125}> {
      a = MatMul(x, w) m = Mul(a, z) t = Transpose<perm = [0, 2, 1]>(m) y = Mul(t, k) }"""
    before = weighted(body, {"w": (4, 2)})
    after = run_passes(before, scale_weights)
    assert ops(after) == {"MatMul": 1, "Mul": 1, "Transpose": 1} and same(before, after)


def test_a_value_that_others_read_is_not_scaled() -> None:
    body = """g (float[3,4] x) => (float[3,5] y, float[3,5] z) <float k = {0.5}> {
      a = MatMul(x, w) y = Mul(a, k) z = Relu(a) }"""
    before = weighted(body, {"w": (4, 5)})
    after = run_passes(before, scale_weights)
    assert ops(after) == {"MatMul": 1, "Mul": 1, "Relu": 1} and same(before, after)


def test_a_factor_along_another_axis_is_not_folded() -> None:
    body = "g (float[5,4] x) => (float[5,5] y) { a = MatMul(x, w) y = Mul(a, k) }"
    before = weighted(body, {"w": (4, 5), "k": (5, 1)})
    after = run_passes(before, scale_weights)
    assert ops(after) == {"MatMul": 1, "Mul": 1} and same(before, after)


def test_chains_of_constants_are_one_constant() -> None:
    body = """g (float[2,3] x) => (float[3,2] y)
    <float a = {2.0}, float b = {3.0}, float one = {1.0}, float zero = {0.0}> {
      p = Mul(x, a) q = Div(p, b) t = Transpose<perm = [1, 0]>(q) r = Mul(t, a)
      s = Mul(r, one) y = Add(s, zero) }"""
    before = model_of(body)
    after = run_passes(before, simplify_arithmetic, merge_constants)
    assert ops(after) == {"Transpose": 1, "Mul": 1} and same(before, after)


def test_a_class_token_between_concat_and_slices_becomes_a_constant() -> None:
    body = """g (float[1,4,3] x) => (float[2,5,3] y)
    <int64[1] z = {0}, int64[1] one = {1}, int64[1] five = {5}, int64[3] twice = {2, 1, 1}> {
      c = Concat<axis = 1>(token, x) p = Add(c, position)
      head = Slice(p, z, one, one) tail = Slice(p, one, five, one)
      heads = Tile(head, twice) both = Concat<axis = 0>(tail, tail)
      y = Concat<axis = 1>(heads, both) }"""
    before = weighted(body, {"token": (1, 1, 3), "position": (1, 5, 3)})
    after = run_passes(before, push_slices, fold_constants, remove_noops)
    assert ops(after) == {"Add": 1, "Concat": 2} and same(before, after)


def test_a_bias_is_not_cut_apart_by_slices() -> None:
    body = """g (float[2,3] x) => (float[2,1] y, float[2,3] z)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] four = {4}> {
      a = MatMul(x, w) c = Add(a, b) y = Slice(c, zero, one, one) z = Slice(c, one, four, one) }"""
    before = weighted(body, {"w": (3, 4), "b": (4,)})
    after = run_passes(before, push_slices)
    assert ops(after) == {"MatMul": 1, "Add": 1, "Slice": 2} and same(before, after)


@pytest.mark.parametrize(
    ("index", "left"),
    [("int64 i = {2}", {"Slice": 1, "Reshape": 1}), ("int64[2] i = {1, 2}", {"Slice": 1}),
     ("int64[2] i = {2, 1}", {"Gather": 1}), ("int64[1] i = {-1}", {"Slice": 1})],
)  # fmt: skip
def test_gather_of_a_range_is_a_slice(index: str, left: dict[str, int]) -> None:
    before = model_of(f"g (float[2,4,3] x) => (float[A,B,C] y) <{index}> "
                      "{ a = Gather<axis = 1>(x, i) y = Relu(a) }")  # fmt: skip
    rank = 2 if "int64 i" in index else 3
    del before.graph.output[0].type.tensor_type.shape.dim[rank:]
    after = run_passes(before, slice_gathers)
    assert ops(after) == left | {"Relu": 1} and same(before, after)


def test_equal_chains_before_a_concat_are_one_behind_it() -> None:
    parts = " ".join(
        f"a{i} = Reshape(x{i}, s{i}) b{i} = Transpose<perm = [0, 3, 1, 2]>(a{i}) "
        f"c{i} = Slice(b{i}, zero, three, two)"
        for i in (1, 2)
    )
    body = f"""g (float[1,20,2] x1, float[1,20,3] x2) => (float[1,5,3,5] y)
    <int64[4] s1 = {{1,4,5,2}}, int64[4] s2 = {{1,4,5,3}}, int64[1] zero = {{0}},
     int64[1] three = {{3}}, int64[1] two = {{2}}> {{ {parts} y = Concat<axis = 1>(c1, c2) }}"""
    before = model_of(body)
    after = run_passes(before, hoist_concats)
    assert ops(after) == {"Concat": 1, "Reshape": 1, "Transpose": 1, "Slice": 1}
    assert same(before, after)


def test_query_selection_gathers_rows() -> None:
    body = """g (float[1,9,4] x, float[1,9] s) => (float[1,3,4] y)
    <int64[1] k = {3}, int64[1] last = {-1}, int64[3] four = {1, 1, 4}> {
      v, i = TopK(s, k) u = Unsqueeze(i, last) t = Tile(u, four)
      y = GatherElements<axis = 1>(x, t) }"""
    before = model_of(body)
    after = run_passes(before, remove_noops, gather_rows, remove_noops)
    assert ops(after) == {"TopK": 1, "Reshape": 1, "Gather": 1} and same(before, after)


def test_a_zero_pad_goes_into_the_convolution_and_another_does_not() -> None:
    body = """g (float[1,2,4,4] x) => (float[1,3,A,B] y)
    <int64[8] p = {0,0,1,2,0,0,0,1}, float v = {%s}> { a = Pad(x, p, v) y = Conv(a, w) }"""
    for value, left in (("0.0", {"Conv": 1}), ("1.0", {"Pad": 1, "Conv": 1})):
        before = weighted(body % value, {"w": (3, 2, 3, 3)})
        after = run_passes(before, fold_pads)
        assert ops(after) == left and same(before, after)


GUARD = """g (float[2,3,3] x) => (float[2,3,3] y) <float zero = {0.0}> {
  %s s = Softmax<axis = -1>(m) n = IsNaN(s) y = Where(n, zero, s) }"""


def test_a_nan_guard_without_a_mask_goes() -> None:
    before = weighted(GUARD % "a = MatMul(x, x) m = Add(a, w)", {"w": (3, 3)})
    after = run_passes(before, drop_nan_guards)
    assert ops(after) == {"MatMul": 1, "Add": 1, "Softmax": 1} and same(before, after)


def test_a_nan_guard_of_a_fully_masked_row_stays() -> None:
    before = model_of(GUARD % "a = MatMul(x, x) m = Add(a, w)")
    mask = np.zeros((3, 3), np.float32)
    mask[1] = -np.inf
    before.graph.initializer.append(numpy_helper.from_array(mask, "w"))
    after = run_passes(before, drop_nan_guards)
    assert ops(after)["Where"] == 1 and same(before, after)


ONE_D = {
    "Conv": ("float[1,4,9] x) => (float[1,6,5] y",
             "Conv<strides = [2], pads = [1, 1], kernel_shape = [3]>(x, w)", {"w": (6, 4, 3)}),
    "ConvTranspose": ("float[1,4,5] x) => (float[1,6,11] y",
                      "ConvTranspose<strides = [2]>(x, w)", {"w": (4, 6, 3)}),
    "MaxPool": ("float[1,4,8] x) => (float[1,4,4] y",
                "MaxPool<kernel_shape = [2], strides = [2]>(x)", {}),
    "InstanceNormalization": ("float[1,4,8] x) => (float[1,4,8] y",
                              "InstanceNormalization(x, w, b)", {"w": (4,), "b": (4,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_D)
def test_one_dimension_is_two_of_height_one(name: str) -> None:
    shapes, call, weights = ONE_D[name]
    before = weighted(f"g ({shapes}) {{ y = {call} }}", weights)
    after = run_passes(before, lift_one_dimension)
    assert ops(after) == {name: 1, "Reshape": 2} and same(before, after, tolerance=1e-5)


EINSUM = {
    "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "bchw,bnc->bnhw": ((2, 3, 4, 5), (2, 6, 3)),
    "ij,jk": ((3, 4), (4, 5)),
    "bqnc,bnchw->bqnhw": ((1, 3, 2, 4), (1, 2, 4, 3, 5)),
}


@pytest.mark.parametrize("equation", EINSUM)
def test_an_einsum_of_two_is_a_matmul(equation: str) -> None:
    left, right = (",".join(map(str, s)) for s in EINSUM[equation])
    result = np.einsum(equation, *(np.zeros(s) for s in EINSUM[equation])).shape
    before = model_of(
        f"g (float[{left}] x, float[{right}] z) => (float[{','.join(map(str, result))}] y) "
        f'{{ y = Einsum<equation = "{equation}">(x, z) }}'
    )
    after = run_passes(before, expand_einsum)
    assert ops(after)["MatMul"] == 1 and "Einsum" not in ops(after)
    assert same(before, after)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_arithmetic_on_random_chains_keeps_the_numbers(data: st.DataObject) -> None:
    steps, value = [], "x"
    for index in range(data.draw(st.integers(1, 6))):
        op = data.draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "Transpose", "Pow"]))
        name = f"v{index}"
        if op == "Transpose":
            steps.append(f"{name} = Transpose<perm = [1, 0]>({value})")
        else:
            number = 2.0 if op == "Pow" else data.draw(st.sampled_from([0.5, 1.0, -2.0, 3.0]))
            steps.append(f"c{index} = Constant<value = float {{{number}}}>()")
            pair = f"{value}, c{index}"
            if op in ("Add", "Mul") and data.draw(st.booleans()):
                pair = f"c{index}, {value}"
            steps.append(f"{name} = {op}({pair})")
        value = name
    body = f"g (float[3,3] x) => (float[3,3] y) {{ {' '.join(steps)} y = Identity({value}) }}"
    before = model_of(body)
    after = run_passes(before, simplify_arithmetic, merge_constants, remove_noops)
    assert same(before, after, tolerance=1e-5)


@pytest.mark.parametrize("affine", ["a = Mul(back, s) y = Add(a, b)", "y = Mul(back, s)", ""])
def test_group_normalization_out_of_instance_normalization(affine: str) -> None:
    out = "y" if not affine else "back"
    body = f"""g (float[2,6,3,3] x) => (float[2,6,3,3] y)
    <int64[3] split = {{0, 2, -1}}, int64[4] whole = {{2, 6, 3, 3}}> {{
      r = Reshape(x, split) n = InstanceNormalization<epsilon = 0.001>(r, gs, gb)
      {out} = Reshape(n, whole) {affine} }}"""
    shapes = {"gs": (2,), "gb": (2,), "s": (6, 1, 1), "b": (1, 6, 1, 1)}
    before = weighted(body, shapes)
    after = run_passes(before, fuse_group_norm)
    assert ops(after) == {"GroupNormalization": 1} and same(before, after, tolerance=1e-5)


@pytest.mark.parametrize(
    ("bounds", "left"),
    [("low, high", {"Max": 1, "Min": 1}), ("low", {"Max": 1}), (", high", {"Min": 1})],
)
def test_a_clip_by_computed_bounds_is_max_and_min(bounds: str, left: dict[str, int]) -> None:
    before = model_of(
        f"g (float[2,3] x, float low, float high) => (float[2,3] y) {{ y = Clip(x, {bounds}) }}"
    )
    after = run_passes(before, simplify_arithmetic)
    assert ops(after) == left and same(before, after)
