"""Assignments to a part of a tensor, as exporters write them: ScatterND at constant places."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from splitter.normalize import normalize
from splitter.normalize.assignments import box_of, write_assignments
from tests.normalize.support import as_model, model_of, ops, run_passes, same

BODY = """g (float[2,3,6] x, float[{updates}] u) => (float[2,3,6] y) {{
  y0 = ScatterND<reduction = "{reduction}">(x, places, u)
  y = Relu(y0)
}}"""


def assigned(
    places: np.ndarray, updates: tuple[int, ...], reduction: str = "none"
) -> onnx.ModelProto:
    text = BODY.format(updates=",".join(map(str, updates)), reduction=reduction)
    model = model_of(text, opset=18)
    model.graph.initializer.append(numpy_helper.from_array(places.astype(np.int64), "places"))
    return model


def grid(*ranges: range) -> np.ndarray:
    return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1)


@pytest.mark.parametrize(
    "ranges",
    [
        (range(2), range(3), range(2, 5)),
        (range(2), range(1, 3), range(6)),
        (range(1, 2), range(3), range(4)),
        (range(1), range(1, 2)),
        (range(2), range(3), range(6)),
    ],
    ids=str,
)
@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_a_box_becomes_slices_and_concats(ranges: tuple[range, ...], reduction: str) -> None:
    updates = tuple(len(r) for r in ranges) + (2, 3, 6)[len(ranges) :]
    model = assigned(grid(*ranges), updates, reduction)
    after = run_passes(model, write_assignments)
    assert "ScatterND" not in ops(after) and same(model, after)


@pytest.mark.parametrize("step", [range(0, 6, 2), range(1, 6, 2), range(0, 6, 5)], ids=str)
def test_every_other_column_becomes_a_gather(step: range) -> None:
    model = assigned(grid(range(2), range(3), step), (2, 3, len(step)))
    after = run_passes(model, write_assignments)
    assert "ScatterND" not in ops(after) and same(model, after)


def test_assignments_in_a_row_read_what_was_assigned_and_not_the_whole() -> None:
    """YOLOv5: boxes and sizes are written over the scores; one tensor of both has no good scale."""
    model = assigned(grid(range(2), range(3), range(2)), (2, 3, 2))
    text = BODY.format(updates="2,3,2", reduction="none").replace(
        "y = Relu(y0)",
        """starts = Constant<value = int64[1] {2}>()
           ends = Constant<value = int64[1] {4}>()
           axis = Constant<value = int64[1] {2}>()
           s = Slice(y0, starts, ends, axis)
           t = Mul(s, s)
           y1 = ScatterND(y0, more, t)
           y = Relu(y1)""",
    )
    second = model_of(text, opset=18)
    second.graph.initializer.extend(model.graph.initializer)
    places = grid(range(2), range(3), range(2, 4)).astype(np.int64)
    second.graph.initializer.append(numpy_helper.from_array(places, "more"))
    after = normalize(as_model(second)).proto
    assert ops(after)["Concat"] == 1 and same(second, after)


def test_negative_places_count_from_the_end() -> None:
    model = assigned(np.array([[-1, -2], [-1, -1]]), (2, 6))
    after = run_passes(model, write_assignments)
    assert "ScatterND" not in ops(after) and same(model, after)


@pytest.mark.parametrize(
    "places",
    [[[0, 0], [1, 1]], [[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [0, 1], [1, 0]]],
    ids=["diagonal", "twice", "backwards", "three of four"],
)
def test_other_places_are_no_box(places: list[list[int]]) -> None:
    array = np.array(places)
    assert box_of(array, (2, 3)) is None
    after = run_passes(assigned(array, (len(places), 6)), write_assignments)
    assert ops(after)["ScatterND"] == 1


def test_computed_places_of_a_large_box_are_known() -> None:
    """How `mask[:, :200, 201:] = x > 0` comes out of torch: ranges, expanded and put together."""
    model = model_of("""g (float[1,200,900] x) => (bool[1,201,1101] y) {
      zero = Constant<value = bool[1] {0}>()
      whole = Constant<value = int64[3] {1, 201, 1101}>()
      data = Expand(zero, whole)
      c0 = Constant<value = int64 {0}>()
      c1 = Constant<value = int64 {1}>()
      c200 = Constant<value = int64 {200}>()
      c201 = Constant<value = int64 {201}>()
      c1101 = Constant<value = int64 {1101}>()
      box = Constant<value = int64[3] {1, 200, 900}>()
      last = Constant<value = int64[1] {-1}>()
      i0 = Constant<value = int64[1,1,1] {0}>()
      r1 = Range(c0, c200, c1)
      column = Constant<value = int64[3] {1, -1, 1}>()
      i1 = Reshape(r1, column)
      i2 = Range(c201, c1101, c1)
      e0 = Expand(i0, box)
      e1 = Expand(i1, box)
      e2 = Expand(i2, box)
      u0 = Unsqueeze(e0, last)
      u1 = Unsqueeze(e1, last)
      u2 = Unsqueeze(e2, last)
      places = Concat<axis = -1>(u0, u1, u2)
      limit = Constant<value = float {0.0}>()
      seen = Greater(x, limit)
      y = ScatterND(data, places, seen)
    }""")
    after = normalize(as_model(model)).proto
    assert "ScatterND" not in ops(after) and same(model, after)
