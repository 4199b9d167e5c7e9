"""Outputs that join boxes and scores leave as their pieces."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.graph import Array
from splitter.quantize import calibrate
from splitter.quantize.pieces import Parted, part_outputs
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write
from tests.ops.lowered import drawn, every_lowering, parsed

DETECTOR = """(float[1,50,4] b, float[1,50,7] s) => (float[1,50,11] y) {
  k = Constant<value = float {160.0}>()
  boxes = Mul (b, k)
  scores = Sigmoid (s)
  y = Concat<axis = 2> (boxes, scores)
}"""
IMAGE = """(float[1,4,6,6] x) => (float[1,9,6,6] y) <float[4,4,1,1] w, float[5,4,1,1] v> {
  k = Constant<value = float {160.0}>()
  c = Conv (x, w) boxes = Mul (c, k)
  d = Conv (x, v) scores = Sigmoid (d)
  y = Concat<axis = 1> (boxes, scores)
}"""
NESTED = """(float[1,50,4] b, float[1,50,7] s) => (float[1,50,15] y) {
  k = Constant<value = float {160.0}>()
  boxes = Mul (b, k)
  scores = Sigmoid (s)
  inner = Concat<axis = -1> (scores, boxes)
  y = Concat<axis = 2> (boxes, inner)
}"""
MOVED = """(float[1,6,6,4] b, float[1,6,6,7] s) => (float[1,36,11] y) {
  k = Constant<value = float {160.0}>()
  boxes = Mul (b, k)
  scores = Sigmoid (s)
  both = Concat<axis = 3> (boxes, scores)
  turned = Transpose<perm = [0, 2, 1, 3]> (both)
  shape = Constant<value = int64[3] {1, 36, 11}>()
  y = Reshape (turned, shape)
}"""
ALIKE = """(float[1,50,4] b, float[1,50,7] s) => (float[1,50,11] y) {
  p = Tanh (b) q = Sigmoid (s) y = Concat<axis = 2> (p, q)
}"""
READ_INSIDE = """(float[1,50,4] b, float[1,50,7] s) => (float[1,50,11] y, float[1,50,11] z) {
  k = Constant<value = float {160.0}>()
  p = Mul (b, k) q = Sigmoid (s) y = Concat<axis = 2> (p, q) z = Relu (y)
}"""


def lite(body: str) -> tuple[LiteGraph, list[dict[str, Array]]]:
    model = parsed(body, opset=17)
    samples = drawn(model, low=-2, high=2, count=2)
    return next(made.graph for _, made in every_lowering(model, samples)), samples


def parted(body: str) -> tuple[LiteGraph, Parted, list[dict[str, Array]]]:
    graph, samples = lite(body)
    return graph, part_outputs(graph, calibrate(graph, samples, threads=1)), samples


@pytest.mark.parametrize(
    ("body", "count"),
    [(DETECTOR, 2), (IMAGE, 2), (NESTED, 3), (MOVED, 2)],
    ids=["rows", "image", "nested", "moved twice"],
)
def test_the_pieces_joined_are_the_output(body: str, count: int) -> None:
    graph, made, samples = parted(body)
    join = made.joins["y"]
    assert len(join.pieces) == count and made.graph.outputs == join.pieces
    assert "CONCATENATION" not in {op.code for op in made.graph.operators}
    floats = {name for op in made.graph.operators for name in op.outputs}
    assert floats <= set(made.ranges)
    before, after = Interpreter(write(graph)), Interpreter(write(made.graph))
    for sample in samples:
        whole, pieces = before.run(sample)["y"], after.run(sample)
        joined = np.concatenate([pieces[name] for name in join.pieces], join.axis)
        assert np.array_equal(whole, joined)


@pytest.mark.parametrize("body", [ALIKE, READ_INSIDE], ids=["one size", "read inside"])
def test_other_outputs_stay_whole(body: str) -> None:
    graph, made, _ = parted(body)
    assert made.graph is graph and not made.joins


def test_an_output_asked_for_by_name_stays_whole() -> None:
    graph, samples = lite(DETECTOR)
    made = part_outputs(graph, calibrate(graph, samples, threads=1), whole=("y",))
    assert made.graph is graph


def test_the_report_says_what_was_parted() -> None:
    (note,) = parted(DETECTOR)[1].notes()
    assert "output y" in note and "2 pieces" in note and "axis 2" in note
