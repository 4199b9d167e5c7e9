"""What PyTorch's exporters wrote for small networks of the kinds people bring, run to the integers.

The graphs are ONNX text in tests/data/patterns, raw as exported (shape arithmetic, index chains
and all). Weights are left out: they are drawn here, scaled by their fan-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

from splitter.graph import Array, Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import Model, value_of
from splitter.normalize import normalize
from splitter.reference import run_onnx
from tests.ops.lowered import Lowered, lowerings_of, relative_rms

FOLDER = Path(__file__).resolve().parent.parent / "data" / "patterns"


@dataclass(frozen=True)
class Pattern:
    """bound: relative RMS of the int8 form at the worst output of numbers, ranks and conditions
    aside; of its sorted values where the output is `ranked`, since int8 may order two near scores
    the other way.

    shapes: of inputs with free axes. top: integers of an input are drawn below this (2).
    fixed: the one number that an input holds.
    """

    name: str
    bound: float
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    top: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    ranked: bool = False

    def __str__(self) -> str:
        return self.name

    def model(self) -> Model:
        """The graph with its weights, as a file would hold it."""
        proto = parser.parse_model((FOLDER / f"{self.name}.txt").read_text())
        random = np.random.default_rng(4)
        made = {name for node in proto.graph.node for name in node.output}
        made |= {v.name for v in (*proto.graph.input, *proto.graph.initializer)}
        for value in proto.graph.value_info:
            if value.name not in made:
                data = _weights(value_of(value), random)
                proto.graph.initializer.append(onnx.numpy_helper.from_array(data, value.name))
        inputs = tuple(map(value_of, proto.graph.input))
        outputs = tuple(map(value_of, proto.graph.output))
        return Model(proto, Path(f"{self.name}.onnx"), "", inputs, outputs)

    def lowered(self) -> Lowered:
        """The preferred lowerings, and what ONNX Runtime says of three samples."""
        model = self.model()
        samples = [self.sample(model, np.random.default_rng(seed)) for seed in range(3)]
        graph = layout(normalize(model, shapes=self.shapes))
        chosen = {unit.name: lowerings_of(graph, unit)[0].name for unit in graph.units}
        wanted = [run_onnx(model.proto, sample, threads=1, optimize=False) for sample in samples]
        return Lowered(lower(graph, chosen), samples, wanted)

    def integer_error(self, lowered: Lowered) -> float:
        """Of the int8 form over all samples; checks that no float tensor is left in it."""
        made = lowered.integer_outputs()
        worst = 0.0
        for name in lowered.graph.outputs:
            wanted = np.stack([w[name] for w in lowered.wanted]).astype(np.float64)
            if lowered.wanted[0][name].dtype.name in ("bool", "int64", "int32"):
                continue
            got = np.stack([m[name] for m in made]).astype(np.float64)
            if self.ranked:
                wanted, got = np.sort(wanted, axis=None), np.sort(got, axis=None)
            worst = max(worst, relative_rms(got, wanted))
        return worst

    def sample(self, model: Model, random: np.random.Generator) -> dict[str, Array]:
        return {value.name: self._drawn(value, random) for value in model.inputs}

    def _drawn(self, value: Value, random: np.random.Generator) -> Array:
        shape = self.shapes.get(value.name, value.shape)
        if value.name in self.fixed:
            return np.full(shape, self.fixed[value.name], value.dtype)
        if np.dtype(value.dtype).kind in "iub":
            return random.integers(0, self.top.get(value.name, 2), shape).astype(value.dtype)
        return random.standard_normal(shape).astype(value.dtype)


def _weights(value: Value, random: np.random.Generator) -> Array:
    fan_in = max(1, int(np.prod(value.shape[1:])))
    spread = fan_in**-0.5 if len(value.shape) > 1 else 0.3
    return (spread * random.standard_normal(value.shape)).astype(value.dtype)
