"""Which way of clipping serves a model is measured."""

from __future__ import annotations

import numpy as np

from splitter.quantize import calibrate, quantize
from splitter.quantize.choice import CANDIDATES, pick_clip, probes
from splitter.quantize.ranges import KEPT
from splitter.tflite.types import Array, LiteGraph, Operator, Tensor


def graph(size: int = 2000) -> LiteGraph:
    """x -> relu -> y: nothing but one rounding."""
    shape = (1, size)
    tensors = {
        "x": Tensor("x", shape, "float32"),
        "y": Tensor("y", shape, "float32"),
        "top": Tensor("top", (1, 3), "float32"),
        "rank": Tensor("rank", (1, 3), "int32"),
        "k": Tensor("k", (), "int32", np.array(3, np.int32)),
    }
    operators = (
        Operator("RELU", ("x",), ("y",)),
        Operator("TOPK_V2", ("y", "k"), ("top", "rank")),
    )
    return LiteGraph(("x",), ("y", "top", "rank"), tensors, operators)


def picked(values: Array) -> str:
    made = graph(values.size)
    samples = [{"x": values.reshape(1, -1).astype(np.float32)}]
    ranges = calibrate(made, samples)
    return pick_clip(
        made, samples, lambda name: quantize(made, ranges, npu=(), clip=CANDIDATES[name])
    )


def test_values_behind_a_ranking_are_not_compared() -> None:
    assert probes(graph()) == ("y",)


def test_a_bulk_with_few_stray_values_is_served_by_least_squares() -> None:
    bulk = np.random.default_rng(0).standard_normal(2000)
    bulk[7] = 6.0
    assert picked(bulk) == "least squares"


def test_rare_large_values_that_calibration_did_not_keep_are_served_by_extremes() -> None:
    rare = np.random.default_rng(0).uniform(0, 1, 10 * KEPT)
    rare[5::110] = 100.0  # never at a multiple of the stride of 11
    assert picked(rare) == "extremes"
