"""`split` without a model must be coreutils' split, to the byte."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from splitter import coreutils

LAUNCHER = "#!{python}\nfrom splitter.coreutils import split\nsplit()\n"

pytestmark = pytest.mark.skipif(
    not os.path.isfile("/usr/bin/split"), reason="coreutils is not installed"
)


@pytest.fixture
def bin_with_ours(tmp_path: Path) -> Path:
    """A folder with our `split` as pip would install it."""
    folder = tmp_path / "venv-bin"
    folder.mkdir()
    script = folder / "split"
    script.write_text(LAUNCHER.format(python=sys.executable))
    script.chmod(0o755)
    return folder


def run(
    folder: Path, *arguments: str, cwd: Path, stdin: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    root = str(Path(coreutils.__file__).parent.parent)
    return subprocess.run(
        [str(folder / "split"), *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": root, **env},
        timeout=60,
        check=False,
    )


def theirs(*arguments: str, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["split", *arguments],
        executable="/usr/bin/split",
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin"},
        timeout=60,
        check=False,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


LINES = b"".join(b"line %d\n" % number for number in range(95))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-"],
        ["-l", "10", "-", "part_"],
        ["-n", "l/3", "file.txt"],
        ["-b", "100", "--additional-suffix=.bin", "file.txt", "piece-"],
        ["--filter=cat > $FILE.copy", "-l40", "file.txt"],
        ["model.onnx"],
        ["-b", "200", "model.onnx", "part_"],
        ["-l", "10", "file.txt", "targets"],
        ["--", "model.onnx", "--target"],
        ["no-such-file"],
        ["--no-such-option"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_call_of_coreutils_split_behaves_as_coreutils_split(
    bin_with_ours: Path, tmp_path: Path, arguments: list[str]
) -> None:
    answers = []
    for name, program in (("ours", run), ("theirs", theirs)):
        cwd = tmp_path / name
        cwd.mkdir()
        (cwd / "file.txt").write_bytes(LINES)
        (cwd / "model.onnx").write_bytes(LINES)
        folder = [bin_with_ours] if program is run else []
        done = program(*folder, *arguments, cwd=cwd, stdin=LINES)  # type: ignore[operator]
        answers.append((done.returncode, done.stdout, done.stderr, contents(cwd)))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["m.onnx", "--target", "imx95"],
        ["--target=imx95", "m.onnx"],
        ["m.onnx", "--calibration", "d"],
        ["inspect", "out"],
        ["targets"],
        ["rules", "check"],
    ],
    ids=" ".join,
)
def test_calls_that_coreutils_refuses_are_ours(tmp_path: Path, arguments: list[str]) -> None:
    assert coreutils.ours(arguments)
    assert theirs(*arguments, cwd=tmp_path).returncode != 0


def test_a_file_named_like_a_subcommand_is_cut_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert coreutils.ours(["targets", "part_"])
    Path("targets").write_text("a\n")
    assert not coreutils.ours(["targets", "part_"])


def test_a_bare_model_is_ours_only_when_typed_at_a_prompt() -> None:
    assert coreutils.ours(["model.onnx"], prompt=True)
    assert not coreutils.ours(["model.onnx"])
    assert not coreutils.ours(["model.onnx", "part_"], prompt=True)


def typed(arguments: list[str], *, cwd: Path, path: str) -> bytes:
    """What a terminal shows of a program that leads its process group, as at a prompt."""
    root = str(Path(coreutils.__file__).parent.parent)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execvpe(arguments[0], arguments, {"PATH": path, "PYTHONPATH": root, "TERM": "dumb"})
    shown = b""
    try:
        while chunk := os.read(terminal, 1000):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return shown


def test_a_bare_model_at_a_real_prompt_asks_for_the_target_and_in_a_script_it_is_cut(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(LINES)
    path = f"{bin_with_ours}:/usr/bin:/bin"
    ours = str(bin_with_ours / "split")
    assert b"--target" in typed([ours, "model.onnx"], cwd=tmp_path, path=path)
    assert not (tmp_path / "xaa").exists()
    typed(["/bin/sh", "-c", "split model.onnx; true"], cwd=tmp_path, path=path)
    assert (tmp_path / "xaa").read_bytes() == LINES


def test_help_at_a_prompt_is_the_system_s_with_a_word_on_where_ours_is(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    path = f"{bin_with_ours}:/usr/bin:/bin"
    shown = typed([str(bin_with_ours / "split"), "--help"], cwd=tmp_path, path=path)
    assert b"splitter --help" in shown
    assert b"--suffix-length" in shown


def test_no_option_of_ours_is_one_of_coreutils_or_an_abbreviation_of_one(tmp_path: Path) -> None:
    page = theirs("--help", cwd=tmp_path).stdout.decode()
    known = {word.split("=")[0].strip("[,.") for word in page.split() if word.startswith("--")}
    assert "--lines" in known
    assert not [(own, one) for own in coreutils.OPTIONS for one in known if one.startswith(own)]


def test_other_entry_points_symlinks_and_shims_on_the_path_are_skipped(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "split").symlink_to(bin_with_ours / "split")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "split").write_text(f'#!/bin/sh\nexec "{bin_with_ours}/split" "$@"\n')
    (shims / "split").chmod(0o755)
    path = f"{shims}:{second}:{bin_with_ours}:{tmp_path}/absent::/usr/bin"
    work = tmp_path / "work"
    work.mkdir()
    done = run(bin_with_ours, "-l", "50", cwd=work, stdin=LINES, PATH=path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(contents(work)) == ["xaa", "xab"]


def test_a_path_without_split_falls_back_to_the_usual_places(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    done = run(bin_with_ours, "--version", cwd=tmp_path, PATH=str(bin_with_ours))
    assert done.returncode == 0
    assert b"split" in done.stdout


def test_the_process_itself_becomes_split_with_default_signals_and_the_given_environment(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    done = run(bin_with_ours, "--filter=env; sh -c 'kill -PIPE $$'", cwd=tmp_path, stdin=b"a\n")
    given = {line.split(b"=")[0] for line in done.stdout.splitlines()}
    assert given - {b"_", b"PWD", b"SHLVL", b"OLDPWD"} == {b"PATH", b"PYTHONPATH", b"FILE"}
    plain = theirs("--filter=env; sh -c 'kill -PIPE $$'", cwd=tmp_path, stdin=b"a\n")
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


def test_a_reader_that_leaves_ends_it_as_it_ends_coreutils(
    bin_with_ours: Path, tmp_path: Path
) -> None:
    root = str(Path(coreutils.__file__).parent.parent)
    process = subprocess.Popen(
        [str(bin_with_ours / "split"), "-n", "r/1/1", "--unbuffered"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={"PATH": f"{bin_with_ours}:/usr/bin:/bin", "PYTHONPATH": root},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    process.stdout.close()
    process.stdin.write(b"two\n")
    process.stdin.close()
    assert process.wait(timeout=30) == -signal.SIGPIPE
