"""Cutting a model where TFLite ends: what is before, what is behind, and that nothing is lost."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitter.diagnostics import Unsupported
from splitter.graph import Array
from splitter.layout import layout
from splitter.lower import refuse_unknown
from splitter.model import Model
from splitter.normalize import normalize
from splitter.reference import OnnxRunner
from splitter.remainder import MOST, Remainder, named_in_full, split_off
from tests.normalize.support import as_model, model_of

DETECTOR = """g (float[1,3,8,8] image) => (float[K,4] found, float mean, int64 rows)
    <float[4,3,1,1] w, float offset> {
  features = Conv(image, w)
  shape = Shape(features)
  one = Constant<value = int64[1] {1}>()
  width = Gather<axis = 0>(shape, one)
  least = Constant<value = int64[1] {-1}>()
  two = Concat<axis = 0>(least, width)
  boxes = Reshape(features, two)
  scores = ReduceMax<keepdims = 0>(boxes, one)
  limit = Constant<value = float {0.5}>()
  over = Greater(scores, limit)
  places = NonZero(over)
  where = Transpose<perm = [1, 0]>(places)
  picked = GatherND(boxes, where)
  again = Reshape(picked, two)
  found = Add(again, offset)
  counted = Shape(found)
  zero = Constant<value = int64 {0}>()
  rows = Gather<axis = 0>(counted, zero)
  mean = ReduceMean<keepdims = 0>(boxes)
}"""

WHILE = """g (float[1,3,8,8] x, int64 n) => (float[1,4,8,8] y) <float[4,3,1,1] w> {
  zero = Constant<value = int64 {0}>()
  start = Less(zero, n)
  c0 = Conv(x, w)
  i, last = Loop(, start, zero, c0)<body = b (int64 turn, bool c, int64 k, float[1,4,8,8] s)
      => (bool d, int64 l, float[1,4,8,8] t) {
    one = Constant<value = int64 {1}>()
    l = Add(k, one)
    d = Less(l, n)
    u = Tanh(s)
    t = Mul(u, c0)
  }>
  y = Relu(last)
}"""


def detector() -> Model:
    return as_model(model_of(DETECTOR, opset=18))


def run_both(model: Model, sample: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """The outputs of the whole, and of the two pieces one after the other."""
    head, remainder = split_off(model, shapes={})
    assert remainder is not None
    values = {**sample, **OnnxRunner(head.proto).run(sample)}
    made = OnnxRunner(remainder.proto).run({p.name: values[p.name] for p in remainder.inputs})
    together = {**values, **made}
    return OnnxRunner(model.proto).run(sample), {n: together[n] for n in remainder.results}


def cut(model: Model) -> tuple[Model, Remainder]:
    head, remainder = split_off(model, shapes={})
    assert remainder is not None
    onnx.checker.check_model(remainder.proto)
    return head, remainder


def image(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)


def test_a_model_that_is_static_is_left_whole() -> None:
    model = as_model(model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))
    assert split_off(model, shapes={}) == (model, None)


def test_the_pieces_one_after_the_other_are_the_whole() -> None:
    whole, pieces = run_both(detector(), {"image": image()})
    assert list(pieces) == ["found", "mean", "rows"]
    assert whole["found"].shape[0] not in (0, 64)
    for name, expected in whole.items():
        np.testing.assert_array_equal(pieces[name], expected)


def test_only_what_data_decides_and_what_follows_is_behind() -> None:
    head, remainder = cut(detector())
    assert [out.name for out in head.outputs] == ["boxes", "mean"]
    assert [cause.nodes for cause in remainder.causes] == [("NonZero_places",)]
    ops = [node.op_type for node in remainder.proto.graph.node]
    assert "NonZero" in ops and "Conv" not in ops and "ReduceMean" not in ops
    assert [(p.name, p.shape) for p in remainder.outputs] == [("found", (None, 4)), ("rows", ())]


def test_shapes_of_what_comes_before_are_constants_behind() -> None:
    _, remainder = cut(detector())
    shapes = [node for node in remainder.proto.graph.node if node.op_type == "Shape"]
    assert [node.input[0] for node in shapes] == ["found"]
    assert [port.name for port in remainder.inputs] == ["boxes"]


def test_the_part_keeps_the_opset_of_the_file() -> None:
    _, remainder = cut(detector())
    assert [entry.version for entry in remainder.proto.opset_import if not entry.domain] == [18]


@pytest.mark.parametrize("turns", [0, 3])
def test_a_loop_that_data_ends_reads_values_from_before_inside_its_body(turns: int) -> None:
    model = as_model(model_of(WHILE))
    _, remainder = cut(model)
    assert {port.name for port in remainder.inputs} == {"c0", "start", "n"}
    assert remainder.causes[0].op == "Loop" and "computed from n" in remainder.causes[0].why
    whole, pieces = run_both(model, {"x": image(), "n": np.asarray(turns, np.int64)})
    np.testing.assert_array_equal(pieces["y"], whole["y"])


def test_a_model_of_which_nothing_is_left_for_tflite_is_an_onnx_part_as_a_whole() -> None:
    model = as_model(model_of("g (float[4] x) => (int64[1,K] y) { y = NonZero(x) }"))
    head, remainder = cut(model)
    assert head.outputs == () and [value.shape for value in head.inputs] == [(4,)]
    assert [node.op_type for node in remainder.proto.graph.node] == ["NonZero"]
    assert [port.name for port in remainder.inputs] == ["x"] and remainder.results == ("y",)


def test_where_no_cut_helps_none_is_proposed() -> None:
    model = as_model(model_of("g (float[4] x) => (int64[1,K] y) { y = NonZero(x) }"))
    with pytest.raises(Unsupported) as refused, named_in_full(model, shapes={}):
        normalize(model, shapes={})
    assert "ONNX Runtime runs the file as it is" in refused.value.hint
    assert "--" not in refused.value.hint, "no option is named that does not help"


def test_where_too_many_values_lie_between_their_number_is_told() -> None:
    many = range(MOST + 1)
    steps = "\n".join(f"a{i} = Conv(x, w) b{i} = Relu(a{i}) c{i} = Det(b{i})" for i in many)
    outputs = ", ".join(f"float[1,4] c{i}" for i in many)
    body = f"g (float[1,3,8,8] x) => ({outputs}) <float[4,3,1,1] w> {{ {steps} }}"
    model = as_model(model_of(body))
    with pytest.raises(Unsupported) as refused, named_in_full(model, shapes={}):
        refuse_unknown(layout(normalize(model)))
    assert f"{MOST + 1} values lie between" in refused.value.hint
    head, remainder = cut(model)
    assert head.outputs == () and remainder.operators == 3 * (MOST + 1), (
        "all of it is the ONNX part"
    )


UNWRITTEN = """g (float[1,2,8,8] x) => (float[K,2] y, float[1] d) <float[2,2,3,3] w> {
  c = Conv<pads = [1,1,1,1]>(x, w)
  det = Det(c)
  one = Constant<value = int64[1] {1}>()
  d = ReduceMax<keepdims = 0>(det, one)
  zero = Constant<value = float {0.0}>()
  over = Greater(det, zero)
  places = NonZero(over)
  rows = Transpose<perm = [1, 0]>(places)
  f = Cast<to = 1>(rows)
  sums = Einsum<equation = "ij,ik->ijk">(f, f)
  y = ReduceMax<keepdims = 0>(sums, one)
}"""


def test_an_operator_without_a_lowering_is_behind_too() -> None:
    model = as_model(model_of(UNWRITTEN, opset=18))
    head, remainder = cut(model)
    assert [out.name for out in head.outputs] == ["c"]
    assert {cause.op for cause in remainder.causes} == {"Det", "NonZero"}
    whole, pieces = run_both(model, {"x": np.resize(image(), (1, 2, 8, 8))})
    np.testing.assert_array_equal(pieces["y"], whole["y"])


def test_a_refusal_names_operators_of_every_kind_and_where_to_end_before_them() -> None:
    model = as_model(model_of(UNWRITTEN, opset=18))
    with pytest.raises(Unsupported) as caught, named_in_full(model, shapes={}):
        normalize(model)
    assert "NonZero NonZero_places: the shape" in caught.value.what
    assert "Det Det_det: no lowering" in caught.value.what
    assert "--outputs c ends" in caught.value.hint and "--cpu-runtime" in caught.value.hint


def test_many_refused_operators_of_one_kind_are_told_by_a_few_and_their_number() -> None:
    steps = "\n".join(f"c{i} = Det(f) d{i} = Mul(c{i}, k)" for i in range(9))
    outputs = ", ".join(f"float[1] d{i}" for i in range(9))
    body = f"g (float[1,2,4,4] x, float k) => ({outputs}) {{ f = Relu(x) {steps} }}"
    with pytest.raises(Unsupported) as caught, named_in_full(as_model(model_of(body)), shapes={}):
        raise Unsupported(())
    assert "  Det Det_c0, Det_c1, Det_c2 and 6 more: no lowering" in caught.value.what
    assert "--json names every node" in caught.value.what
    assert sorted(cause.nodes[0] for cause in caught.value.causes)[-1] == "Det_c8"


def test_what_no_runtime_has_is_not_offered_to_onnx_runtime() -> None:
    """As tf2onnx leaves what it cannot translate."""
    body = """g (float[1,2,4,4] x) => (float[1,2,4,4] y) {
      f = Relu(x)
      a = TFL_GELU(f)
      y = Neg(a)
    }"""
    with pytest.raises(Unsupported) as caught, named_in_full(as_model(model_of(body)), shapes={}):
        normalize(as_model(model_of(body)))
    assert "neither ONNX nor ONNX Runtime has such an operator" in caught.value.what
    assert "--outputs f ends the model" in caught.value.hint
    assert "--cpu-runtime" not in caught.value.hint and "TFL_GELU is written" in caught.value.hint


TAILS = {
    "an If whose branches differ": """g (float[1,2,4,4] x, bool c) => (float[a,b,d,e] y)
        <float[2,2,3,3] w> {
      f = Conv<pads = [1,1,1,1]>(x, w)
      y = If(c)<then_branch = p () => (float[1,2,4,4] u) { u = Relu(f) },
                else_branch = q () => (float[1,1,4,4] v) {
                  one = Constant<value = int64[1] {1}>()
                  v = ReduceMax(f, one)
                }>
    }""",
    "a loop of too many turns": """g (float[1,2,4,4] x, bool c) => (float[1,2,4,4] y)
        <float[2,2,3,3] w> {
      f = Conv<pads = [1,1,1,1]>(x, w)
      n = Constant<value = int64 {3000}>()
      y = Loop(n, , f)<body = b (int64 i, bool g, float[1,2,4,4] s)
          => (bool d, float[1,2,4,4] t) { d = Identity(g) t = Sin(s) }>
    }""",
    "NonMaxSuppression": """g (float[1,2,4,4] x, bool c) => (int64[K,3] y) <float[5,2,3,3] w> {
      f = Conv<pads = [1,1,1,1]>(x, w)
      rows = Constant<value = int64[3] {1, 5, 16}>()
      r = Reshape(f, rows)
      parts = Constant<value = int64[2] {4, 1}>()
      b, scores = Split<axis = 1>(r, parts)
      boxes = Transpose<perm = [0, 2, 1]>(b)
      most = Constant<value = int64[1] {6}>()
      over = Constant<value = float[1] {0.5}>()
      least = ReduceMean<keepdims = 0>(scores)
      y = NonMaxSuppression<center_point_box = 1>(boxes, scores, most, over, least)
    }""",
    "strings": """g (float[1,2,4,4] x, bool c) => (string[1,2,4,4] y) <float[2,2,3,3] w> {
      f = Conv<pads = [1,1,1,1]>(x, w)
      r = Round(f)
      y = Cast<to = 8>(r)
    }""",
}
REASONS = {
    "an If whose branches differ": "its branches differ: y is (1, 2, 4, 4) in one and (1, 1, 4, 4)",
    "a loop of too many turns": "it takes 3000 turns",
    "NonMaxSuppression": "the shape of its result depends on data",
    "strings": "strings have no TFLite form",
}


@pytest.mark.parametrize("name", TAILS)
def test_what_else_has_no_tflite_form_is_behind_with_its_reason(name: str) -> None:
    model = as_model(model_of(TAILS[name], opset=18))
    _, remainder = cut(model)
    assert remainder.causes[0].why.startswith(REASONS[name])
    sample = {"x": np.resize(image(), (1, 2, 4, 4)), "c": np.asarray(False)}
    whole, pieces = run_both(model, sample)
    np.testing.assert_array_equal(pieces["y"], whole["y"])
    with pytest.raises(Unsupported, match="no TFLite form"):
        normalize(model)
