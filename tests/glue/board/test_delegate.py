"""NPU parts with a real delegate library (delegate.c beside conftest, compiled here)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitter.graph import Array
from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.tflite.write import write


def load(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def run(bundle: Any, *arguments: Any) -> int:
    try:
        return int(bundle.module().main([str(argument) for argument in arguments]))
    except SystemExit as left:
        return int(left.code or 0)


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch, delegate: Path) -> Any:
    """takes("all"): the delegate's path, set to take every node."""

    def set_mode(mode: str) -> Path:
        monkeypatch.setenv("TEST_DELEGATE", mode)
        return delegate

    return set_mode


def test_a_delegate_that_takes_the_part_passes_and_is_counted(
    bundle: Any, in_npz: Path, tmp_path: Path, takes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "cpu.npz") == 0
    npu = ("-o", tmp_path / "npu.npz", "--delegate", takes("all"), "--require-npu")
    assert run(bundle, in_npz, *npu) == 0
    assert "the delegate took 2 of 2 nodes in 1 partition" in capsys.readouterr().err
    assert (tmp_path / "cpu.npz").read_bytes() == (tmp_path / "npu.npz").read_bytes()


def test_a_delegate_that_takes_nothing_fails_the_gate_only(
    bundle: Any, in_npz: Path, tmp_path: Path, takes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (in_npz, "-o", tmp_path / "o.npz", "--delegate", takes("none"))
    assert run(bundle, *arguments, "--require-npu") == 1
    assert "took 0 of 2 nodes" in capsys.readouterr().err
    assert not (tmp_path / "o.npz").exists()
    assert run(bundle, *arguments) == 0


def test_the_gate_fails_without_a_delegate(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", "--require-npu") == 1
    assert "no --delegate was given" in capsys.readouterr().err


def test_a_missing_delegate_library_is_one_message(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", "--delegate", "/usr/lib/no.so") == 2
    assert "error: --delegate /usr/lib/no.so: cannot be loaded" in capsys.readouterr().err


def test_a_library_that_is_no_delegate_is_one_message(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = next(Path("/").glob("lib/*-linux-gnu/libm.so.6"), None)
    if library is None:
        pytest.skip("no libm to try")
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", "--delegate", library) == 2
    assert "cannot be loaded" in capsys.readouterr().err


def test_bench_records_the_placement(bundle: Any, tmp_path: Path, takes: Any) -> None:
    arguments = ("--bench", 1, "--bench-out", tmp_path / "b.json", "--delegate", takes("all"))
    assert run(bundle, *arguments) == 0
    npu, cpu = json.loads((tmp_path / "b.json").read_text())["parts"]
    assert (npu["placement"]["taken"], npu["placement"]["left"]) == (2, {})
    assert cpu["placement"] is None
    assert (npu["delegated"], cpu["delegated"]) == (True, False)


@pytest.mark.parametrize(("mode", "word"), [("crash", "SIGSEGV"), ("hang", "did not answer")])
def test_a_part_that_dies_alone_goes_on_with_the_cpu(
    mode: str, word: str, bundle: Any, in_npz: Path, tmp_path: Path, delegate: Path
) -> None:
    assert bundle.run(in_npz, "-o", tmp_path / "cpu.npz").returncode == 0
    npu = ("--delegate", delegate, "--isolate", "--timeout", 3)
    done = bundle.run(in_npz, "-o", tmp_path / "npu.npz", *npu, TEST_DELEGATE=mode)
    assert done.returncode == 0, done.stderr
    assert word in done.stderr
    assert "goes on with parts/0-npu.tflite on the CPU" in done.stderr
    assert (tmp_path / "cpu.npz").read_bytes() == (tmp_path / "npu.npz").read_bytes()


def test_a_part_that_dies_alone_fails_the_gate(
    bundle: Any, in_npz: Path, tmp_path: Path, delegate: Path
) -> None:
    npu = ("--delegate", delegate, "--isolate", "--require-npu")
    done = bundle.run(in_npz, "-o", tmp_path / "npu.npz", *npu, TEST_DELEGATE="crash")
    assert done.returncode == 1
    assert "failed: --require-npu" in done.stderr


def test_an_isolated_part_that_lives_gives_the_same_numbers(
    bundle: Any, in_npz: Path, tmp_path: Path, delegate: Path
) -> None:
    assert bundle.run(in_npz, "-o", tmp_path / "cpu.npz").returncode == 0
    npu = ("--delegate", delegate, "--isolate", "--require-npu")
    done = bundle.run(in_npz, "-o", tmp_path / "npu.npz", *npu, TEST_DELEGATE="all")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cpu.npz").read_bytes() == (tmp_path / "npu.npz").read_bytes()


def test_an_isolated_part_that_does_not_open_is_one_message(bundle: Any, in_npz: Path) -> None:
    done = bundle.run(in_npz, "--bench", 1, "--delegate", "/no.so", "--isolate")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "/no.so: cannot be loaded" in done.stderr


def converted(part: LiteGraph, *, rest: int = 0, rename: bool = True) -> LiteGraph:
    """As the vendor's converter writes a part: one custom node, outputs renamed and permuted.

    The test's delegate copies the inputs to the outputs in reverse order, so both outputs are the
    image's own numbers. rest: operators that the converter left.
    """
    suffix = "_out" if rename else ""
    tensors = {"image": part.tensors["image"]}
    blob = Tensor("microcode", (8,), "uint8", np.arange(8, dtype="uint8"))
    tensors[blob.name] = blob
    outputs = tuple(reversed(part.outputs))
    for name in outputs:
        tensors[name + suffix] = replace(part.tensors[name], name=name + suffix)
    names = tuple(name + suffix for name in outputs)
    node = Operator("CUSTOM:NeutronGraph", ("microcode", "image", "image"), names)
    operators = [node]
    for i in range(rest):
        name = f"left_{i}"
        tensors[name] = replace(part.tensors["sum"], name=name)
        operators.append(Operator("RELU", (f"{'sum' + suffix}",), (name,)))
    return LiteGraph(("image",), names, tensors, tuple(operators))


def write_converted(bundle: Any, folder: Path, name: str, graph: LiteGraph) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(write(graph))
    return folder


@pytest.mark.parametrize("name", ["0-npu.tflite", "0-npu_converted.tflite"])
@pytest.mark.parametrize("rename", [True, False])
def test_a_converted_file_is_bound_by_name_or_by_shape(
    name: str, rename: bool, bundle: Any, in_npz: Path, tmp_path: Path, takes: Any
) -> None:
    graph = converted(bundle.parts[0].graph, rename=rename)
    folder = write_converted(bundle, tmp_path / "c", name, graph)
    arguments = ("--delegate", takes("custom"), "--converted", folder, "--require-npu")
    assert run(bundle, in_npz, "--raw", tmp_path / "raw.npz", *arguments) == 0
    raw = load(tmp_path / "raw.npz")
    assert raw["output/sum"].shape == (3, 2, 3, 4)
    assert np.array_equal(raw["output/sum"], raw["input/image"])
    assert np.array_equal(raw["boundary/turned"].ravel(), raw["input/image"].ravel())


def test_a_converted_file_without_a_delegate_says_what_is_missing(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = converted(bundle.parts[0].graph)
    folder = write_converted(bundle, tmp_path / "c", "0-npu.tflite", graph)
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", "--converted", folder) == 2
    assert "--delegate PATH" in capsys.readouterr().err


def test_a_converter_that_left_most_of_the_part_fails_the_gate(
    bundle: Any, in_npz: Path, tmp_path: Path, takes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = converted(bundle.parts[0].graph, rest=2)
    folder = write_converted(bundle, tmp_path / "c", "0-npu.tflite", graph)
    arguments = ("--delegate", takes("custom"), "--converted", folder)
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", *arguments, "--require-npu") == 1
    errors = capsys.readouterr().err
    assert "the delegate took 1 of 3 nodes in 1 partition (1 made by the vendor's" in errors
    assert "on the CPU: 2 RELU" in errors
    assert "2 nodes stay on the CPU, the part had 2 operators" in errors


def unchanged(bundle: Any, folder: Path) -> None:
    (folder / "0-npu.tflite").write_bytes(bundle.artifacts.parts[0])


def several(bundle: Any, folder: Path) -> None:
    (folder / "0-npu_a.tflite").write_bytes(b"")
    (folder / "0-npu_b.tflite").write_bytes(b"")


def nothing(bundle: Any, folder: Path) -> None:
    (folder / "10-npu.tflite").write_bytes(b"")


def no_model(bundle: Any, folder: Path) -> None:
    (folder / "0-npu.tflite").write_bytes(b"not a model at all")


def another_scale(bundle: Any, folder: Path) -> None:
    graph = bundle.parts[0].graph
    image = graph.tensors["image"]
    parameters = replace(image.quantization, scale=(0.9,))
    tensors = {**graph.tensors, "image": replace(image, quantization=parameters)}
    (folder / "0-npu.tflite").write_bytes(write(replace(graph, tensors=tensors)))


def ambiguous(bundle: Any, folder: Path) -> None:
    """Two outputs of one shape and scale under names that say nothing."""
    graph = converted(bundle.parts[0].graph)
    same = replace(graph.tensors["sum_out"], name="x"), replace(graph.tensors["sum_out"], name="y")
    tensors = {**graph.tensors, "x": same[0], "y": same[1]}
    node = replace(graph.operators[0], outputs=("x", "y"))
    made = LiteGraph(graph.inputs, ("x", "y"), tensors, (node,))
    (folder / "0-npu.tflite").write_bytes(write(made))


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (unchanged, "same sha256"),
        (several, "several files"),
        (nothing, "no 0-npu.tflite and no 0-npu_*.tflite"),
        (no_model, "does not open it"),
        (another_scale, "made from another bundle?"),
        (ambiguous, "none or several fit"),
    ],
)
def test_a_converted_file_that_does_not_fit_is_one_message(
    prepare: Any,
    message: str,
    bundle: Any,
    in_npz: Path,
    tmp_path: Path,
    takes: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    prepare(bundle, folder)
    arguments = ("--delegate", takes("all"), "--converted", folder)
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o.npz").exists()


def test_the_environment_of_the_test_delegate_is_not_left_set() -> None:
    assert "TEST_DELEGATE" not in os.environ
