"""Whether a float error is the converter's, or what float32 leaves open.

Random weights make networks that amplify rounding, and scores that lie closer together than
rounding is. Two questions tell these apart from a mistake. `Forcing`: do the outputs agree once
every decision (a rank, a comparison, a rounding) is the reference's own? `perturbed`: how far do
the outputs of ONNX Runtime itself move when its inputs move by their last bit, or its graph is
optimized?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from bench.corpus.cases import Arrays
from splitter.graph import Array, Graph
from splitter.lower import drop_unused
from splitter.reference import OnnxRunner
from splitter.rehearse import FloatModel
from splitter.tflite.types import LiteGraph, Tensor

DECIDING = frozenset(
    ("TopK", "ArgMax", "ArgMin", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal",
     "Round", "Floor", "Ceil", "Sign")
)  # fmt: skip
"""ONNX operators whose result jumps where their inputs move by rounding."""

OWN = ":own"
"""Behind the name of a decision that the float graph takes itself."""


@dataclass(frozen=True)
class Forced:
    """outputs: what comes of the reference's decisions; flips: (differ, all) of the graph's own."""

    outputs: Arrays
    flips: dict[str, tuple[int, int]]


class Forcing:
    """A float graph that takes the decisions of the ONNX file as inputs."""

    def __init__(self, proto: onnx.ModelProto, graph: Graph, lite: LiteGraph) -> None:
        made = [
            name
            for node in proto.graph.node
            if node.op_type in DECIDING
            for name in node.output
            if name in lite.producers and name in graph.values and not graph.values[name].axes
        ]
        self.decisions = tuple(dict.fromkeys(made))
        self._lite = lite
        self._model = FloatModel(_with_inputs(lite, self.decisions))
        self._reference = OnnxRunner(proto, self.decisions, threads=1, optimize=False)

    def run(self, inputs: Arrays) -> Forced:
        decided = self._reference.run(inputs) if self.decisions else {}
        shaped = {n: a.reshape(self._lite.tensors[n].shape) for n, a in decided.items()}
        made = self._model.run({**inputs, **shaped})
        outputs = {n: made[n] if n in made else decided[n] for n in self._lite.outputs}
        flips = {n: _flips(shaped[n], made[n + OWN]) for n in self.decisions if n + OWN in made}
        return Forced(outputs, flips)


def _flips(expected: Array, actual: Array) -> tuple[int, int]:
    return int((expected.astype(np.float64) != actual).sum()), expected.size


def _with_inputs(lite: LiteGraph, names: Sequence[str]) -> LiteGraph:
    """Decisions are inputs; what the graph would have decided is an output beside the others."""
    forced = set(names)

    def own(name: str) -> str:
        return name + OWN if name in forced else name

    tensors: dict[str, Tensor] = dict(lite.tensors)
    tensors |= {own(name): replace(lite.tensors[name], name=own(name)) for name in names}
    operators = tuple(
        replace(op, outputs=tuple(own(name) for name in op.outputs)) for op in lite.operators
    )
    integers = [own(n) for n in names if lite.tensors[n].dtype in ("int32", "bool")]
    outputs = [name for name in lite.outputs if name not in forced]
    whole = LiteGraph(
        (*lite.inputs, *names), tuple(dict.fromkeys([*outputs, *integers])), tensors, operators
    )
    return drop_unused(whole)


def perturbed(proto: onnx.ModelProto, names: Sequence[str], inputs: Arrays) -> tuple[Arrays, ...]:
    """What ONNX Runtime makes of inputs moved by their last bit, and with its own optimizations."""
    random = np.random.default_rng(0)

    def moved(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        factor = 1 + np.finfo(array.dtype).eps * random.choice([-1.0, 1.0], array.shape)
        return np.asarray(array * factor, array.dtype)

    plain = OnnxRunner(proto, names, threads=1, optimize=False)
    optimized = OnnxRunner(proto, names, threads=1, optimize=True)
    return plain.run({name: moved(array) for name, array in inputs.items()}), optimized.run(inputs)
