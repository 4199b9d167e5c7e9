"""One integer model on samples: how far from float, what it decides, how long its CPU parts take.

Decides what is run: the parts in order, in LiteRT's built-in kernels, one thread; times are the
thread's own processor time, so that what runs beside does not count. Leaves comparing to `verify`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.calibration import Samples
from splitter.compare.integers import Integers
from splitter.glue.board.numbers import dequantize, quantize
from splitter.graph import Array, Value
from splitter.tail import carrier
from splitter.tflite.runtime import Interpreter
from splitter.tflite.write import write
from splitter.verify import Findings, Run, Task, measure

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Yardstick:
    """What every candidate is measured against.

    expected: outputs of ONNX Runtime by name, for each of `samples`, which come from `source`.
    """

    outputs: tuple[Value, ...]
    task: Task
    samples: Sequence[Arrays]
    expected: Sequence[Arrays]
    source: Samples


@dataclass(frozen=True)
class Trial:
    """cpu_ms: of each CPU part on this computer, the fastest run, by segment of the plan."""

    findings: Findings
    cpu_ms: Mapping[int, float]


def try_out(integers: Integers, yardstick: Yardstick) -> Trial:
    """Run the parts on all samples and compare."""
    machine = _Machine(integers, yardstick.outputs)
    findings = measure(
        _runs(machine, yardstick),
        [value.name for value in yardstick.outputs],
        task=yardstick.task,
        annotations=yardstick.source.annotations,
        sizes=yardstick.source.sizes,
    )
    return Trial(findings, machine.cpu_ms)


def _runs(machine: _Machine, yardstick: Yardstick) -> Iterator[Run]:
    for sample, expected in zip(yardstick.samples, yardstick.expected, strict=True):
        made = machine.run(sample)
        yield Run(expected, made, made)


class _Machine:
    """The parts in order, each in its interpreter."""

    def __init__(self, integers: Integers, outputs: Sequence[Value]) -> None:
        self._integers, self._outputs = integers, outputs
        self._parts = [
            (place, part.device, Interpreter(write(part.graph)))
            for place, part in zip(integers.places, integers.parts, strict=True)
        ]
        self.cpu_ms: dict[int, float] = {}

    def run(self, sample: Arrays) -> dict[str, Array]:
        """Outputs in the ONNX types."""
        whole = self._integers.whole
        made = {n: quantize(sample[n], carrier(whole.tensors[n])) for n in whole.inputs}
        for index, device, part in self._parts:
            begin = time.thread_time()
            made |= part.run({name: made[name] for name in part.inputs})
            taken = 1e3 * (time.thread_time() - begin)
            if device == "cpu":
                self.cpu_ms[index] = min(taken, self.cpu_ms.get(index, taken))
        return {value.name: self._real(value, made) for value in self._outputs}

    def _real(self, value: Value, made: Arrays) -> Array:
        join = self._integers.joins.get(value.name)
        names = (value.name,) if join is None else join.pieces
        real = [self._one(name, made, value.dtype) for name in names]
        return real[0] if join is None else np.concatenate(real, join.axis)

    def _one(self, name: str, made: Arrays, dtype: str) -> Array:
        tensor = self._integers.whole.tensors[name]
        raw = tensor.data if tensor.data is not None else made[name]
        return dequantize(raw, carrier(tensor), dtype)
