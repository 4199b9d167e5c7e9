"""Files that are wrong in themselves: the node and what ONNX has against it are told."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError, Unsupported
from splitter.normalize import normalize, opened
from splitter.remainder import split_off
from tests.normalize.support import as_model, model_of

WRONG = {
    "MatMul MatMul_y: Incompatible dimensions for matrix multiplication (a float32 [2, 3], w": """
      g (float[2,3] x) => (float[A,B] y) <float[4,5] w> { a = Relu(x) y = MatMul(a, w) }""",
    "Add Add_y: Incompatible dimensions (x float32 [2, 3], w float32 [2, 4])": """
      g (float[2,3] x) => (float[A,B] y) <float[2,4] w> { y = Add(x, w) }""",
    "Add Add_y: B has inconsistent type tensor(int64)": """
      g (float[2,3] x, int64[2,3] z) => (float[A,B] y) { y = Add(x, z) }""",
    "Transpose Transpose_y: Invalid attribute perm {0, 1, 2}": """
      g (float[2,3] x) => (float[A,B] y) { y = Transpose<perm = [0,1,2]>(x) }""",
    "Split Split_y: Mismatch between the sum of 'split' (8)": """
      g (float[2,3] x) => (float[A,B] y, float[A,B] z) {
        s = Constant<value = int64[2] {4, 4}>()
        y, z = Split<axis = 1>(x, s)
      }""",
    "Reshape Reshape_y: [2, 3] has 6 elements, [4, 4] 16": """
      g (float[2,3] x) => (float[A,B] y) {
        s = Constant<value = int64[2] {4, 4}>()
        y = Reshape(x, s)
      }""",
    "Conv Conv_y: [4, 2, 1, 1] takes 2 channels, [1, 3, 8, 8] has 3": """
      g (float[1,3,8,8] x) => (float[1,4,8,8] y) <float[4,2,1,1] w> { y = Conv(x, w) }""",
    "ConvTranspose ConvTranspose_y: [4, 2, 1, 1] takes 4 channels, [1, 3, 8, 8] has 3": """
      g (float[1,3,8,8] x) => (float[1,2,8,8] y) <float[4,2,1,1] w> { y = ConvTranspose(x, w) }""",
}


@pytest.mark.parametrize("expected", WRONG)
def test_a_node_that_does_not_fit_its_inputs_is_named_with_what_is_wrong(expected: str) -> None:
    with pytest.raises(SplitterError) as caught:
        normalize(as_model(model_of(WRONG[expected])))
    assert not isinstance(caught.value, Unsupported)
    assert "the file is not valid" in caught.value.what and expected in caught.value.what
    assert "depends on data" not in str(caught.value) and "--cpu-runtime" not in str(caught.value)


def test_all_such_nodes_are_named_and_none_that_only_follows() -> None:
    body = """g (float[2,3] x) => (float[A,B] y, float[A,B] z) <float[4,5] w, float[2,4] v> {
      a = MatMul(x, w)
      y = Relu(a)
      z = Add(x, v)
    }"""
    with pytest.raises(SplitterError, match="2 nodes do") as caught:
        normalize(as_model(model_of(body)))
    assert "MatMul_a" in caught.value.what and "Add_z" in caught.value.what
    assert "Relu" not in caught.value.what


def test_onnx_runtime_is_no_way_out_for_a_file_that_is_wrong() -> None:
    body = "g (float[2,3] x) => (float[A,B] y) <float[4,5] w> { a = Relu(x) y = MatMul(a, w) }"
    with pytest.raises(SplitterError, match="the file is not valid"):
        split_off(as_model(model_of(body)), shapes={})


def test_behind_what_data_decides_a_wrong_node_is_still_told() -> None:
    body = """g (float[2,3] x) => (float[A,B] y) <float[4,5] w> {
      i = NonZero(x)
      f = Cast<to = 1>(i)
      t = Transpose<perm = [1, 0]>(f)
      y = MatMul(t, w)
    }"""
    with pytest.raises(SplitterError, match=r"MatMul MatMul_y: .*\(t float32 \[\?, 2\]"):
        normalize(as_model(model_of(body)))


def test_a_body_that_onnx_cannot_infer_without_its_surroundings_is_not_called_wrong() -> None:
    body = """g (float[1] x, int64 n, bool c) => (float[1] y, float[K,1] all) {
      y, all = Loop(n, c, x)<body = b (int64 i, bool go, float[1] s)
          => (bool on, float[1] t, float[1] scan) {
        on = Identity(go)
        k = Cast<to = 1>(i)
        u = Unsqueeze<axes = [0]>(k)
        t = Add(s, u)
        scan = Identity(t)
      }>
    }"""
    draft = opened(as_model(model_of(body, opset=11)))
    assert [node.op for node in draft.rejected if draft.alive(node)] == ["Loop"]
    with pytest.raises(Unsupported, match="Loop"):
        normalize(as_model(model_of(body, opset=11)))


@pytest.mark.parametrize("place", [3, -4])
def test_a_place_that_is_not_there_is_told_with_its_node(place: int) -> None:
    body = f"""g (float[3,2] x) => (float[2] y) {{
      i = Constant<value = int64 {{{place}}}>() row = Gather<axis = 0>(x, i) y = Relu(row)
    }}"""
    with pytest.raises(SplitterError, match=rf"Gather Gather_row: it reads at {place} of 3"):
        normalize(as_model(model_of(body)))
