"""Arrays in .npz files: read without pickle, written whole or not at all, with no dates inside."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.messages import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]


def read_npz(path: Path) -> dict[str, Array]:
    """All arrays of the file. Raises BadInput for anything that is not a plain .npz file."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise BadInput(f"{path} is not an .npz file; save with np.savez(FILE, NAME=array)")
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise BadInput(f"{path} is not a good .npz file: {error}") from None


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Like np.savez, for any array names ("file" too), with a fixed date."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return stream.getvalue()


def write_file(path: Path, data: bytes) -> None:
    """The whole file or nothing: written beside, then moved into place."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            beside.write_bytes(data)
            os.replace(beside, path)
        finally:
            if beside.exists():
                beside.unlink()
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
