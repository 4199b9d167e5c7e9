"""Arrays by input name out of an .npz file, checked against what the model takes.

Decides which array fits which input and lists all that does not. Samples lie along the first axis,
joined ([N * batch, ...]) or stacked ([N, *input shape]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from splitter.calibration.npz import Header, check_memory, read_rows
from splitter.calibration.samples import Samples, rows, spread
from splitter.diagnostics import SplitterError, nearest
from splitter.graph import Array, Value

NOTES = ("boxes", "class_names", "counts", "labels")
"""What a validation file may hold beside the inputs."""


def read_by_name(
    path: Path, headers: Mapping[str, Header], inputs: Sequence[Value], *, limit: int
) -> Samples:
    """Samples of every input, at most `limit` runs (0: all).

    Raises SplitterError with every wrong name, shape, type, count and non-finite value.
    """
    problems = _name_problems(headers, inputs)
    fitting = [value for value in inputs if value.name in headers]
    for value in fitting:
        problems += _header_problems(headers[value.name], value)
    counts = {v.name: _runs(headers[v.name], v) for v in fitting}
    if not problems and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        problems.append(f"the inputs have different numbers of samples: {listed}")
    _refuse(problems, path, inputs)
    total = min(counts.values())
    for value in fitting:
        header = headers[value.name]
        check_memory(path, header, header.shape[0] // total * min(limit or total, total))
    chosen = spread(total, limit)
    arrays = {}
    for value in inputs:
        header = headers[value.name]
        keep = _rows_of_runs(header, value, chosen)
        array = read_rows(path, header, keep)
        with np.errstate(over="ignore"):
            cast = array.astype(value.dtype, copy=False)
        problems += _limit_problems(array, value) + _finite_problems(cast, value, keep)
        arrays[value.name] = cast.reshape(-1, *value.shape[1:])
    _refuse(problems, path, inputs)
    first = headers[inputs[0].name]
    keep = _rows_of_runs(first, inputs[0], chosen)
    notes = read_notes(path, headers, inputs, keep=keep, count=first.shape[0])
    return Samples(arrays, source=f"{len(chosen)} samples of {path.name}", annotations=notes)


def read_notes(
    path: Path,
    headers: Mapping[str, Header],
    inputs: Sequence[Value],
    *,
    keep: Array,
    count: int,
) -> dict[str, Array]:
    """Rows `keep` of `labels`, or of `boxes`, `labels` and `counts`, and `class_names`.

    Raises SplitterError when they do not fit `count` samples or each other.
    """
    taken = {value.name for value in inputs}
    found = {n: h for n, h in headers.items() if n in NOTES and n not in taken}
    problems = [
        f"{name} has {header.shape[0] if header.shape else 'no'} rows for {count} samples"
        for name, header in found.items()
        if name != "class_names" and (not header.shape or header.shape[0] != count)
    ]
    if "boxes" in found:
        problems += _box_problems(found)
    if problems:
        raise SplitterError(
            "; ".join(problems),
            where=str(path),
            hint="detection: boxes [N, M, 4] x0 y0 x1 y1 in pixels, labels [N, M], counts [N]; "
            "classification: labels [N]",
        )
    return {
        name: read_rows(path, h, np.arange(*h.shape[:1]) if name == "class_names" else keep)
        for name, h in sorted(found.items())
    }


def _box_problems(found: Mapping[str, Header]) -> list[str]:
    missing = [name for name in ("labels", "counts") if name not in found]
    if missing:
        return [f"boxes need {' and '.join(missing)} beside them"]
    boxes = found["boxes"].shape
    problems = []
    if len(boxes) != 3 or boxes[2] != 4:
        problems.append(f"boxes is {list(boxes)}, not [N, M, 4]")
    if found["labels"].shape != boxes[:2]:
        problems.append(f"labels is {list(found['labels'].shape)}, not {list(boxes[:2])}")
    if len(found["counts"].shape) != 1 or found["counts"].dtype.kind not in "iu":
        problems.append("counts is not a list of whole numbers")
    return problems


NAMED = 3
"""Arrays that no input is called like, by name; more are counted."""


def _name_problems(headers: Mapping[str, Header], inputs: Sequence[Value]) -> list[str]:
    wanted = [value.name for value in inputs]
    missing = [name for name in wanted if name not in headers]
    extra = [name for name in headers if name not in wanted and name not in NOTES]
    problems = [f"no array for input {n}; {_near(n, extra or list(headers))}" for n in missing]
    unnamed = extra if len(extra) > len(missing) or not missing else []
    if len(unnamed) > NAMED:
        others = f"{', '.join(unnamed[:NAMED])} and {len(unnamed) - NAMED} more"
        return [*problems, f"{others} are no inputs of the model"]
    return problems + [f"{n} is no input of the model; {nearest(n, wanted)}" for n in unnamed]


def _near(name: str, given: Sequence[str]) -> str:
    return f"the file holds {', '.join(sorted(given))}" if len(given) <= 8 else nearest(name, given)


def _header_problems(header: Header, value: Value) -> list[str]:
    problems = []
    if not header.shape or not _runs_shape(header, value):
        batch = f"[N, {', '.join(map(str, value.shape[1:]))}]" if value.shape[1:] else "[N]"
        problems.append(
            f"{value.name} is {list(header.shape)}; the model takes {list(value.shape)}, "
            f"so samples along the first axis are {batch}"
        )
    elif not header.shape[0]:
        problems.append(f"{value.name} is empty")
    elif not _runs(header, value):
        problems.append(
            f"{value.name} has {header.shape[0]} samples; one run of the model takes {rows(value)}"
        )
    if not _type_fits(header.dtype.kind, np.dtype(value.dtype).kind):
        problems.append(f"{value.name} is {header.dtype}; the model takes {value.dtype}")
    return problems


def _type_fits(given: str, wanted: str) -> bool:
    return given in {"f": "f", "i": "iu", "u": "iu", "b": "b"}.get(wanted, wanted)


def _stacked(header: Header, value: Value) -> bool:
    return bool(value.shape) and header.shape[1:] == value.shape


def _runs_shape(header: Header, value: Value) -> bool:
    return header.shape[1:] == value.shape[1:] or _stacked(header, value)


def _runs(header: Header, value: Value) -> int:
    """Runs of the model the array is good for; 0 when it has no first axis."""
    if not header.shape:
        return 0
    return header.shape[0] if _stacked(header, value) else header.shape[0] // max(1, rows(value))


def _rows_of_runs(header: Header, value: Value, runs: Array) -> Array:
    if _stacked(header, value):
        return runs
    step = rows(value)
    return np.asarray((runs[:, None] * step + np.arange(step)[None]).reshape(-1))


def _limit_problems(array: Array, value: Value) -> list[str]:
    """Numbers that do not fit the model's integer type."""
    if array.dtype.kind not in "iu" or not array.size:
        return []
    limits = np.iinfo(value.dtype)
    low, high = int(array.min()), int(array.max())
    if limits.min <= low and high <= limits.max:
        return []
    return [f"{value.name} goes from {low} to {high}; {value.dtype} cannot hold that"]


def _finite_problems(array: Array, value: Value, keep: Array) -> list[str]:
    if array.dtype.kind != "f":
        return []
    bad = ~np.isfinite(array)
    if not bad.any():
        return []
    first = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
    return [
        f"{value.name} holds {int(bad.sum())} values that are NaN or infinite, "
        f"the first in sample {int(keep[first])}"
    ]


def _refuse(problems: Sequence[str], path: Path, inputs: Sequence[Value]) -> None:
    if problems:
        shapes = ", ".join(f"{v.name} {v.dtype}{list(v.shape)}" for v in inputs)
        raise SplitterError(
            "; ".join(problems), where=str(path), hint=f"the model's inputs are {shapes}"
        )
