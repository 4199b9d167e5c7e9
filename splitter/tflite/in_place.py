"""Keeps a tensor whole until its last reader, where the runtime would write over it too early.

LiteRT lets ADD, SUB, MUL, DIV and SOFTMAX write into the memory of an input that nobody else reads,
and RESHAPE, SQUEEZE and EXPAND_DIMS share the memory of theirs. It counts readers of the operator's
own input and of the first tensor of the whole chain, not of those between, so in

    t = ADD(x, c);  z = RESHAPE(t);  u = ADD(z, d);  w = RESHAPE(t)

w is made of u's values (seen in ai-edge-litert 2.3.0, float and int8; test_in_place runs it).
Decides which late reader goes through z instead: then z has two readers and stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor

OVERWRITING = {"ADD": 2, "SUB": 2, "MUL": 2, "DIV": 2, "SOFTMAX": 1}
"""Operators that write over an input, and how many of their inputs they look at."""

SHARING = frozenset(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST"))

Key = tuple[int, int]
"""Where an operator stands: its place in the graph given, and 0 when it was put before it."""


@dataclass(eq=False, slots=True)
class _Step:
    """An operator at its place, with inputs that may change."""

    key: Key
    op: Operator
    inputs: list[str]


def keep_readable(graph: LiteGraph) -> LiteGraph:
    """The graph in which no operator writes over what is read after it; often the one given."""
    memory = _Memory(graph)
    changed = False
    while memory.repair():
        changed = True
    return memory.graph() if changed else graph


class _Memory:
    """Who reads what, when, and which tensors share memory."""

    def __init__(self, graph: LiteGraph) -> None:
        self._graph = graph
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._steps = [_Step((i, 1), op, list(op.inputs)) for i, op in enumerate(graph.operators)]
        self._maker = {name: step for step in self._steps for name in step.op.outputs}
        self._readers: dict[str, list[_Step]] = {}
        for step in self._steps:
            for name in step.inputs:
                self._readers.setdefault(name, []).append(step)
        self._fixed = {*graph.inputs, *graph.outputs}

    def repair(self) -> bool:
        """One look at every operator; whether anything had to change."""
        changed = False
        for step in tuple(self._steps):
            for name in step.inputs[: OVERWRITING.get(step.op.code, 0)]:
                late = self._late_reader(step, name)
                if late is not None:
                    self._redirect(*late, name)
                    changed = True
        return changed

    def graph(self) -> LiteGraph:
        operators = tuple(replace(step.op, inputs=tuple(step.inputs)) for step in self._steps)
        return replace(self._graph, tensors=self._tensors, operators=operators)

    def _late_reader(self, step: _Step, name: str) -> tuple[_Step, str] | None:
        """Who reads the memory of the input after the step writes over it, and under which name."""
        if not self._overwrites(step, name):
            return None
        chain = [name]
        while (above := self._shares(chain[-1])) is not None:
            chain.append(above)
        root = self._maker.get(chain[-1])
        counted = root is None or root.op.code not in OVERWRITING
        if counted and len(self._readers[chain[-1]]) > 1:
            return None
        for below, tensor in pairwise(chain):
            for reader in self._readers[tensor]:
                if reader is not self._maker[below]:
                    found = self._after(reader, tensor, step.key, self._maker[name].key)
                    if found is not None:
                        return found
        return None

    def _overwrites(self, step: _Step, name: str) -> bool:
        if self._shares(name) is None or len(self._readers[name]) > 1:
            return False
        out = step.op.outputs[0]
        return out not in self._fixed and self._bytes(name) == self._bytes(out)

    def _bytes(self, name: str) -> int:
        tensor = self._tensors[name]
        return tensor.elements * np.dtype(tensor.dtype).itemsize

    def _shares(self, name: str) -> str | None:
        """The tensor whose memory this one is, when the runtime shares it."""
        step = self._maker.get(name)
        if step is None or step.op.code not in SHARING or name in self._fixed:
            return None
        source = step.inputs[0]
        fixed = source in self._fixed or self._tensors[source].data is not None
        return None if fixed else source

    def _after(
        self, reader: _Step, tensor: str, written: Key, made: Key
    ) -> tuple[_Step, str] | None:
        """The reader, or one that reads the tensor's memory through it, when that is too late."""
        out = reader.op.outputs[0]
        if reader.op.code in SHARING and self._shares(out) == tensor:
            for other in self._readers.get(out, ()):
                found = self._after(other, out, written, made)
                if found is not None:
                    return (reader, tensor) if reader.key > made else found
            return None
        return (reader, tensor) if reader.key > written else None

    def _redirect(self, reader: _Step, tensor: str, source: str) -> None:
        """Let a reader of the tensor read the source, in the tensor's shape."""
        if reader.op.code == "RESHAPE":
            self._read(reader, tensor, source)
            return
        step = self._reshaped(source, tensor, reader)
        self._steps.insert(self._steps.index(reader), step)
        self._maker[step.op.outputs[0]] = step
        for name in step.inputs:
            self._readers.setdefault(name, []).append(step)
        self._read(reader, tensor, step.op.outputs[0])

    def _read(self, reader: _Step, old: str, new: str) -> None:
        reader.inputs = [new if name == old else name for name in reader.inputs]
        self._readers[old] = [step for step in self._readers[old] if step is not reader]
        self._readers.setdefault(new, []).append(reader)

    def _reshaped(self, source: str, like: str, reader: _Step) -> _Step:
        """RESHAPE of the source to another tensor's shape, to stand before the reader."""
        stem = f"{like}/kept"
        count = sum(name.startswith(stem) for name in self._tensors)
        out = f"{stem}_{count}" if count else stem
        model = self._tensors[like]
        shape = np.asarray(model.shape, np.int32)
        self._tensors[out] = replace(model, name=out)
        target = Tensor(f"{out}/shape", shape.shape, "int32", shape)
        self._tensors[target.name] = target
        inputs = [source, target.name]
        options = {"new_shape": model.shape}
        op = Operator("RESHAPE", tuple(inputs), (out,), options, reader.op.unit)
        return _Step((reader.key[0], 0), op, inputs)
