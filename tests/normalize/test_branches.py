"""An If whose condition is computed from an input."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.normalize import normalize
from splitter.normalize.branches import select_branches
from splitter.normalize.check import check
from tests.normalize.support import as_model, model_of, ops, run_passes

CHOICE = """g (int64{shape} rate, float[2,3] x) => (float[2,3] y, float[2,3] z) {{
  wide = Constant<value = int64 {{16000}}>()
  c = Equal(rate, wide)
  y, z = If (c) <
    then_branch = a () => (float[2,3] t, float[2,3] u) {{ t = Relu(x) u = Neg(t) }},
    else_branch = b () => (float[2,3] v, float[2,3] w) {{
      axes = Constant<value = int64[1] {{1}}>()
      m = ReduceMean<axes = [1]>(x)
      v = Sub(x, m)
      w = Sigmoid(v)
    }}
  >
}}"""


@pytest.mark.parametrize("shape", ["", "[1]"])
def test_both_branches_are_computed_and_the_condition_selects(shape: str) -> None:
    before = model_of(CHOICE.format(shape=shape))
    after = run_passes(before, select_branches)
    assert ops(after)["Where"] == 2 and "If" not in ops(after)
    x = np.array([[-1, 0, 4], [2, -3, 1]], np.float32)
    rates = [np.full((1,) * bool(shape), value, np.int64) for value in (16000, 8000)]
    samples = [{"x": x, "rate": rate} for rate in rates]
    assert max(check(before, after, samples).values()) == 0


def test_an_if_inside_a_branch_is_decided_too() -> None:
    body = """g (float[2] x, bool c, bool d) => (float[2] y) {
      y = If (c) <
        then_branch = a () => (float[2] t) {
          t = If (d) <
            then_branch = b () => (float[2] u) { u = Relu(x) },
            else_branch = e () => (float[2] v) { v = Neg(x) }
          >
        },
        else_branch = f () => (float[2] w) { w = Exp(x) }
      >
    }"""
    before = model_of(body)
    after = run_passes(before, select_branches)
    assert ops(after) == {"Where": 2, "Relu": 1, "Neg": 1, "Exp": 1}
    samples = [
        {"x": np.float32([-1, 2]), "c": np.array(c), "d": np.array(d)}
        for c in (True, False)
        for d in (True, False)
    ]
    assert max(check(before, after, samples).values()) == 0


def test_old_forms_inside_a_branch_become_canonical() -> None:
    after = run_passes(model_of(CHOICE.format(shape=""), opset=11), select_branches)
    (mean,) = [node for node in after.graph.node if node.op_type == "ReduceMean"]
    assert len(mean.input) == 2 and not [a for a in mean.attribute if a.name == "axes"]


def test_branches_of_different_shapes_are_refused() -> None:
    body = """g (float[2,3] x, bool c) => (float[A,B] y) {
      y = If (c) <
        then_branch = a () => (float[2,3] t) { t = Relu(x) },
        else_branch = b () => (float[3,2] u) { u = Transpose<perm = [1, 0]>(x) }
      >
    }"""
    with pytest.raises(SplitterError, match=r"\(2, 3\) in one and \(3, 2\) in the other"):
        normalize(as_model(model_of(body)))


def test_a_length_that_one_branch_leaves_to_data_is_not_taken_from_the_other() -> None:
    """As torchvision's detectors are exported: no boxes at all, or those that NMS keeps."""
    body = """g (float[6] x, bool c) => (float[N] y) {
      kept = If (c) <
        then_branch = a () => (int64[0] t) { t = Constant <value = int64[0] {}> () },
        else_branch = b () => (int64[K] u) {
          big = Cast<to = 9>(x)
          found = NonZero(big)
          one = Constant <value_ints = [0]> ()
          u = Squeeze(found, one)
        }
      >
      length = Shape(kept)
      y = ConstantOfShape(length)
    }"""
    with pytest.raises(SplitterError) as caught:
        normalize(as_model(model_of(body)))
    assert "kept is (0,) in one and (?,) in the other" in str(caught.value)
