"""What the tests of lowerings share: one ONNX operator, every lowering that takes it, two checks.

Float: the TFLite form in the interpreter against ONNX Runtime. Integers: the same form quantized
with ranges seen on the samples, against the same ONNX result, by relative RMS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import parser

from splitter.graph import Graph, Unit, Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import Model
from splitter.normalize import normalize
from splitter.ops import OPS
from splitter.ops.registry import Lowering, lite_dtype
from splitter.quantize import calibrate, quantize
from splitter.quantize.affine import quantize_values
from splitter.reference import run_onnx
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write

Array = NDArray[Any]
Sample = Mapping[str, Array]


FLOAT, INTEGER = 1e-5, 0.02
"""Relative RMS that a case is held to when it says nothing else."""


@dataclass(frozen=True)
class Case:
    """body: the graph. bound: relative RMS in int8, exact: in float. low, high: where the floats
    of the samples are drawn."""

    name: str
    body: str
    bound: float = INTEGER
    low: float = -2.0
    high: float = 2.0
    opset: int = 22
    exact: float = FLOAT

    def __str__(self) -> str:
        return self.name

    def lowerings(self) -> Iterator[tuple[str, Lowered]]:
        """Every choice of lowerings on three samples."""
        model = parsed(self.body, opset=self.opset)
        return every_lowering(model, drawn(model, low=self.low, high=self.high, count=3))


def one(call: str, *, shape: str = "2,3,5", kind: str = "float") -> str:
    """The text of a graph of one operator on x."""
    return f"(float[{shape}] x) => ({kind}[{shape}] y) {{ y = {call} (x) }}"


def image(call: str, out: str, *, size: str = "1,6,9,11") -> str:
    """The text of a graph of one operator, written with its inputs, from shape to shape."""
    return f"(float[{size}] x) => (float[{out}] y) {{ y = {call} }}"


@dataclass(frozen=True)
class Lowered:
    """One graph with one choice of lowerings, and what ONNX Runtime says of its samples."""

    graph: LiteGraph
    samples: Sequence[Sample]
    wanted: Sequence[Mapping[str, Array]]
    stated: float = 0.0  # the lowerings' own bound on their absolute error

    def float_error(self) -> float:
        """The largest relative RMS of any output on any sample."""
        interpreter = Interpreter(write(self.graph))
        worst = 0.0
        for sample, wanted in zip(self.samples, self.wanted, strict=True):
            got = interpreter.run(as_lite(self.graph, sample))
            worst = max(worst, *(relative_rms(got[n], wanted[n]) for n in wanted))
        return worst

    def integer_error(self) -> float:
        """The same for the int8 form, with real values at its inputs and outputs."""
        made = self.integer_outputs()
        return max(
            relative_rms(
                np.stack([m[name] for m in made]), np.stack([w[name] for w in self.wanted])
            )
            for name in self.graph.outputs
        )

    def integer_outputs(self) -> list[dict[str, Array]]:
        """The real values that the int8 form gives, sample by sample."""
        interpreter = Interpreter(write(self.integer))
        return [
            {
                name: real(self.integer, name, array)
                for name, array in interpreter.run(self._quantized(sample)).items()
            }
            for sample in self.samples
        ]

    @cached_property
    def integer(self) -> LiteGraph:
        samples = [as_lite(self.graph, sample) for sample in self.samples]
        made = quantize(self.graph, calibrate(self.graph, samples, threads=1), npu=())
        left = [t.name for t in made.tensors.values() if t.dtype.startswith("float")]
        assert not left, f"float tensors {left}"
        return made

    def _quantized(self, sample: Sample) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for name, array in as_lite(self.graph, sample).items():
            q = self.integer.tensors[name].quantization
            if q is not None and array.dtype.kind == "f":
                array = quantize_values(array, q, 8).astype(np.int8)
            arrays[name] = array
        return arrays


def real(graph: LiteGraph, name: str, array: Array) -> Array:
    """Integers of a quantized tensor as the numbers they stand for."""
    q = graph.tensors[name].quantization
    if q is None:
        return array
    return (array.astype(np.float64) - q.zero_point[0]) * q.scale[0]


def as_lite(graph: LiteGraph, sample: Sample) -> dict[str, Array]:
    """A sample in the types of the TFLite graph."""
    return {
        name: np.ascontiguousarray(array, lite_dtype(array.dtype.name)).reshape(array.shape)
        for name, array in sample.items()
        if name in graph.inputs
    }


def relative_rms(got: Array, wanted: Array) -> float:
    """RMS of the difference over RMS of what is wanted; the share of differing elements where
    these are conditions or indices. Infinite when shapes differ."""
    if got.shape != wanted.shape:
        return float("inf")
    if wanted.dtype.kind != "f":
        return float(np.mean(got != wanted)) if wanted.size else 0.0
    size = float(np.sqrt(np.mean(np.square(wanted.astype(np.float64)))))
    error = float(np.sqrt(np.mean(np.square(got.astype(np.float64) - wanted))))
    return error / size if size else error


def parsed(body: str, *, opset: int) -> onnx.ModelProto:
    """A model from text "(float[2,3] x) => (float[2,3] y) <float[3] w> { ... }"."""
    text = f'<ir_version: 9, opset_import: ["" : {opset}]>\ng {body}'
    model = parser.parse_model(text)
    generator = np.random.default_rng(1)
    made = {name for node in model.graph.node for name in node.output}
    known = made | {v.name for v in model.graph.input} | {t.name for t in model.graph.initializer}
    for value in model.graph.value_info:
        if value.name not in known:
            data = generator.standard_normal(
                [d.dim_value for d in value.type.tensor_type.shape.dim]
            )
            initializer = onnx.numpy_helper.from_array(data.astype(np.float32), value.name)
            model.graph.initializer.append(initializer)
    return model


def drawn(model: onnx.ModelProto, *, low: float, high: float, count: int) -> list[dict[str, Array]]:
    """Random samples: floats uniform in low..high, integers 0 or 1, conditions."""
    generator = np.random.default_rng(0)
    constants = {t.name for t in model.graph.initializer}
    samples: list[dict[str, Array]] = []
    for _ in range(count):
        sample: dict[str, Array] = {}
        for value in model.graph.input:
            if value.name in constants:
                continue
            tensor = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            shape = [d.dim_value for d in tensor.shape.dim]
            data = generator.uniform(low, high, shape)
            sample[value.name] = (data > (low + high) / 2 if dtype.kind != "f" else data).astype(
                dtype
            )
        samples.append(sample)
    return samples


def graph_of(model: onnx.ModelProto) -> Graph:
    """The model normalized and laid out."""
    constants = {t.name for t in model.graph.initializer}
    inputs = tuple(_declared(v) for v in model.graph.input if v.name not in constants)
    outputs = tuple(_declared(v) for v in model.graph.output)
    return layout(normalize(Model(model, Path("text.onnx"), "", inputs, outputs)))


def _declared(value: onnx.ValueInfoProto) -> Value:
    tensor = value.type.tensor_type
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name
    return Value(value.name, tuple(d.dim_value for d in tensor.shape.dim), dtype)


def lowerings_of(graph: Graph, unit: Unit) -> list[Lowering]:
    """Those that take the unit, in order of preference."""
    return [way for way in OPS[unit.op].lowerings if way.applies(graph, unit) is None]


def every_lowering(
    model: onnx.ModelProto, samples: Sequence[Sample]
) -> Iterator[tuple[str, Lowered]]:
    """(names, lowered graph): the preferred lowerings, then each other one of each unit."""
    graph = graph_of(model)
    wanted = [run_onnx(model, sample, threads=1, optimize=False) for sample in samples]
    ways = {unit.name: lowerings_of(graph, unit) for unit in graph.units}
    for unit in graph.units:
        assert ways[unit.name], f"nothing lowers {unit.op}: {refusals(graph, unit)}"
    first = {name: chosen[0].name for name, chosen in ways.items()}
    yield "preferred", Lowered(lower(graph, first), samples, wanted)
    for unit in graph.units:
        for other in ways[unit.name][1:]:
            made = lower(graph, {**first, unit.name: other.name})
            yield f"{unit.op} by {other.name}", Lowered(made, samples, wanted, other.error)


def first_lowerings(graph: Graph) -> LiteGraph:
    """The whole graph with the lowering of each unit that is preferred."""
    return lower(graph, {unit.name: lowerings_of(graph, unit)[0].name for unit in graph.units})


def refusals(graph: Graph, unit: Unit) -> list[str | None]:
    """Why each lowering does not take the unit, None where it does."""
    return [way.applies(graph, unit) for way in OPS[unit.op].lowerings]
