"""Steps of a recurrence share their ranges, and with them their scales."""

from __future__ import annotations

import numpy as np

from splitter.quantize import quantize
from splitter.quantize.ranges import calibrate
from splitter.quantize.recurrence import share_steps
from tests.ops.lowered import Lowered, as_lite, drawn, every_lowering, parsed

BODY = (
    "(float[6,2,3] x) => (float[6,1,2,4] y) <float[1,16,3] w, float[1,16,4] r>"
    " { y = LSTM <hidden_size=4> (x, w, r) }"
)


def lstm() -> Lowered:
    model = parsed(BODY, opset=22)
    samples = drawn(model, low=-1, high=1, count=2)
    return next(lowered for _, lowered in every_lowering(model, samples))


def test_the_same_place_in_every_step_has_one_range() -> None:
    lowered = lstm()
    samples = [as_lite(lowered.graph, sample) for sample in lowered.samples]
    ranges = share_steps(lowered.graph, calibrate(lowered.graph, samples, threads=1))
    groups: dict[str, list[str]] = {}
    for name in ranges:
        groups.setdefault(lowered.graph.tensors[name].alike, []).append(name)
    steps = [names for group, names in groups.items() if group]
    assert {len(names) for names in steps} == {6}
    for names in steps:
        assert len({(ranges[name].low, ranges[name].high) for name in names}) == 1


def test_the_weights_of_a_cell_are_written_once() -> None:
    lowered = lstm()
    samples = [as_lite(lowered.graph, sample) for sample in lowered.samples]
    made = quantize(lowered.graph, calibrate(lowered.graph, samples, threads=1), npu=())
    recurrent = [op for op in made.operators if op.code == "FULLY_CONNECTED"][4:]
    assert len(recurrent) == 24
    assert len({op.inputs[1] for op in recurrent}) == 4
    constants = [made.tensors[op.inputs[1]].data for op in recurrent]
    assert all(isinstance(data, np.ndarray) for data in constants)
