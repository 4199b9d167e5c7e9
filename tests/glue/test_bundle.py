"""A bundle comes whole or not at all, and nothing of the user's is lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from splitter.diagnostics import SplitterError
from splitter.glue import check_out, write_bundle

FILES = {"a.txt": b"one", "parts/b.bin": b"two" * 1000}


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*") if p.is_file()
    }


def test_the_files_are_there_and_nothing_else(tmp_path: Path) -> None:
    write_bundle(tmp_path / "out", FILES)
    assert tree(tmp_path / "out") == FILES
    assert os.listdir(tmp_path) == ["out"]


def test_the_folder_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    out = write_bundle(tmp_path / "out", FILES)
    assert out.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_parents_are_made(tmp_path: Path) -> None:
    assert tree(write_bundle(tmp_path / "x" / "y" / "out", FILES)) == FILES


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert tree(write_bundle(tmp_path / "out", FILES)) == FILES


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    write_bundle(tmp_path / "out", FILES)
    assert (tmp_path / "out").is_symlink()
    assert tree(tmp_path / "real") == FILES


def test_a_former_bundle_is_replaced_whole(bundle: Any, tmp_path: Path) -> None:
    (bundle.folder / "glue" / "__pycache__").mkdir()
    (bundle.folder / "glue" / "__pycache__" / "run.cpython-311.pyc").write_bytes(b"x")
    write_bundle(bundle.folder, FILES)
    assert tree(bundle.folder) == FILES
    assert os.listdir(tmp_path) == ["out"]


def test_files_of_the_user_in_a_former_bundle_are_kept(bundle: Any) -> None:
    mine = bundle.folder / "converted" / "0-npu_converted.tflite"
    mine.parent.mkdir()
    mine.write_bytes(b"hours of work")
    before = tree(bundle.folder)
    with pytest.raises(SplitterError, match=r"converted/0-npu_converted\.tflite"):
        write_bundle(bundle.folder, FILES)
    assert tree(bundle.folder) == before


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_bytes(b"x")
    with pytest.raises(SplitterError, match=r"thesis\.tex"):
        check_out(tmp_path / "out")
    with pytest.raises(SplitterError, match=r"thesis\.tex"):
        write_bundle(tmp_path / "out", FILES)
    assert tree(tmp_path) == {"out/thesis.tex": b"x"}


def test_a_manifest_that_names_foreign_files_does_not_give_them_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_bytes(b"{}")
    with pytest.raises(SplitterError, match=r"manifest\.json"):
        check_out(tmp_path / "out")


def test_a_file_in_the_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x")
    with pytest.raises(SplitterError, match="is a file"):
        check_out(tmp_path / "out")


@pytest.mark.parametrize("place", ["/proc/out", "/proc/version/out"])
def test_a_place_that_cannot_be_written_is_one_message(place: str) -> None:
    with pytest.raises(SplitterError):
        write_bundle(Path(place), FILES)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_write_permission_is_refused_before_the_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SplitterError, match="not a folder to write to"):
        check_out(tmp_path / "out")


@contextmanager
def small_files() -> Iterator[None]:
    """No file of this process may grow over 1000 bytes, as on a disk that fills up.

    Never around more than the call itself: the limit holds for the log of the tests too.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with small_files(), pytest.raises(SplitterError, match="cannot be written"):
        write_bundle(tmp_path / "x" / "out", FILES)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_former_bundle(
    small_disk: Path, make_bundle: Callable[..., Any]
) -> None:
    files = dict(make_bundle(small_disk.parent / "elsewhere").files)
    files.pop("glue/run.py")
    out = write_bundle(small_disk / "out", files)
    with pytest.raises(SplitterError, match="No space left"):
        write_bundle(out, {**files, "big.bin": bytes(200_000)})
    assert tree(out) == files
    assert os.listdir(small_disk) == ["out"]


def test_a_mount_point_is_one_message(small_disk: Path) -> None:
    with pytest.raises(SplitterError, match="busy"):
        write_bundle(small_disk, FILES)
    assert os.listdir(small_disk) == []


class Interrupted(Mapping[str, bytes]):
    """Files of which the second never comes: Ctrl-C while the first is written."""

    def __getitem__(self, name: str) -> bytes:
        if name == "second":
            raise KeyboardInterrupt
        return b"first"

    def __iter__(self) -> Iterator[str]:
        return iter(("first", "second"))

    def __len__(self) -> int:
        return 2


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_bundle(tmp_path / "x" / "out", Interrupted())
    assert os.listdir(tmp_path) == []


def test_ctrl_c_leaves_the_former_bundle(bundle: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_bundle(bundle.folder, Interrupted())
    assert tree(bundle.folder) == bundle.files
    assert os.listdir(tmp_path) == ["out"]


def test_the_former_bundle_comes_back_when_the_last_move_fails(
    bundle: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def second_fails(source: Path, target: Path) -> None:
        if source.name == "bundle":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(SplitterError, match="Input/output error"):
        write_bundle(bundle.folder, FILES)
    assert tree(bundle.folder) == bundle.files
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["../x", "/x", ""])
def test_a_path_out_of_the_bundle_is_a_bug_of_the_caller(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside the bundle"):
        write_bundle(tmp_path / "out", {name: b""})
    assert os.listdir(tmp_path) == []
