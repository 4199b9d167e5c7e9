"""Loops, scans and lists of tensors that have a static form, and those that have none."""

from __future__ import annotations

import onnx
import pytest

from splitter.diagnostics import SplitterError
from splitter.normalize import normalize
from tests.normalize.support import as_model, model_of, ops, same

GOING = "going = Constant<value = bool {1}>()"


def unrolled(body: str, *, opset: int = 17) -> onnx.ModelProto:
    model = model_of(body, opset=opset)
    after = normalize(as_model(model)).proto
    assert same(model, after)
    assert not set(ops(after)) & {"Loop", "Scan", "If"}
    return after


def test_a_loop_with_a_fixed_count_is_its_turns() -> None:
    after = unrolled("""g (float[2,3] x) => (float[2,3] y, float[4,2,3] all) {
      count = Constant<value = int64 {4}>()
      going = Constant<value = bool {1}>()
      y, all = Loop(count, going, x)<body = b (int64 i, bool c, float[2,3] s)
          => (bool d, float[2,3] t, float[2,3] u) {
        d = Identity(c)
        k = Cast<to = 1>(i)
        s1 = Add(s, k)
        t = Sin(s1)
        u = Mul(t, x)
      }>
    }""")
    assert ops(after)["Sin"] == 4


def test_a_condition_that_folds_ends_the_loop() -> None:
    after = unrolled("""g (float[2] x) => (float[2] y) {
      count = Constant<value = int64 {9223372036854775807}>()
      going = Constant<value = bool {1}>()
      zero = Constant<value = int64 {0}>()
      n, y = Loop(count, going, zero, x)<body = b (int64 i, bool c, int64 k, float[2] s)
          => (bool d, int64 l, float[2] t) {
        one = Constant<value = int64 {1}>()
        three = Constant<value = int64 {3}>()
        l = Add(k, one)
        d = Less(l, three)
        t = Tanh(s)
      }>
    }""")
    assert ops(after)["Tanh"] == 3


def test_shapes_that_grow_from_turn_to_turn_are_static() -> None:
    after = unrolled("""g (float[1,2] x) => (float[4,2] y) {
      count = Constant<value = int64 {3}>()
      y0 = Loop(count, , x)<body = b (int64 i, bool c, float[n,2] s) => (bool d, float[m,2] t) {
        d = Identity(c)
        t = Concat<axis = 0>(s, x)
      }>
      y = Relu(y0)
    }""")
    assert "Concat" in ops(after)


def test_turns_share_the_constants_of_the_body() -> None:
    model = model_of("""g (float[2,64] x) => (float[2,64] y) {
      count = Constant<value = int64 {8}>()
      y = Loop(count, , x)<body = b (int64 i, bool c, float[2,64] s) => (bool d, float[2,64] t) {
        d = Identity(c)
        m = MatMul(s, w)
        t = Tanh(m)
      }>
    }""")
    body = model.graph.node[1].attribute[0].g
    data = [[0.01 * (i - j) for i in range(64)] for j in range(64)]
    flat = [value for row in data for value in row]
    body.initializer.append(onnx.helper.make_tensor("w", 1, (64, 64), flat))
    after = normalize(as_model(model)).proto
    assert same(model, after)
    assert sum(tensor.dims[:] == [64, 64] for tensor in after.graph.initializer) == 1


def test_a_loop_in_a_loop_reads_values_of_both_outsides() -> None:
    after = unrolled("""g (float[2] x) => (float[2] y) {
      two = Constant<value = int64 {2}>()
      y = Loop(two, , x)<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        d = Identity(c)
        s1 = Exp(s)
        t = Loop(two, , s)<body = inner (int64 j, bool e, float[2] p) => (bool f, float[2] q) {
          f = Identity(e)
          p1 = Mul(p, s1)
          q = Sub(p1, x)
        }>
      }>
    }""")
    assert ops(after)["Exp"] == 2 and ops(after)["Sub"] == 4


def test_a_choice_inside_a_loop_is_decided_by_the_turn() -> None:
    after = unrolled("""g (float[2] x) => (float[2] y) {
      three = Constant<value = int64 {3}>()
      y = Loop(three, , x)<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        d = Identity(c)
        one = Constant<value = int64 {1}>()
        middle = Equal(i, one)
        t = If(middle)<then_branch = a () => (float[2] p) { p = Exp(s) },
                       else_branch = z () => (float[2] q) { q = Sin(s) }>
      }>
    }""")
    assert ops(after) == {"Sin": 2, "Exp": 1}


@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan_is_its_turns(backward: int) -> None:
    unrolled(f"""g (float[2] start, float[2,5] x) => (float[2] last, float[5,2] y) {{
      last, y = Scan<num_scan_inputs = 1, scan_input_axes = [1],
                     scan_input_directions = [{backward}], scan_output_directions = [{backward}],
                     body = b (float[2] s, float[2] e) => (float[2] t, float[2] o) {{
        s1 = Add(s, e)
        t = Tanh(s1)
        o = Mul(t, e)
      }}>(start, x)
    }}""")


def test_a_list_that_a_loop_fills_is_put_together() -> None:
    after = unrolled("""g (float[2,6] x) => (float[3,2,2] y, int64 n) {
      empty = SequenceEmpty()
      three = Constant<value = int64 {3}>()
      two = Constant<value = int64 {2}>()
      parts = SplitToSequence<axis = 1>(x, two)
      list = Loop(three, , empty)<body = b (int64 i, bool c, seq(float) s)
          => (bool d, seq(float) t) {
        d = Identity(c)
        part = SequenceAt(parts, i)
        p = Sin(part)
        t = SequenceInsert(s, p)
      }>
      y = ConcatFromSequence<axis = 0, new_axis = 1>(list)
      n = SequenceLength(list)
    }""")
    assert ops(after)["Sin"] == 3


def test_lists_are_taken_apart_and_put_together() -> None:
    after = unrolled("""g (float[3,4] x, float[1,4] z) => (float[3,4] y, float[4] first) {
      one = Constant<value = int64 {1}>()
      last = Constant<value = int64 {-1}>()
      rows = SplitToSequence<axis = 0, keepdims = 0>(x)
      r = SequenceAt(rows, one)
      first = Neg(r)
      list = SplitToSequence<axis = 0>(x, one)
      a = SequenceErase(list, last)
      b = SequenceInsert(a, z, one)
      y = ConcatFromSequence<axis = 0>(b)
    }""")
    assert not any("Sequence" in op for op in ops(after))


WHILE = """g (float[2] x, int64 n) => (float[2] y) {
  zero = Constant<value = int64 {0}>()
  start = Less(zero, n)
  i, y = Loop(, start, zero, x)<body = b (int64 turn, bool c, int64 k, float[2] s)
      => (bool d, int64 l, float[2] t) {
    one = Constant<value = int64 {1}>()
    l = Add(k, one)
    d = Less(l, n)
    t = Tanh(s)
  }>
}"""


def test_a_loop_that_data_ends_is_refused_with_the_input_that_decides() -> None:
    with pytest.raises(SplitterError) as caught:
        normalize(as_model(model_of(WHILE)))
    text = str(caught.value)
    assert "Loop" in text and "computed from n" in text and "hint" in text


def test_a_loop_without_end_is_refused() -> None:
    body = """g (float[2] x) => (float[2] y) {
      y = Loop(, , x)<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        d = Constant<value = bool {1}>()
        t = Tanh(s)
      }>
    }"""
    with pytest.raises(SplitterError, match="over 1024 turns"):
        normalize(as_model(model_of(body)))
