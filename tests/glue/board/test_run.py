"""glue/run.py as a board runs it: the file of the bundle, numpy and a runtime."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitter.graph import Array
from splitter.tflite.runtime import Interpreter


def load(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def run(bundle: Any, *arguments: Any) -> int:
    """glue/run.py's main in this process; the exit status."""
    try:
        return int(bundle.module().main([str(argument) for argument in arguments]))
    except SystemExit as left:
        return int(left.code or 0)


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return list(one) == list(other) and all(np.array_equal(one[k], other[k]) for k in one)


def test_outputs_have_the_names_dtypes_and_order_of_the_onnx_file(
    bundle: Any, in_npz: Path, tmp_path: Path
) -> None:
    done = bundle.run(in_npz, "-o", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    outputs = load(tmp_path / "out.npz")
    assert [(name, array.dtype.name, array.shape) for name, array in outputs.items()] == [
        ("scores", "float32", (6, 4, 3)),
        ("more", "int64", (6, 5)),
        ("big", "bool", (6, 4, 3)),
        ("sum", "float32", (6, 3, 4)),
        ("ids", "int64", (6, 5)),
    ]


def test_the_numbers_are_those_of_the_model(
    bundle: Any, feeds: dict[str, Array], in_npz: Path, tmp_path: Path
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "out.npz") == 0
    outputs = load(tmp_path / "out.npz")
    total = feeds["image"] + 0.02 * (np.array([-60, -5, 20, 90]) + 1)
    scores = 1 / (1 + np.exp(-total.transpose(0, 2, 1)))
    assert np.abs(outputs["sum"] - total).max() < 0.06
    assert np.abs(outputs["scores"] - scores).max() < 0.02
    assert np.array_equal(outputs["more"], feeds["ids"] + 7)
    assert np.array_equal(outputs["ids"], feeds["ids"])


def test_parts_equal_the_whole_model_bit_for_bit(bundle: Any, in_npz: Path, tmp_path: Path) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "a.npz", "--raw", tmp_path / "ra.npz") == 0
    whole = ("--unsplit", "-o", tmp_path / "b.npz", "--raw", tmp_path / "rb.npz")
    assert run(bundle, in_npz, *whole) == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    parts, unsplit = load(tmp_path / "ra.npz"), load(tmp_path / "rb.npz")
    assert set(parts) - set(unsplit) == {"boundary/turned"}
    assert all(np.array_equal(parts[key], unsplit[key]) for key in unsplit)


def test_raw_integers_are_those_that_the_runtime_gives(
    bundle: Any, feeds: dict[str, Array], in_npz: Path, tmp_path: Path
) -> None:
    assert run(bundle, in_npz, "--raw", tmp_path / "raw.npz") == 0
    raw = load(tmp_path / "raw.npz")
    interpreter = Interpreter(bundle.artifacts.unsplit, all_tensors=True)
    for i in range(3):
        image = feeds["image"][2 * i : 2 * i + 2]
        integers = np.rint(image / np.float32(0.05)).astype("int8") + np.int8(3)
        ids = feeds["ids"][2 * i : 2 * i + 2].astype("int32")
        made = interpreter.run({"image": integers, "ids": ids})
        assert np.array_equal(raw["input/image"][i], integers)
        assert np.array_equal(raw["boundary/turned"][i], interpreter.tensor("turned"))
        assert np.array_equal(raw["output/scores"][i], made["scores"])


def test_one_batch_and_many_give_the_same_rows(
    bundle: Any, feeds: dict[str, Array], in_npz: Path, tmp_path: Path
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "all.npz") == 0
    together = load(tmp_path / "all.npz")
    for i in range(3):
        np.savez(tmp_path / "one.npz", **{k: v[2 * i : 2 * i + 2] for k, v in feeds.items()})  # type: ignore[arg-type]
        assert run(bundle, tmp_path / "one.npz", "-o", tmp_path / "o.npz") == 0
        alone = load(tmp_path / "o.npz")
        assert all(np.array_equal(together[k][2 * i : 2 * i + 2], alone[k]) for k in alone)


def test_values_beyond_the_range_are_clipped_and_told(
    bundle: Any, feeds: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", image=feeds["image"] * 1e30, ids=feeds["ids"])
    assert run(bundle, tmp_path / "in.npz", "--raw", tmp_path / "raw.npz") == 0
    assert set(np.unique(load(tmp_path / "raw.npz")["input/image"])) == {-128, 127}
    assert capsys.readouterr().err.count("outside the calibrated range") == 1


def test_more_arrays_than_inputs_are_left_out_and_told(
    bundle: Any, feeds: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", labels=np.zeros(6), **feeds)  # type: ignore[arg-type]
    assert run(bundle, tmp_path / "in.npz", "-o", tmp_path / "o.npz") == 0
    assert "left out: labels" in capsys.readouterr().err


def test_a_random_calibration_is_told_at_every_run(
    make_bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(make_bundle(tmp_path / "r", random=True), in_npz, "-o", tmp_path / "o.npz") == 0
    assert "RANDOM" in capsys.readouterr().err


def test_xnnpack_is_within_one_step_and_says_so(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "--raw", tmp_path / "a.npz") == 0
    assert run(bundle, in_npz, "--raw", tmp_path / "b.npz", "--xnnpack") == 0
    assert "one step" in capsys.readouterr().err
    plain, quick = load(tmp_path / "a.npz"), load(tmp_path / "b.npz")
    gap = plain["output/scores"].astype(int) - quick["output/scores"].astype(int)
    assert np.abs(gap).max() <= 1


INPUTS: dict[str, tuple[Any, str]] = {
    "a missing input": (lambda f: {"image": f["image"]}, "no input ids"),
    "a wrong shape": (lambda f: {**f, "image": f["image"][:, :2]}, "has shape [6, 2, 4]"),
    "a missing axis": (lambda f: {**f, "image": f["image"][0]}, "has shape [3, 4]"),
    "no rows": (lambda f: {**f, "image": f["image"][:0]}, "has shape [0, 3, 4]"),
    "an odd number of rows": (lambda f: {**f, "image": f["image"][:5]}, "does not divide"),
    "different numbers of batches": (lambda f: {**f, "ids": f["ids"][:4]}, "image 3, ids 2"),
    "bytes for floats": (lambda f: {**f, "image": f["image"].astype("uint8")}, "is uint8"),
    "floats for integers": (lambda f: {**f, "ids": f["ids"].astype("float32")}, "is float32"),
    "NaN": (lambda f: {**f, "image": np.full_like(f["image"], np.nan)}, "NaN or infinity"),
    "infinity": (lambda f: {**f, "image": np.full_like(f["image"], np.inf)}, "NaN or infinity"),
    "integers that int32 does not hold": (lambda f: {**f, "ids": f["ids"] + 2**40}, "beyond int32"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_wrong_input_is_one_message_and_writes_nothing(
    name: str,
    bundle: Any,
    feeds: dict[str, Array],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil, message = INPUTS[name]
    np.savez(tmp_path / "in.npz", **spoil(feeds))
    assert run(bundle, tmp_path / "in.npz", "-o", tmp_path / "o.npz") == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(errors) == 1
    assert message in errors[0]
    assert not (tmp_path / "o.npz").exists()


def test_all_wrong_inputs_are_told_at_once(
    bundle: Any, feeds: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", image=feeds["image"].astype("int8"))
    assert run(bundle, tmp_path / "in.npz", "-o", tmp_path / "o.npz") == 2
    error = capsys.readouterr().err
    assert "is int8" in error
    assert "no input ids" in error


def broken_files(folder: Path) -> dict[str, Path]:
    files = {name: folder / f"{name}.npz" for name in ("text", "npy", "pickled", "short", "absent")}
    files["text"].write_text("no arrays")
    with files["npy"].open("wb") as stream:
        np.save(stream, np.zeros(3))
    np.savez(files["pickled"], image=np.array([{}], dtype=object), ids=np.zeros(1))
    np.savez(files["short"], image=np.zeros((6, 3, 4)), ids=np.zeros((6, 5), "int64"))
    files["short"].write_bytes(files["short"].read_bytes()[:-40])
    return files


@pytest.mark.parametrize("name", ["text", "npy", "pickled", "short", "absent"])
def test_a_file_that_is_no_npz_is_one_message(
    name: str, bundle: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken_files(tmp_path)[name]
    assert run(bundle, path, "-o", tmp_path / "o.npz") == 2
    assert f"error: {path}" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["parts/0-npu.tflite", "parts/1-cpu.tflite", "unsplit.tflite"])
def test_a_changed_file_is_refused_before_anything_runs(
    file: str, bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray((bundle.folder / file).read_bytes())
    data[-1] ^= 1
    (bundle.folder / file).write_bytes(data)
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz") == 2
    assert f"{file} was changed" in capsys.readouterr().err


def test_a_missing_part_is_named(
    bundle: Any, in_npz: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle.folder / "parts" / "1-cpu.tflite").unlink()
    assert run(bundle, in_npz, "--bench", 1) == 2
    assert "1-cpu.tflite is missing" in capsys.readouterr().err


def spoiled(keys: list[Any], value: Any) -> Any:
    def apply(document: Any) -> Any:
        place = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return document

    return apply


MANIFESTS: dict[str, Any] = {
    "no object": lambda document: [],
    "another schema": spoiled(["schema_version"], 9),
    "a path out of the bundle": spoiled(["parts", 0, "file"], "../../in.npz"),
    "an absolute path": spoiled(["unsplit", "file"], "/etc/passwd"),
    "a part from later": spoiled(["parts", 0, "inputs", 0, "from"], {"part": 1, "output": "more"}),
    "an output of nothing": spoiled(["outputs", 0, "from"], {"part": 7, "output": "scores"}),
    "a source of no kind": spoiled(["outputs", 0, "from"], {}),
    "a bad constant": spoiled(["outputs", 0, "from"], {"constant": {"type": "int8", "data": "?"}}),
    "text for a shape": spoiled(["inputs", 0, "shape"], "large"),
    "a scale that is NaN": spoiled(["inputs", 0, "scale"], float("nan")),
    "an unknown type": spoiled(["inputs", 0, "type"], "int4"),
    "an unknown dtype": spoiled(["inputs", 0, "dtype"], "object"),
    "parts that are no list": spoiled(["parts"], 3),
    "no calibration": spoiled(["calibration"], None),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_wrong_manifest_is_one_message(
    name: str, bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bundle.folder / "manifest.json"
    path.write_text(json.dumps(MANIFESTS[name](json.loads(path.read_text()))))
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz") == 2
    assert "manifest" in capsys.readouterr().err


def test_a_manifest_of_another_model_does_not_fit_the_files(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bundle.folder / "manifest.json"
    document = json.loads(path.read_text())
    document["parts"][0]["inputs"][0]["scale"] = 0.5
    path.write_text(json.dumps(document))
    assert run(bundle, in_npz, "-o", tmp_path / "o.npz") == 2
    assert "scale" in capsys.readouterr().err


USES = {
    "no input": ["-o", "o.npz"],
    "nothing to do": ["in.npz"],
    "bench-out without bench": ["in.npz", "-o", "o.npz", "--bench-out", "b.json"],
    "unsplit on the NPU": ["in.npz", "-o", "o.npz", "--unsplit", "--delegate", "x.so"],
    "no runs": ["--bench", "0"],
    "no threads": ["in.npz", "-o", "o.npz", "--threads", "-1"],
    "an unknown runtime": ["in.npz", "-o", "o.npz", "--runtime", "onnxruntime"],
    "an unknown option": ["in.npz", "-o", "o.npz", "--npu"],
}


@pytest.mark.parametrize("name", USES)
def test_wrong_use_leaves_with_status_2(name: str, bundle: Any) -> None:
    assert run(bundle, *USES[name]) == 2


def test_a_runtime_that_is_not_installed_is_one_message(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ai_edge_litert")
    try:
        import tflite_runtime  # noqa: F401
    except ImportError:
        status = run(bundle, in_npz, "-o", tmp_path / "o.npz", "--runtime", "tflite_runtime")
        assert status == 2
        assert "no TFLite runtime: tflite_runtime" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_one_message(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "-o", tmp_path / "absent" / "o.npz") == 2
    assert "cannot be written" in capsys.readouterr().err


def test_the_same_run_writes_the_same_bytes(bundle: Any, in_npz: Path, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        assert run(bundle, in_npz, "-o", tmp_path / name) == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.npz").testzip() is None


def test_bench_writes_what_calibration_of_the_latency_model_needs(
    bundle: Any, in_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundle, in_npz, "--bench", 4, "--bench-out", tmp_path / "b.json") == 0
    report = json.loads((tmp_path / "b.json").read_text())
    assert (report["schema_version"], report["target"], report["runs"]) == (1, "imx95", 4)
    assert [part["device"] for part in report["parts"]] == ["npu", "cpu"]
    assert [part["sha256"] for part in report["parts"]] == [
        part.sha256 for part in bundle.manifest.parts
    ]
    assert [part["operators"] for part in report["parts"]] == [2, 3]
    assert report["parts"][0]["boundary_bytes"] == 24 + 24 + 24
    for times in (report["total_ms"], report["parts"][1]["invoke_ms"]):
        assert times["min"] <= times["median"] <= times["p95"]
    assert "part 0 npu invoke" in capsys.readouterr().out


def test_bench_runs_without_an_input_file(bundle: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(bundle, "--bench", 1) == 0
    assert "random input" in capsys.readouterr().err


def test_bench_keeps_its_times_in_the_bundle_s_folder(bundle: Any, tmp_path: Path) -> None:
    assert run(bundle, "--bench", 2) == 0
    report = json.loads((bundle.folder / "measurements.json").read_text())
    assert report["runs"] == 2
    assert [part["delegated"] for part in report["parts"]] == [False, False]
    again = bundle.run("--bench", 1, "--bench-out", tmp_path / "b.json")
    assert again.returncode == 0, again.stderr
    assert json.loads((bundle.folder / "measurements.json").read_text())["runs"] == 2


def test_bench_in_a_folder_that_cannot_be_written_to_only_says_so(
    bundle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle.folder / "measurements.json").mkdir()
    assert run(bundle, "--bench", 1) == 0
    assert "the times are not kept" in capsys.readouterr().err


def test_bench_of_the_unsplit_model_has_one_part(bundle: Any, tmp_path: Path) -> None:
    assert run(bundle, "--unsplit", "--bench", 1, "--bench-out", tmp_path / "b.json") == 0
    parts = json.loads((tmp_path / "b.json").read_text())["parts"]
    assert [(part["file"], part["operators"]) for part in parts] == [("unsplit.tflite", 5)]


def test_ctrl_c_stops_without_a_traceback(bundle: Any, tmp_path: Path) -> None:
    script = bundle.folder / "glue" / "run.py"
    command = [sys.executable, str(script), "--bench", "100000000"]
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # background jobs ignore it
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=listen)
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
