"""The bench measures files, not promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from bench import inference, job

RELU = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8] x) => (float[1,8] y) { y = Relu (x) }
"""


def test_every_contestant_takes_its_turns_in_order() -> None:
    turns: list[str] = []
    times = inference.race(
        {name: lambda name=name: turns.append(name) for name in ("a", "b")},  # type: ignore[misc]
        turns=3,
    )
    assert turns == ["a", "b"] * 4
    assert set(times) == {"a", "b"}


def test_noise_fills_the_range_of_an_integer_type() -> None:
    values = inference.noise((4000,), "int8")
    assert (values.min(), values.max()) == (-128, 127)
    assert inference.noise((2, 3), "float32").dtype == np.float32


def test_a_job_is_measured_on_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(onnx.parser.parse_model(RELU), tmp_path / "relu.onnx")
    np.savez(tmp_path / "x.npz", x=np.ones((16, 8), np.float32))
    monkeypatch.setenv("PYTHONPATH", str(job.ROOT))
    small = job.Job("relu", tmp_path / "relu.onnx", ("--calibration", str(tmp_path / "x.npz")))
    measured = job.run(small, tmp_path / "out")
    assert measured.status == 0
    assert measured.operators >= 1
    assert measured.transposes == 0
    assert measured.megabytes > 10
    assert set(inference.contestants(small, tmp_path / "out")) >= {"ONNX Runtime, float"}


def test_the_peer_s_figures_are_the_recorded_ones() -> None:
    assert (job.ONNX2TF.operators, job.ONNX2TF.transposes, job.ONNX2TF.seconds) == (1164, 70, 37.0)
