"""One integer model on samples: how far from float, what it decides, how long its CPU parts take.

Decides what is run on what; how is `chunks`' matter. Leaves comparing to `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.calibration import Samples
from splitter.compare.chunks import Machine, Memory
from splitter.compare.integers import Integers
from splitter.glue.board.numbers import dequantize, quantize
from splitter.graph import Array, Value
from splitter.tail import carrier
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


def try_out(integers: Integers, yardstick: Yardstick, memory: Memory) -> Trial:
    """Run the chunks on all samples and compare."""
    machine = Machine(integers.chunks, memory)
    findings = measure(
        _runs(integers, machine, yardstick),
        [value.name for value in yardstick.outputs],
        task=yardstick.task,
        annotations=yardstick.source.annotations,
        sizes=yardstick.source.sizes,
        open_ended=integers.whole.open_ended,
    )
    return Trial(findings, machine.cpu_ms)


def _runs(integers: Integers, machine: Machine, yardstick: Yardstick) -> Iterator[Run]:
    tensors = integers.whole.tensors
    for sample, expected in zip(yardstick.samples, yardstick.expected, strict=True):
        feeds = {n: quantize(sample[n], carrier(tensors[n])) for n in integers.whole.inputs}
        raw = machine.run(feeds)
        made = {value.name: _real(integers, value, raw) for value in yardstick.outputs}
        yield Run(expected, made, None)


def _real(integers: Integers, value: Value, raw: Arrays) -> Array:
    """An output in the ONNX type, its pieces joined."""
    join = integers.joins.get(value.name)
    names = (value.name,) if join is None else join.pieces
    real = []
    for name in names:
        tensor = integers.whole.tensors[name]
        values = raw[name] if tensor.data is None else tensor.data
        real.append(dequantize(values, carrier(tensor), value.dtype))
    return real[0] if join is None else np.concatenate(real, join.axis)
