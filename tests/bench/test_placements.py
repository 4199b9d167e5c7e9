"""The table of placements: a graph's plan on a target, and the page made of the rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import onnx
import onnx.parser
import pytest

from bench.agreement.integer_files import prepared
from bench.corpus.cases import Case
from bench.placements import page
from bench.placements.case import Row, planned
from splitter.graph import Graph
from splitter.rules.targets import load_target

NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,64,32,32] x) => (float[1,64,32,32] y)
  <float[64,64,3,3] w = {WEIGHTS}, float[64] b = {BIAS}> {
  c = Conv <pads: ints = [1, 1, 1, 1]> (x, w, b)
  s = Sin (c)
  y = Conv <pads: ints = [1, 1, 1, 1]> (s, w, b)
}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    weights = ",".join(str((i % 7 - 3) / 100) for i in range(64 * 64 * 9))
    text = NETWORK.replace("WEIGHTS", weights).replace("BIAS", ",".join("0" for _ in range(64)))
    path = tmp_path_factory.mktemp("placements") / "sine.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return prepared(Case("sine", "models", path)).graph


def test_a_row_says_what_the_plan_is_and_what_it_gains(graph: Graph) -> None:
    row = planned("sine", graph, load_target("imx95"))
    assert (row.status, row.segments, row.npu_macs) == ("done", "NPU | CPU | NPU", 1.0)
    assert row.macs == 2 * 32 * 32 * 64 * 64 * 9
    assert row.boundary == 2 * 32 * 32 * 64
    assert row.ms < row.cpu_ms


def test_all_on_the_cpu_gains_nothing_and_passes_nothing(graph: Graph) -> None:
    row = planned("sine", graph, load_target("cpu"))
    assert (row.segments, row.npu_macs, row.boundary) == ("CPU", 0.0, 0)
    assert row.ms == row.cpu_ms


def test_the_page_has_a_line_for_each_graph_and_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Row("one", "imx95", units=3, macs=10, npu_macs=0.5, segments="NPU | CPU", boundary=2500)
    done.ms, done.cpu_ms = 2.0, 8.0
    rows = [done, Row("two", "imx95", status="refused", reason="a Loop | of its own")]
    (tmp_path / "rows.json").write_text(json.dumps([asdict(row) for row in rows]))
    monkeypatch.setattr(page, "SAVED", tmp_path / "rows.json")
    text = page.page()
    assert "| one | 50.0 % | NPU, CPU | 2.5 | 2 | 8 |" in text
    assert "| two | refused: a Loop / of its own |" in text
    assert "| imx95 | 1 | 1 | 0 | 4.0 times |" in text
    assert "of 2 graphs" in text
