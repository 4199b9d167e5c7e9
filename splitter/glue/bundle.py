"""The bundle's folder on disk: all of it or nothing, and no file of the user's is ever lost.

Decides how a folder comes into place. Built aside in the same parent folder, flushed to the disk,
then moved: onto nothing or an empty folder by one rename, over a former bundle by two (the former
one steps aside, and comes back when the second rename fails). What goes wrong on the way, Ctrl-C
too, leaves the parent folder as it was.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from splitter.diagnostics import SplitterError
from splitter.glue.manifest import FILE, read_manifest

OURS = (
    FILE,
    "NEXT_STEPS.md",
    "float.tflite",
    "glue/run.py",
    "report.html",
    "report.json",
    "unsplit.tflite",
)
"""What a bundle may hold beside the files that its manifest names."""


Former = Callable[[Path], Collection[str]]
"""The files that a folder may hold to be replaced; none when it is no former folder of the kind."""


def bundle_files(folder: Path) -> Collection[str]:
    """What a bundle may hold: OURS and the files that its manifest names."""
    try:
        return {entry.file for entry in read_manifest(folder).files()} | set(OURS)
    except SplitterError:
        return ()


def check_out(out: Path, *, former: Former = bundle_files) -> None:
    """Raises SplitterError when `write_bundle` would refuse OUT; called before the long work."""
    out = out.resolve()
    if out.exists() and not out.is_dir():
        raise SplitterError("is a file, not a folder", where=str(out), hint="choose another -o")
    foreign = _foreign(out, former) if out.is_dir() else []
    if foreign:
        shown = ", ".join(foreign[:5]) + (f" and {len(foreign) - 5} more" if foreign[5:] else "")
        raise SplitterError(
            f"holds files that are not of a former run: {shown}",
            where=str(out),
            hint="move them away or choose another -o; what a former run wrote alone is replaced",
        )
    home = next(folder for folder in out.parents if folder.exists())
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        raise SplitterError(
            "is not a folder to write to", where=str(home), hint="choose another -o"
        )


def write_bundle(out: Path, files: Mapping[str, bytes], *, former: Former = bundle_files) -> Path:
    """Write the files (path in the bundle -> content) as the folder `out`; returns it, resolved.

    `out` may be new, an empty folder, or a former one, which is replaced. Raises SplitterError
    for anything else and for every failure of the file system (full, not writable, a mount point).
    """
    out = out.resolve()
    check_out(out, former=former)
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"{name!r} is not a path inside the bundle")
    try:
        with _parents(out.parent), _aside(out) as folder:
            for name, data in files.items():
                _write(folder / name, data)
            _flush_folders(folder)
            _into_place(folder, out)
        with suppress(OSError):  # the bundle is in place; not every file system flushes folders
            _flush(out.parent)
    except OSError as error:
        raise SplitterError(
            f"cannot be written: {error.strerror or error}",
            where=str(out),
            hint="free some space or choose another -o; nothing was left behind",
        ) from error
    return out


def _foreign(out: Path, former: Former) -> list[str]:
    """Files in the folder that a former run did not write."""
    files = {
        path.relative_to(out).as_posix()
        for path in out.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and "__pycache__" not in path.parts
    }
    return sorted(files.difference(former(out))) if files else []


@contextmanager
def _parents(folder: Path) -> Iterator[None]:
    """The folder and its parents; those made here go again when the block fails."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with ExitStack() as undo:
        undo.callback(_remove_empty, missing)
        folder.mkdir(parents=True, exist_ok=True)
        yield
        undo.pop_all()


def _remove_empty(folders: Sequence[Path]) -> None:
    """The folders, innermost first, as far as they are there and empty."""
    for path in folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A new folder beside `out`, with ordinary permissions; gone at the end unless moved."""
    shell = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
    try:
        folder = shell / "bundle"
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(shell, ignore_errors=True)


def _into_place(folder: Path, out: Path) -> None:
    if not out.exists() or not any(out.iterdir()):
        os.rename(folder, out)
        return
    former = folder.with_name("former")
    with ExitStack() as undo:
        undo.callback(_put_back, former, out)
        os.rename(out, former)
        os.rename(folder, out)
        undo.pop_all()


def _put_back(former: Path, out: Path) -> None:
    if former.exists() and not out.exists():
        os.rename(former, out)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _flush_folders(folder: Path) -> None:
    for path in sorted(path for path in folder.rglob("*") if path.is_dir()):
        _flush(path)
    _flush(folder)


def _flush(folder: Path) -> None:
    """Names of files reach the disk with their folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
