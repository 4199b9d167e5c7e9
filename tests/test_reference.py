"""The reference runner: ONNX Runtime by names, any value of the graph, clear refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from splitter.diagnostics import SplitterError
from splitter.reference import OnnxRunner, run_onnx

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
two (float[2] a, float[2] b) => (float[2] zz, float[2] aa)
<float[2] w = {10, 20}>
{
  sum = Add(a, b)
  zz = Sub(a, b)
  aa = Mul(sum, w)
}
""")
A, B = np.array([5, 7], np.float32), np.array([1, 2], np.float32)


def test_results_are_bound_by_name() -> None:
    results = run_onnx(MODEL, {"b": B, "a": A})
    assert results["zz"].tolist() == [4, 5]
    assert results["aa"].tolist() == [60, 180]


@pytest.mark.parametrize("optimize", [True, False])
def test_any_value_of_the_graph_can_be_asked_for(optimize: bool) -> None:
    before = MODEL.SerializeToString(deterministic=True)
    results = run_onnx(MODEL, {"a": A, "b": B}, ["sum", "zz"], optimize=optimize)
    assert {name: array.tolist() for name, array in results.items()} == {
        "sum": [6, 9],
        "zz": [4, 5],
    }
    assert MODEL.SerializeToString(deterministic=True) == before


def test_a_file_with_external_data_is_run_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(MODEL)
    onnx.save(copy, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert run_onnx(path, {"a": A, "b": B})["aa"].tolist() == [60, 180]
    results = run_onnx(path, {"a": A, "b": B}, ["sum", "aa"])
    assert results["aa"].tolist() == [60, 180]
    assert results["sum"].tolist() == [6, 9]


def test_one_loaded_model_runs_many_samples() -> None:
    runner = OnnxRunner(MODEL, ["zz"], threads=1)
    assert runner.inputs == ("a", "b")
    assert [runner.run({"a": A, "b": x})["zz"].tolist() for x in (A, B)] == [[0, 0], [4, 5]]


def test_an_unknown_value_is_a_bug_that_offers_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean sum"):
        run_onnx(MODEL, {"a": A, "b": B}, ["summ"])


def test_arrays_of_the_wrong_shape_and_files_that_are_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SplitterError, match="cannot run"):
        run_onnx(MODEL, {"a": A[:1], "b": B})
    with pytest.raises(SplitterError, match="cannot run"):
        run_onnx(MODEL, {"a": A})
    path = tmp_path / "no.onnx"
    path.write_bytes(b"not a model")
    with pytest.raises(SplitterError, match="cannot load") as caught:
        OnnxRunner(path)
    assert caught.value.where == str(path)
