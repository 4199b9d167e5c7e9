"""`--int16 auto` gives weights two pieces where what rounding leaves of them is what is lost."""

from __future__ import annotations

from functools import cache

import numpy as np

from splitter.plan import Cost, Plan, Segment
from splitter.quantize import calibrate, quantize, rearranged
from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.verify import Task
from splitter.widen import widen
from splitter.width import Widening

PLAN = Plan("", (Segment("cpu", ("rough", "whole")),), {}, Cost(0, 0, 0, 0))
RNG = np.random.default_rng(4)
SAMPLES = [{"x": RNG.normal(0, 1, (4, 64)).astype(np.float32)} for _ in range(4)]


def model() -> LiteGraph:
    """Two products: one with any weights, one with weights of -1 and 1."""
    data = {
        "weights": RNG.normal(0, 0.2, (48, 64)),
        "signs": np.sign(RNG.normal(0, 1, (32, 48))),
        "bias": np.zeros(48),
        "other": np.zeros(32),
    }
    tensors = {n: Tensor(n, d.shape, "float32", d.astype(np.float32)) for n, d in data.items()}
    for name, width in (("x", 64), ("middle", 48), ("y", 32)):
        tensors[name] = Tensor(name, (4, width), "float32")
    plain = {"fused_activation_function": "NONE"}
    operators = (
        Operator("FULLY_CONNECTED", ("x", "weights", "bias"), ("middle",), plain, "rough"),
        Operator("FULLY_CONNECTED", ("middle", "signs", "other"), ("y",), plain, "whole"),
    )
    return LiteGraph(("x",), ("y",), tensors, operators)


def found() -> tuple[Widening, LiteGraph]:
    """What is chosen, and the integer graph with it."""
    lite = model()
    ranges = calibrate(lite, SAMPLES, threads=1)

    @cache
    def integer(wide: frozenset[str], fine: frozenset[str] = frozenset()) -> LiteGraph:
        return quantize(lite, ranges, npu=(), int16=wide, fine=fine)

    chosen = widen(rearranged(lite, ranges), integer, PLAN, SAMPLES, task=Task("none", ""))
    return chosen, integer(chosen.tensors, frozenset(chosen.fine))


def test_only_weights_that_lose_something_are_written_in_two() -> None:
    chosen, graph = found()
    assert {"middle", "y"} <= chosen.tensors
    assert chosen.fine == ("rough",)
    assert [op.unit for op in graph.operators if op.code == "FULLY_CONNECTED"].count("rough") == 2
    assert [op.unit for op in graph.operators].count("whole") == 1
