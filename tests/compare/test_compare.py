"""split compare, end to end on a small detector: what it ranks, measures, writes and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from splitter.compare import CompareOptions, Result, compare
from splitter.compare.telling import _costs
from splitter.compare.terminal import columns, values
from splitter.diagnostics import SplitterError
from splitter.options import Options
from splitter.progress import Silent

DETECTOR = """
<ir_version: 8, opset_import: ["" : 18]>
detector (float[1,3,16,16] input) => (float[1,6,4] dets, float[1,6,4] labels) {
    c = Conv <pads = [1,1,1,1], strides = [2,2]> (input, w_conv, b_conv)
    half = Sigmoid (c)
    r = Mul (c, half)
    d = Conv <pads = [1,1,1,1]> (r, w_more, b_conv)
    e = Add (d, r)
    f = Reshape (e, flat)
    m = MatMul (f, w_boxes)
    s = Sigmoid (m)
    dets = Reshape (s, six_four)
    n = MatMul (f, w_labels)
    t = Sin (n)
    u = MatMul (t, w_last)
    labels = Reshape (u, six_four)
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("compare")
    model = onnx.parser.parse_model(DETECTOR)
    rng = np.random.default_rng(0)
    shapes = {
        "w_conv": (8, 3, 3, 3),
        "b_conv": (8,),
        "w_more": (8, 8, 3, 3),
        "w_boxes": (512, 24),
        "w_labels": (512, 24),
        "w_last": (24, 24),
    }
    for name, shape in shapes.items():
        array = rng.normal(0, 0.2, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for name, numbers in (("flat", [1, 512]), ("six_four", [1, 6, 4])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(numbers), name))
    onnx.save(model, home / "small.onnx")
    noise = rng.normal(size=(12, 3, 16, 16)).astype(np.float32)
    np.savez(home / "samples.npz", input=noise)
    return home


def run(
    folder: Path,
    out: str,
    *,
    targets: tuple[str, ...] = ("imx95",),
    cuts: tuple[tuple[str, ...], ...] = (),
    **more: Any,
) -> Result:
    job = Options(folder / "small.onnx", targets[0], folder / out, task="none", **more)
    return compare(CompareOptions(job, targets, cuts, candidates=8), Silent())


@pytest.fixture(scope="module")
def measured(folder: Path) -> Result:
    calibration = str(folder / "samples.npz")
    return run(folder, "measured", calibration=calibration, cuts=(("r",),))


def test_rows_come_quickest_first_with_the_chosen_plan_marked_once(measured: Result) -> None:
    rows = measured.study.rows
    assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    assert [row.total_ms for row in rows] == sorted(row.total_ms for row in rows)
    assert sum(row.chosen for row in rows) == 1
    assert {"all on the CPU", "cut at r"} <= {row.name for row in rows}


def test_every_row_is_measured_against_float_and_its_cpu_parts_are_timed(
    measured: Result,
) -> None:
    for row in measured.study.rows:
        assert row.measured is not None
        assert set(row.measured.errors) == {"dets", "labels"}
        assert 0 < row.measured.worst < 0.2
        for segment in row.segments:
            assert (segment.host_ms is not None) == (segment.device == "cpu")


def test_costs_and_segments_add_up(measured: Result) -> None:
    for row in measured.study.rows:
        of_segments = sum(segment.ms for segment in row.segments)
        assert of_segments == pytest.approx(row.cost.npu_ms + row.cost.cpu_ms)
        assert 1e3 / row.frames == pytest.approx(max(row.stages_ms))
        assert row.frames * row.total_ms >= 1e3 * 0.999
        npu = sum(s.macs for s in row.segments if s.device == "npu")
        assert row.npu_share == pytest.approx(npu / sum(s.macs for s in row.segments))
        assert bool(row.boundary_bytes) == (len(row.segments) > 1)


def test_nothing_on_the_front_is_beaten(measured: Result) -> None:
    rows = measured.study.rows
    points = {r.rank: (r.total_ms, r.measured.figure.value) for r in rows if r.measured}
    front = {row.rank for row in rows if row.front}
    assert front
    for rank, (ms, value) in points.items():
        beaten = any(o <= ms and v >= value and (o, v) != (ms, value) for o, v in points.values())
        assert beaten == (rank not in front)


def test_both_files_say_the_same(measured: Result, folder: Path) -> None:
    written = folder / "measured"
    assert sorted(path.name for path in written.iterdir()) == ["compare.html", "compare.json"]
    document = json.loads((written / "compare.json").read_text())
    assert document == json.loads(measured.to_json())
    names = [row["name"] for row in document["candidates"]]
    assert names == [row.name for row in measured.study.rows]
    page = (written / "compare.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page and 'class="pareto"' in page and 'class="bars"' in page
    assert all(name in page for name in names)


def test_the_terminal_names_every_candidate_and_what_separates_the_first_two(
    measured: Result,
) -> None:
    text = measured.text(width=140)
    first, second = measured.study.rows[:2]
    assert f"The first, {first.name}, is " in text and second.name in text
    assert "ms" in text and "unit" in text
    assert max(len(line) for line in text.splitlines()) <= 140


def test_few_bytes_more_or_less_are_told_in_bytes(measured: Result) -> None:
    first = measured.study.rows[0]
    said = [
        _costs(replace(first, boundary_bytes=more), replace(first, boundary_bytes=less))
        for more, less in ((24, 0), (0, 24), (9, 9))
    ]
    assert [("+24 B" in one, "-24 B" in one, "passed on" in one) for one in said] == [
        (True, False, True),
        (False, True, True),
        (False, False, False),
    ]


def check_width(found: Result, width: int) -> None:
    """Every number stands whole, every line ends in time, and what had no room is named."""
    lines = found.text(width=width).splitlines()
    assert all(len(line) <= width for line in lines)
    head, *table = lines[next(i for i, line in enumerate(lines) if " candidate " in line) :]
    last = columns(found.study)[-1]
    assert head.endswith(last)
    for row, line in zip(found.study.rows, table, strict=False):
        figures = dict(zip(columns(found.study), values(row, found.study), strict=True))
        assert line.split()[0] == str(row.rank)
        assert figures["on NPU"] in line and figures["total"] in line
        assert line.endswith(figures[last])
    spared = [line for line in lines if line.startswith("Too narrow for")]
    assert bool(spared) == ("pass" not in head.split())


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_gets_whole_numbers_in_fewer_columns(
    measured: Result, width: int
) -> None:
    check_width(measured, width)


def test_without_calibration_the_estimate_alone_ranks_and_that_is_said(folder: Path) -> None:
    found = run(folder, "estimated")
    assert all(row.measured is None and not row.front for row in found.study.rows)
    assert "Accuracy was not measured" in found.text()
    assert json.loads(found.to_json())["calibration"] is None
    page = (folder / "estimated" / "compare.html").read_text()
    assert "Accuracy was not measured" in page and 'class="pareto"' not in page


def test_several_targets_are_ranked_together(folder: Path) -> None:
    found = run(folder, "several", targets=("imx95", "ethos-u85", "cpu"))
    assert {row.target for row in found.study.rows} == {"imx95", "ethos-u85", "cpu"}
    assert sum(row.chosen for row in found.study.rows) == 3
    assert "imx95" in found.text(width=120)
    for width in (60, 80, 120):
        check_width(found, width)


def test_a_former_comparison_is_replaced_and_a_foreign_folder_is_not(folder: Path) -> None:
    run(folder, "again")
    run(folder, "again")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "precious.txt").write_text("mine")
    with pytest.raises(SplitterError, match=r"precious\.txt"):
        run(folder, "foreign")


def test_an_unknown_cut_is_refused_with_the_nearest_names(folder: Path) -> None:
    with pytest.raises(SplitterError, match=r"--cut rr: .*did you mean"):
        run(folder, "refused", cuts=(("rr",),))
    assert not (folder / "refused").exists()
