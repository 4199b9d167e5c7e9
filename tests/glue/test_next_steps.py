"""NEXT_STEPS.md: the commands a person types next, for these parts and this target."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from splitter.glue import Artifacts, next_steps
from splitter.glue.manifest import RANDOM_WARNING
from splitter.rules.targets import load_target, targets


def test_the_converter_is_called_for_every_npu_part_and_no_other(bundle: Any) -> None:
    text = next_steps(bundle.manifest, load_target("imx95"))
    assert (
        "\nneutron-converter --target imx95 --input parts/0-npu.tflite "
        "--output converted/0-npu_converted.tflite\n"
    ) in text
    assert "--input parts/1-cpu.tflite" not in text
    assert "\nsplit inspect converted/0-npu_converted.tflite --target imx95\n" in text


def test_the_board_is_run_with_the_targets_delegate_and_the_gate(bundle: Any) -> None:
    text = next_steps(bundle.manifest, load_target("imx95"))
    command = next(line for line in text.splitlines() if "board.npz" in line and "python3" in line)
    assert command.endswith(
        "--delegate /usr/lib/libneutron_delegate.so --converted converted --require-npu"
    )


def test_every_version_check_and_trap_of_the_rule_file_is_told(bundle: Any) -> None:
    target = load_target("imx95")
    text = next_steps(bundle.manifest, target)
    for check in target.board.checks:
        assert check.command in text
    for trap in (*target.board.notes, target.tool.note, target.board.version_rule):
        assert trap in text


def test_short_names_of_sources_are_explained(bundle: Any) -> None:
    target = load_target("imx95")
    text = next_steps(bundle.manifest, target)
    assert f"- S5: {target.sources['S5']}" in text


def test_every_command_names_a_file_of_the_bundle(bundle: Any) -> None:
    text = next_steps(bundle.manifest, load_target("imx95"))
    assert "glue/run.py" in text
    assert (bundle.folder / "glue" / "run.py").is_file()
    assert "unsplit.tflite" in text


def test_random_calibration_is_the_first_thing_told(
    make_bundle: Callable[..., Any], tmp_path: Path
) -> None:
    text = next_steps(make_bundle(tmp_path / "r", random=True).manifest, load_target("imx95"))
    assert RANDOM_WARNING in text.split("## 1.")[0]


def test_a_plan_on_the_cpu_has_no_converter_and_no_gate(bundle: Any) -> None:
    parts = tuple(part.model_copy(update={"device": "cpu"}) for part in bundle.manifest.parts)
    manifest = bundle.manifest.model_copy(update={"parts": parts})
    text = next_steps(manifest, load_target("cpu"))
    assert "convert" not in text.lower()
    assert "--require-npu" not in text
    assert "--delegate" not in text


@pytest.mark.parametrize("name", targets())
def test_every_target_that_comes_with_the_tool_has_next_steps(name: str, bundle: Any) -> None:
    text = next_steps(bundle.manifest, load_target(name))
    assert not re.search(r"\{[{%#]|\{(input|output)\}", text)
    assert "None" not in text


def test_the_script_that_compares_two_recordings_runs(
    bundle: Any, in_npz: Path, tmp_path: Path
) -> None:
    text = next_steps(bundle.manifest, load_target("imx95"))
    (script,) = re.findall(r'python3 -c "\n(.*?)\n"\n', text, re.DOTALL)
    for name in ("parts-raw.npz", "board-raw.npz"):
        assert bundle.run(in_npz, "--raw", tmp_path / name).returncode == 0
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "boundary/turned: 0.0% differ, mean 0.00, most 0" in done.stdout


def test_a_file_name_does_not_leave_its_place(bundle: Any) -> None:
    source = bundle.manifest.source.model_copy(update={"name": "a`b\n# x|; rm -r ~.onnx"})
    text = next_steps(bundle.manifest.model_copy(update={"source": source}), load_target("imx95"))
    assert "\n# x" not in text
    assert "root@BOARD:/root/a-b-x-rm-r" in text


def test_the_float_file_is_named_when_it_is_kept(bundle: Any) -> None:
    kept = replace(bundle.artifacts, float_file=b"x")
    assert isinstance(kept, Artifacts)
    assert set(kept.files(["npu", "cpu"])) == {
        "parts/0-npu.tflite",
        "parts/1-cpu.tflite",
        "unsplit.tflite",
        "float.tflite",
    }


def test_a_runtime_for_16_bits_is_named_when_they_are_used(bundle: Any) -> None:
    def told(*operators: str) -> str:
        precision = bundle.manifest.precision.model_copy(update={"int16_operators": operators})
        made = bundle.manifest.model_copy(update={"precision": precision})
        return next_steps(made, load_target("imx95"))

    assert "16 bits" not in told()
    assert "tflite_runtime 2.14 and ai-edge-litert 2.3 have all of these" in told("ADD", "MUL")
    assert "has no 16-bit TILE and refuses the file" in told("ADD", "TILE")


def test_the_manifest_tells_the_bits_of_every_value(bundle: Any) -> None:
    precision = bundle.manifest.precision
    names = [name for values in precision.values.values() for name in values]
    assert len(set(names)) == len(names)
    assert {*bundle.whole.inputs, *bundle.whole.outputs} <= set(names)
    assert 8 <= precision.average_bits <= 16
