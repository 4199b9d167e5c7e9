"""A range loses what its readers cannot tell apart, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.quantize.ranges import Range
from splitter.quantize.saturation import useful_ranges
from splitter.tflite.types import LiteGraph, Operator, Tensor


def graph_of(*operators: Operator, outputs: tuple[str, ...]) -> LiteGraph:
    names = {n for op in operators for n in (*op.inputs, *op.outputs)}
    made = {n for op in operators for n in op.outputs}
    tensors = {name: Tensor(name, (4,), "float32") for name in names}
    return LiteGraph(tuple(sorted(names - made)), outputs, tensors, operators)


def seen(low: float, high: float) -> Range:
    return Range(low, high, np.linspace(low, high, 9, dtype=np.float32))


SIGMOID = Operator("LOGISTIC", ("x",), ("y",), {}, "u")
GATE = seen(0.0, 1.0)


def test_a_sigmoid_asks_for_little_of_a_wide_range() -> None:
    cut = useful_ranges(graph_of(SIGMOID, outputs=("y",)), {"x": seen(-600, 900), "y": GATE})
    assert -12 < cut["x"].low < -6
    assert 6 < cut["x"].high < 12
    assert cut["x"].values.min() == pytest.approx(cut["x"].low)


def test_16_bits_tell_more_apart() -> None:
    graph = graph_of(SIGMOID, outputs=("y",))
    ranges = {"x": seen(-60, 90), "y": GATE}
    narrow, wide = useful_ranges(graph, ranges), useful_ranges(graph, ranges, int16=("x", "y"))
    assert wide["x"].high > narrow["x"].high + 3


def test_another_reader_keeps_the_range() -> None:
    graph = graph_of(SIGMOID, Operator("MUL", ("x", "y"), ("z",), {}, "u"), outputs=("z",))
    ranges = {"x": seen(-600, 900), "y": GATE, "z": seen(0, 900)}
    assert useful_ranges(graph, ranges) == ranges


def test_an_output_of_the_graph_keeps_its_range() -> None:
    ranges = {"x": seen(-600, 900), "y": GATE}
    assert useful_ranges(graph_of(SIGMOID, outputs=("x", "y")), ranges) == ranges


def test_a_sum_leaves_room_for_the_other_addend() -> None:
    graph = graph_of(Operator("ADD", ("a", "b"), ("x",), {}, "u"), SIGMOID, outputs=("y",))
    ranges = {"a": seen(-600, 900), "b": seen(-2, 5), "x": seen(-600, 900), "y": GATE}
    cut = useful_ranges(graph, ranges)
    assert cut["a"].low == pytest.approx(cut["x"].low - 5)
    assert cut["a"].high == pytest.approx(cut["x"].high + 2)
    assert cut["b"] == ranges["b"]


def test_moved_data_passes_the_bounds_on() -> None:
    graph = graph_of(Operator("RESHAPE", ("a",), ("x",), {}, "u"), SIGMOID, outputs=("y",))
    cut = useful_ranges(graph, {"a": seen(-600, 900), "x": seen(-600, 900), "y": GATE})
    assert (cut["a"].low, cut["a"].high) == (cut["x"].low, cut["x"].high)


def test_a_range_that_a_cut_would_hardly_shorten_stays() -> None:
    ranges = {"x": seen(-7, 7), "y": GATE}
    assert useful_ranges(graph_of(SIGMOID, outputs=("y",)), ranges) == ranges


def test_what_a_constant_clips_takes_no_range_in_front_of_it() -> None:
    low = Operator("MAXIMUM", ("x", "zero"), ("a",), {}, "u")
    high = Operator("MINIMUM", ("one", "a"), ("y",), {}, "u")
    graph = graph_of(low, high, outputs=("y",))
    tensors = dict(graph.tensors)
    for name, value in (("zero", 0.0), ("one", 1.0)):
        tensors[name] = Tensor(name, (), "float32", np.array(value, np.float32))
    clipped = LiteGraph(("x",), ("y",), tensors, graph.operators)
    cut = useful_ranges(clipped, {"x": seen(-6, 9), "a": seen(0, 9), "y": GATE})
    assert (cut["x"].low, cut["x"].high) == (0.0, 1.0)
    assert (cut["a"].low, cut["a"].high) == (0.0, 1.0)
