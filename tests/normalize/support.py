"""What the tests of passes share: a graph from ONNX text, passes run on it, numbers compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import parser

from splitter.draft import Draft
from splitter.graph import Value
from splitter.model import Model
from splitter.normalize.bind import bind_shapes
from splitter.normalize.canonical import canonicalize
from splitter.normalize.check import check
from splitter.normalize.exchange import to_draft, to_proto
from splitter.normalize.fold import fold_constants
from splitter.normalize.static import require_static

Array = NDArray[Any]
Step = Callable[[Draft], None]


def model_of(body: str, *, opset: int = 17, seed: int = 0) -> onnx.ModelProto:
    """A model from text: "g (float[2,3] x) => (float[2,3] y) <float[3] w> { ... }".

    Initializers without a value are drawn from a normal distribution.
    """
    text = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n{body}'
    model = parser.parse_model(text)
    generator = np.random.default_rng(seed)
    values = {v.name: v for v in model.graph.value_info}
    names = {name for node in model.graph.node for name in node.output}
    names |= {v.name for v in model.graph.input} | {t.name for t in model.graph.initializer}
    for name, info in values.items():
        if name not in names:
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
            data = np.asarray(generator.standard_normal(shape), np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    return model


def weighted(body: str, shapes: dict[str, Sequence[int]], *, opset: int = 17) -> onnx.ModelProto:
    """A model from text with random float initializers of the given shapes."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n{body}'
    model = parser.parse_model(text)
    generator = np.random.default_rng(7)
    for name, shape in shapes.items():
        data = np.asarray(generator.standard_normal(tuple(shape)), np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    return model


def run_passes(model: onnx.ModelProto, *steps: Step) -> onnx.ModelProto:
    """The passes on the canonical form of the model."""
    draft = to_draft(model)
    bind_shapes(draft, model, {})
    for step in (canonicalize, fold_constants, require_static, *steps):
        step(draft)
    return to_proto(draft, model)


def samples_of(model: onnx.ModelProto, *, count: int = 2) -> list[dict[str, Array]]:
    """Random inputs: floats normal, integers 0 or 1, booleans."""
    constants = {t.name for t in model.graph.initializer}
    generator = np.random.default_rng(3)
    samples: list[dict[str, Array]] = []
    for _ in range(count):
        sample: dict[str, Array] = {}
        for value in model.graph.input:
            if value.name in constants:
                continue
            tensor = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            shape = [d.dim_value for d in tensor.shape.dim]
            data = generator.standard_normal(shape)
            sample[value.name] = (
                data.astype(dtype) if dtype.kind == "f" else (data > 0).astype(dtype)
            )
        samples.append(sample)
    return samples


def same(before: onnx.ModelProto, after: onnx.ModelProto, *, tolerance: float = 2e-6) -> bool:
    """Whether both compute the same, to the rounding of float32."""
    onnx.checker.check_model(after)
    return all(error <= tolerance for error in check(before, after, samples_of(before)).values())


def ops(model: onnx.ModelProto) -> dict[str, int]:
    """How many nodes of each operator."""
    return dict(Counter(node.op_type for node in model.graph.node))


def as_model(proto: onnx.ModelProto) -> Model:
    """A loaded model without a file."""
    constants = {t.name for t in proto.graph.initializer}
    inputs = tuple(Value(v.name, (), "") for v in proto.graph.input if v.name not in constants)
    outputs = tuple(Value(v.name, (), "") for v in proto.graph.output)
    return Model(proto, Path("text.onnx"), "", inputs, outputs)
