"""Read arrays out of an .npz file that may be anything: not an archive, pickled, truncated, huge.

Decides which rows are read into memory; leaves names, shapes and meaning to `read`. Only the rows
asked for are kept, so a large archive costs time and no memory.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from splitter.diagnostics import SplitterError
from splitter.graph import Array

MOST_BYTES = 4 << 30
"""What may be kept in memory of one array."""

_HOW = "write it with numpy.savez(FILE, NAME=array, ...), NAME as the model's input"


@dataclass(frozen=True, slots=True)
class Header:
    """An array as its header describes it: nothing of its data is read yet."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool


_INDEX_BYTES = 24
"""Of a row's index while rows are chosen."""


def read_headers(path: Path) -> dict[str, Header]:
    """Name, shape and type of every array in the archive, by name.

    Raises SplitterError when it is not an .npz archive or holds something else than plain arrays.
    """
    with _archive(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        headers = {}
        for member in names:
            with archive.open(member) as stream:
                name = member.removesuffix(".npy")
                headers[name] = _header(stream, name)
    if not headers:
        raise SplitterError("there is no array in it", where=str(path), hint=_HOW)
    pickled = sorted(name for name, header in headers.items() if header.dtype.hasobject)
    if pickled:
        raise SplitterError(
            f"{', '.join(pickled)} holds Python objects (pickled), which are not read",
            where=str(path),
            hint="save plain numeric arrays: array.astype('float32'), rows of equal shape",
        )
    return headers


def read_rows(path: Path, header: Header, keep: Array) -> Array:
    """The rows `keep` (ascending indices of the first axis) of one array.

    Raises SplitterError when they do not fit into memory or the archive ends early.
    """
    row_shape = header.shape[1:]
    row_bytes = _row_bytes(header)
    held = row_bytes * (header.shape[0] if header.by_columns else len(keep))
    check_memory(path, header, len(keep))
    with _archive(path) as archive, archive.open(header.name + ".npy") as stream:
        _header(stream, header.name)
        if header.by_columns:
            shape = header.shape[::-1]
            whole = np.frombuffer(_exactly(stream, held), header.dtype).reshape(shape).T
            return np.ascontiguousarray(whole[keep])
        kept = np.empty((len(keep), *row_shape), header.dtype)
        position = 0
        for slot, row in enumerate(keep):
            _skip(stream, (int(row) - position) * row_bytes)
            data = _exactly(stream, row_bytes)
            kept[slot] = np.frombuffer(data, header.dtype).reshape(row_shape)
            position = int(row) + 1
        return kept


def check_memory(path: Path, header: Header, count: int) -> None:
    """Raises SplitterError when `count` rows would not fit; asked before anything is made of them.

    A header can promise any number of rows, so even their indices count.
    """
    held = (_row_bytes(header) + _INDEX_BYTES) * (header.shape[0] if header.by_columns else count)
    if held > MOST_BYTES:
        raise SplitterError(
            f"{header.name} would take {held / 2**30:.1f} GB of memory, "
            f"over the {MOST_BYTES / 2**30:.0f} GB that are allowed",
            where=str(path),
            hint="fewer samples will do: a few hundred calibrate as well as thousands",
        )


def _row_bytes(header: Header) -> int:
    return int(np.prod(header.shape[1:], dtype=np.int64)) * header.dtype.itemsize


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive; whatever is wrong with its bytes becomes one SplitterError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as problem:
        single = path.suffix == ".npy"
        raise SplitterError(
            "this is a single .npy array, not an .npz archive"
            if single
            else f"this is not a whole .npz archive ({problem})",
            where=str(path),
            hint=_HOW,
        ) from problem
    except OSError as problem:
        raise SplitterError(
            f"cannot be read ({problem.strerror or problem})",
            where=str(path),
            hint="give a readable .npz file or a folder of images",
        ) from problem


def _header(stream: IO[bytes], name: str) -> Header:
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    else:
        shape, by_columns, dtype = npy.read_array_header_2_0(stream)
    return Header(name, tuple(int(d) for d in shape), dtype, bool(by_columns) and len(shape) > 1)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError("it ends before its last sample")
    return data


def _skip(stream: IO[bytes], count: int) -> None:
    while count:
        count -= len(_exactly(stream, min(count, 1 << 20)))
