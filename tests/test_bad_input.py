"""Bad input ends with one clear message, exit status 2 and nothing left behind."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

ROOT = Path(__file__).resolve().parent.parent

CONV = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,16,16] picture) => (float[1,4,16,16] answer) {
  weight = Constant <value = float[4,3,1,1] {1,2,3,4,5,6,7,8,9,10,11,12}> ()
  made = Conv (picture, weight)
  answer = Relu (made)
}
"""
FREE = CONV.replace("float[1,3,16,16]", "float[batch,3,height,width]").replace(
    "float[1,4,16,16]", "float[batch,4,height,width]"
)
UNKNOWN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,2,2] x) => (float[2] answer, float[2] other) {
  [first_det] answer = Det (x)
  twice = Add (x, x)
  [second_det] other = Det (twice)
}
"""


def save(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def samples(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a good model and good calibration samples."""
    save(tmp_path / "model.onnx", CONV)
    noise = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)
    samples(tmp_path / "good.npz", picture=noise)
    return tmp_path


GOOD = ("--target", "imx95", "-o", "out", "--calibration", "good.npz")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def splitter(
    *arguments: str | Path, cwd: Path, file_limit: int = 0
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.run(
        [sys.executable, "-m", "splitter", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=limit,
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def refusal(*arguments: str | Path, cwd: Path, file_limit: int = 0) -> str:
    """The message of a refused call, checked for what holds of every refusal."""
    before = tree(cwd)
    done = splitter(*arguments, cwd=cwd, file_limit=file_limit)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
    assert tree(cwd) == before
    return done.stderr


def test_the_good_case_is_good(place: Path) -> None:
    before = tree(place)
    done = splitter("model.onnx", *GOOD, cwd=place)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert (place / "out" / "manifest.json").is_file()
    assert {name: data for name, data in tree(place).items() if name[:3] != "out"} == before


def test_a_file_that_is_not_onnx_is_refused(place: Path) -> None:
    (place / "text.onnx").write_text("hello, this is no model\n" * 40)
    assert "text.onnx" in refusal("text.onnx", *GOOD, cwd=place)


def test_a_model_that_does_not_exist_is_refused(place: Path) -> None:
    assert "absent.onnx" in refusal("absent.onnx", *GOOD, cwd=place)


def test_an_empty_file_is_refused(place: Path) -> None:
    (place / "empty.onnx").write_bytes(b"")
    assert "empty.onnx" in refusal("empty.onnx", *GOOD, cwd=place)


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(place: Path, kept: float) -> None:
    data = (ROOT / "models" / "rf_detr_tiny.onnx").read_bytes()
    (place / "cut.onnx").write_bytes(data[: int(len(data) * kept)])
    assert "cut.onnx" in refusal("cut.onnx", *GOOD, cwd=place)


def external(path: Path, location: str) -> Path:
    """The good model with its weight in a file beside it, at `location`."""
    model = onnx.parser.parse_model(CONV)
    node = model.graph.node[0]
    tensor = node.attribute[0].t
    data = onnx.numpy_helper.to_array(tensor).astype(np.float32)
    del model.graph.node[0]
    stored = onnx.numpy_helper.from_array(data, "weight")
    stored.raw_data = b""
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(data.nbytes))):
        stored.external_data.append(onnx.StringStringEntryProto(key=key, value=value))
    model.graph.initializer.append(stored)
    path.write_bytes(model.SerializeToString())
    return path


def test_missing_external_data_is_refused_by_name(place: Path) -> None:
    external(place / "ext.onnx", "weights.bin")
    message = refusal("ext.onnx", *GOOD, cwd=place)
    assert "weights.bin" in message


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "sub/../../secret.bin"])
def test_external_data_that_leaves_its_folder_is_refused(place: Path, location: str) -> None:
    inner = place / "inner"
    inner.mkdir()
    (inner / "sub").mkdir()
    (place / "secret.bin").write_bytes(bytes(48))
    external(inner / "ext.onnx", location)
    samples(inner / "good.npz", picture=np.zeros((2, 3, 16, 16), np.float32))
    assert location in refusal("ext.onnx", *GOOD, cwd=inner)


def test_external_data_through_a_symlink_out_of_its_folder_is_refused(place: Path) -> None:
    inner = place / "inner"
    inner.mkdir()
    (place / "secret.bin").write_bytes(bytes(48))
    (inner / "weights.bin").symlink_to(place / "secret.bin")
    external(inner / "ext.onnx", "weights.bin")
    samples(inner / "good.npz", picture=np.zeros((2, 3, 16, 16), np.float32))
    assert "weights.bin" in refusal("ext.onnx", *GOOD, cwd=inner)


def test_an_unknown_target_is_refused_and_the_known_ones_are_listed(place: Path) -> None:
    message = refusal("model.onnx", *GOOD, "--target", "imx59", cwd=place)
    assert "imx59" in message
    assert "imx95" in message


def test_no_target_is_refused_and_the_known_ones_are_listed(place: Path) -> None:
    message = refusal("model.onnx", "-o", "out", "--calibration", "good.npz", cwd=place)
    assert "imx95" in message


def test_free_dimensions_are_named_and_can_be_bound(place: Path) -> None:
    save(place / "free.onnx", FREE)
    message = refusal("free.onnx", *GOOD, cwd=place)
    for word in ("picture", "batch", "height", "width", "--shape"):
        assert word in message
    done = splitter("free.onnx", *GOOD, "--shape", "picture=1x3x16x16", cwd=place)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr


def test_an_empty_input_and_no_input_are_refused(place: Path) -> None:
    given = ("--target", "imx95", "--calibration", "random")
    save(place / "empty.onnx", CONV.replace("[1,", "[0,"))
    assert "picture [0, 3, 16, 16] has an axis of length 0" in refusal(
        "empty.onnx", *given, cwd=place
    )
    save(
        place / "none.onnx",
        """
<ir_version: 8, opset_import: ["" : 17]>
g () => (float[2] answer) {
  weight = Constant <value = float[2] {1,2}> ()
  answer = Relu (weight)
}
""",
    )
    assert "the model has no inputs" in refusal("none.onnx", *given, cwd=place)


def test_an_input_that_is_an_output_too_is_split(place: Path) -> None:
    save(place / "model.onnx", CONV.replace("answer) {", "answer, float[1,3,16,16] picture) {"))
    done = splitter("model.onnx", *GOOD, cwd=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["picture", "picture=1x3xheightx16", "picture=1x3x0x16", "=1x3"])
def test_a_shape_that_is_none_is_refused(place: Path, text: str) -> None:
    save(place / "free.onnx", FREE)
    assert "--shape" in refusal("free.onnx", *GOOD, "--shape", text, cwd=place)


def test_operators_without_a_lowering_are_all_named_with_their_nodes(place: Path) -> None:
    save(place / "unknown.onnx", UNKNOWN)
    samples(place / "x.npz", x=np.ones((4, 2, 2), np.float32))
    message = refusal(
        "unknown.onnx", "--target", "imx95", "-o", "out", "--calibration", "x.npz", cwd=place
    )
    for word in ("Det", "first_det", "second_det"):
        assert word in message


FINE = np.zeros((4, 3, 16, 16), np.float32)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"image": FINE}, ["picture", "image"]),
        ({"picture": FINE[:, :, :8]}, ["picture", "16"]),
        ({"picture": FINE.astype(np.int32)}, ["picture", "int32"]),
        (
            {"picture": np.where(np.eye(16) > 0, np.nan, FINE).astype(np.float32)},
            ["picture", "NaN"],
        ),
        ({"picture": FINE[:0]}, ["picture"]),
    ],
    ids=["name", "shape", "type", "nan", "no samples"],
)
def test_wrong_calibration_arrays_are_refused(
    place: Path, arrays: dict[str, np.ndarray], words: list[str]
) -> None:
    samples(place / "bad.npz", **arrays)
    message = refusal("model.onnx", *GOOD, "--calibration", "bad.npz", cwd=place)
    for word in words:
        assert word in message


def test_a_pickle_in_the_calibration_file_is_not_opened(place: Path) -> None:
    samples(place / "bad.npz", picture=np.array([{"a": 1}], dtype=object))
    refusal("model.onnx", *GOOD, "--calibration", "bad.npz", cwd=place)


def test_a_calibration_file_that_is_none_is_refused(place: Path) -> None:
    (place / "bad.npz").write_bytes(b"PK\x03\x04 not really")
    assert "bad.npz" in refusal("model.onnx", *GOOD, "--calibration", "bad.npz", cwd=place)


def test_no_calibration_is_refused_unless_random_is_asked_for(place: Path) -> None:
    message = refusal("model.onnx", "--target", "imx95", "-o", "out", cwd=place)
    assert "--calibration" in message
    done = splitter(
        "model.onnx", "--target", "imx95", "-o", "out", "--calibration", "random", cwd=place
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert "random" in (place / "out" / "manifest.json").read_text().lower()
    assert "random" in (done.stdout + done.stderr).lower()


def test_an_out_that_is_a_file_or_holds_other_files_is_refused(place: Path) -> None:
    (place / "out").write_text("mine")
    refusal("model.onnx", *GOOD, cwd=place)
    (place / "out").unlink()
    (place / "out").mkdir()
    (place / "out" / "thesis.txt").write_text("mine")
    assert "thesis.txt" in refusal("model.onnx", *GOOD, cwd=place)


def test_an_out_below_a_file_is_refused(place: Path) -> None:
    refusal("model.onnx", *GOOD, "-o", "good.npz/out", cwd=place)


def test_an_out_where_nothing_can_be_made_is_refused(place: Path) -> None:
    refusal("model.onnx", *GOOD, "-o", "/proc/out", cwd=place)


@pytest.fixture
def mounted(place: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = place / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("cannot mount a file system here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_and_leaves_nothing(place: Path, mounted: Path) -> None:
    (mounted / "filler").write_bytes(bytes(40_000))
    refusal("model.onnx", *GOOD, "-o", mounted / "out", cwd=place)


def test_a_read_only_disk_is_told_before_the_work(place: Path, mounted: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
    refusal("model.onnx", *GOOD, "-o", mounted / "out", cwd=place)


def test_a_file_that_may_not_grow_leaves_nothing(place: Path) -> None:
    refusal("model.onnx", *GOOD, cwd=place, file_limit=2000)


def test_an_unknown_option_is_refused(place: Path) -> None:
    assert "--frobnicate" in refusal("model.onnx", *GOOD, "--frobnicate", cwd=place)


@pytest.mark.parametrize(
    ("option", "word", "known"),
    [("--trust", "everyone", "vendor"), ("--preprocess", "imagnet", "imagenet")],
)
def test_an_unknown_word_is_refused_and_the_known_ones_are_told(
    place: Path, option: str, word: str, known: str
) -> None:
    samples(place / "photos.npz", images=np.zeros((4, 16, 16, 3), np.uint8))
    message = refusal("model.onnx", *GOOD, "--calibration", "photos.npz", option, word, cwd=place)
    assert word in message
    assert known in message


@pytest.mark.parametrize("option", ["--npu", "--cpu", "--cut", "--int16"])
def test_a_name_that_matches_nothing_is_refused_with_near_ones(place: Path, option: str) -> None:
    message = refusal("model.onnx", *GOOD, option, "answr", cwd=place)
    assert "answr" in message
    assert "answer" in message


def listen_to_ctrl_c() -> None:
    """A shell's background jobs ignore SIGINT, and so would what the tests start from one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_with_one_line_and_leaves_nothing(place: Path) -> None:
    before = tree(place)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "splitter",
            str(ROOT / "models" / "rf_detr_tiny.onnx"),
            *GOOD[:-1],
            str(ROOT / "models" / "calib_images.npz"),
            "--preprocess",
            "imagenet",
        ],
        cwd=place,
        env={**environment(), "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        preexec_fn=listen_to_ctrl_c,
    )
    os.close(theirs)
    seen = b""
    while b"samples" not in seen:
        seen += os.read(ours, 1000)
    process.send_signal(signal.SIGINT)
    try:
        while chunk := os.read(ours, 1000):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=120) == 130
    assert process.stdout is not None
    assert process.stdout.read() == b""
    assert b"interrupted; nothing was written" in seen
    assert b"Traceback" not in seen
    assert tree(place) == before


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "splitter", "rules", "show", "imx95"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=60)


def test_an_output_without_room_is_one_message(place: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "splitter", "targets"],
            cwd=place,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: output: cannot be written: No space left on device")
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("explain", "model.onnx", "--bogus"), "splitter explain"),
        (("rules", "probe", "imx95"), "splitter rules probe"),
        (("model.onnx", "--max-segments", "-1"), "splitter"),
    ],
)
def test_wrong_use_names_the_help_of_that_very_command(
    place: Path, arguments: tuple[str, ...], command: str
) -> None:
    refused = splitter(*arguments, cwd=place)
    assert refused.returncode == 2
    assert f"hint: {command} --help lists the options" in refused.stderr


def test_an_unknown_runtime_names_the_valid_one(place: Path) -> None:
    refused = splitter("explain", "model.onnx", *GOOD[:2], "--cpu-runtime", "tflite", cwd=place)
    assert refused.returncode == 2
    assert "hint: valid: onnxruntime" in refused.stderr
