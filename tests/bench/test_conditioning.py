"""A float error is excused where float32 leaves it open, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from bench.corpus.conditioning import OWN, Forcing, perturbed
from bench.corpus.verdict import judged
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.rules.support import judge
from splitter.rules.targets import load_target

RANKED = """
<ir_version: 10, opset_import: ["" : 22]>
g (float[1,8] x) => (float[1,3] v, int64[1,3] i)
<int64[1] k = {3}>
{ s = Sigmoid (x)  v, i = TopK (s, k) }
"""
CANCELLING = """
<ir_version: 10, opset_import: ["" : 22]>
g (float[1,8] x) => (float[1,8] y)
<float[1] c = {1000.0}>
{ a = Add (x, c)  y = Sub (a, c) }
"""


def test_a_graph_takes_the_decisions_it_is_given_and_counts_its_own_that_differ(
    tmp_path: Path,
) -> None:
    onnx.save(onnx.parser.parse_model(RANKED), tmp_path / "ranked.onnx")
    model = load(tmp_path / "ranked.onnx")
    graph = layout(normalize(model))
    chosen = judge(graph, load_target("cpu"), trust="proxy").cpu
    lite = lower(graph, {unit: verdict.lowering for unit, verdict in chosen.items()})
    forcing = Forcing(model.proto, graph, lite)
    scores = np.linspace(0, 1, 8, dtype=np.float32)[None]
    made = forcing.run({"x": scores})
    assert forcing.decisions == ("v", "i")
    assert made.outputs["i"].tolist() == [[7, 6, 5]]
    assert made.flips == {"i": (0, 3)}
    assert not any(name.endswith(OWN) for name in made.outputs)


def test_a_graph_without_decisions_is_run_as_it_is(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(CANCELLING), tmp_path / "plain.onnx")
    model = load(tmp_path / "plain.onnx")
    graph = layout(normalize(model))
    chosen = judge(graph, load_target("cpu"), trust="proxy").cpu
    lite = lower(graph, {unit: verdict.lowering for unit, verdict in chosen.items()})
    made = Forcing(model.proto, graph, lite).run({"x": np.ones((1, 8), np.float32)})
    assert made.flips == {}
    assert made.outputs["y"].tolist() == [[1.0] * 8]


def test_the_reference_itself_moves_where_it_cancels_and_hardly_elsewhere() -> None:
    x = np.linspace(1e-3, 2e-3, 8, dtype=np.float32)[None]
    noise = []
    for text in (CANCELLING, CANCELLING.replace("1000.0", "0.0")):
        proto = onnx.parser.parse_model(text)
        true = x.astype(np.float64)
        moved, _ = perturbed(proto, ["y"], {"x": x})
        noise.append(float(np.abs(moved["y"] - true).max() / true.max()))
    assert noise[0] > 1e-3
    assert noise[1] < 1e-6


def row(**changes: Any) -> dict[str, Any]:
    return {
        "status": "done", "float_error": {"y": 3e-4}, "forced_error": {}, "noise": {},
        "flips": (0, 0), "split": True, "floats": 0, "decisions": {}, "integer_error": {"y": 0.01},
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "wrong"),
        ({"noise": {"y": 1e-4}}, "right"),
        ({"noise": {"y": 1e-5}}, "wrong"),
        ({"forced_error": {"y": 1e-6}, "flips": (1, 900)}, "right"),
        ({"forced_error": {"y": 1e-6}, "flips": (100, 900)}, "wrong"),
        ({"noise": {"y": 1e-4}, "split": False}, "wrong"),
        ({"noise": {"y": 1e-4}, "integer_error": {"y": 0.2}}, "coarse"),
    ],
)
def test_an_error_over_the_limit_is_right_only_where_rounding_explains_it(
    changes: dict[str, Any], verdict: str
) -> None:
    assert judged(row(**changes)) == verdict
