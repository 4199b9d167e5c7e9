"""The trained RF-DETR: same numbers through normalize and layout, and what is gained."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from splitter.graph import Graph
from splitter.layout import layout
from splitter.layout.as_onnx import as_onnx
from splitter.model import Model, load
from splitter.normalize import normalize
from splitter.normalize.check import check, difference
from splitter.normalize.evaluate import session

MODEL = Path(__file__).parents[2] / "models" / "rf_detr_tiny.onnx"


@cache
def original() -> Model:
    return load(MODEL)


@cache
def normalized() -> Model:
    return normalize(original())


@cache
def graph() -> Graph:
    return layout(normalized())


def sample(seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {v.name: generator.standard_normal(v.shape).astype(v.dtype) for v in original().inputs}


def with_outputs(proto: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    declared = {v.name for v in result.graph.output}
    result.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in names if name not in declared
    )
    return result


def test_the_numbers_stay_through_normalize_and_layout() -> None:
    for made in (normalized().proto, as_onnx(graph())):
        errors = check(original().proto, made, [sample(0), sample(1)])
        assert set(errors) == {"dets", "labels"} and max(errors.values()) < 1e-5


def test_a_value_that_kept_its_name_kept_its_meaning() -> None:
    before, after = original().proto, normalized().proto
    made = {name for node in before.graph.node for name in node.output}
    common = [n for node in after.graph.node for n in node.output if n in made]
    assert len(common) > 200
    left = session(with_outputs(before, common)).run(common, sample())
    right = session(with_outputs(after, common)).run(common, sample())
    for name, a, b in zip(common, left, right, strict=True):
        assert difference(np.asarray(a), np.asarray(b)) < 1e-3, name


def test_a_stored_value_is_the_onnx_value_with_its_axes_in_the_stated_order() -> None:
    proto = normalized().proto
    made = {name for node in proto.graph.node for name in node.output}
    names = [name for name, value in graph().values.items() if name in made]
    expected = session(with_outputs(proto, names)).run(names, sample())
    actual = session(with_outputs(as_onnx(graph()), names)).run(names, sample())
    moved = 0
    for name, a, b in zip(names, expected, actual, strict=True):
        axes = graph().values[name].axes
        moved += bool(axes)
        assert difference(np.transpose(a, axes) if axes else a, np.asarray(b)) < 1e-3, name
    assert moved > 20


def test_no_axis_lists_reshape_chains_or_class_token_are_left() -> None:
    counts = Counter(node.op_type for node in normalized().proto.graph.node)
    gone = {"Shape", "Expand", "Where", "Cast", "Erf", "Div", "Sqrt", "Gemm", "GatherElements",
            "Identity", "Constant", "Unsqueeze", "Squeeze", "ConstantOfShape"}  # fmt: skip
    assert not gone & set(counts)
    assert counts["Gelu"] == 8 and counts["LayerNormalization"] == 38


def test_the_backbone_and_the_projector_have_centered_streams() -> None:
    norms = [unit for unit in graph().units if unit.op == "LayerNormalization"]
    assert sum(unit.attrs["centered"] for unit in norms) == 31
    streams = [unit.inputs[0] for unit in norms if unit.attrs["centered"]]
    names = list(dict.fromkeys(streams))
    for value in session(with_outputs(as_onnx(graph()), names)).run(names, sample()):
        array = np.asarray(value)
        assert np.abs(array.mean(axis=-1)).max() < 1e-4 * np.abs(array).max()


def test_few_transposes_and_no_rank_over_four_are_left() -> None:
    counts = Counter(unit.op for unit in graph().units)
    assert counts["Transpose"] <= 48 and counts["Reshape"] <= 69 and len(graph().units) <= 399
    assert max(len(value.shape) for value in graph().values.values()) == 4


def test_every_unit_says_which_nodes_of_the_file_it_stands_for() -> None:
    nodes = {node.name for node in original().proto.graph.node}
    named = [unit for unit in graph().units if unit.op not in ("Transpose", "Reshape")]
    assert all(unit.nodes and set(unit.nodes) <= nodes for unit in named)
