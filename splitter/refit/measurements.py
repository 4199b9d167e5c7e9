"""What glue/run.py --bench wrote (docs/bundle.md), checked against the parts that were measured.

Decides what can be used; everything that cannot is told at once. Which figures the times tell is
`fit`'s matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from splitter.diagnostics import SplitterError
from splitter.plan import Device
from splitter.rules.schema import Target
from splitter.tflite.read import read
from splitter.tflite.types import LiteGraph

FORMAT, VERSION = "splitter measurements", 1
RUNS = 10
"""Fewer runs than this have no median worth fitting to."""

QUICKEST, SLOWEST = 1e-4, 1e6
"""Milliseconds of a part that are believed: a clock's tick, and a quarter of an hour."""


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Spread(_Read):
    """Milliseconds."""

    median: float = Field(ge=0)
    p95: float = Field(ge=0)


class Placed(_Read):
    nodes: int
    taken: int
    left: Mapping[str, int] = {}


class PartTimes(_Read):
    device: Device
    file: str
    sha256: str
    placement: Placed | None = None
    delegated: bool = False
    invoke_ms: Spread
    transfer_ms: Spread


class Machine(_Read):
    arch: str = ""
    system: str = ""


class Settings(_Read):
    threads: int = Field(default=1, ge=1, le=1024)
    xnnpack: bool = False
    isolate: bool = False


class Measurements(_Read):
    """One file. delegated says of a part whether the NPU's delegate took it."""

    format: str
    schema_version: int
    target: str
    machine: Machine = Machine()
    settings: Settings = Settings()
    runs: int
    parts: tuple[PartTimes, ...]


@dataclass(frozen=True)
class Measured:
    """A part, what it holds, and where it really ran: an NPU part without delegate on the CPU."""

    label: str
    graph: LiteGraph
    device: Device
    invoke_ms: float
    transfer_ms: float


@dataclass(frozen=True)
class BoardRuns:
    """All that was measured. threads: of the CPU parts; machine, digest: for the record."""

    parts: tuple[Measured, ...]
    threads: int
    machine: str
    digest: str


def read_measurements(
    files: Sequence[Path], target: Target, *, devices: Collection[Device], bundles: Sequence[Path]
) -> BoardRuns:
    """The files' parts that ran on one of `devices`.

    bundles: folders that hold the measured parts, beside the folders of the files themselves.
    Raises SplitterError with everything that cannot be used.
    """
    read_ones = [(path, _parsed(path)) for path in files]
    problems = [f"{folder}: there is no such folder" for folder in bundles if not folder.is_dir()]
    problems += [f"{path}: given twice" for path in dict.fromkeys(files) if files.count(path) > 1]
    problems += [text for path, one in read_ones for text in _unfit(path, one, target)]
    problems += _uneven([one for _, one in read_ones], devices)
    known = _tflite_files([*bundles, *(path.parent for path in files)])
    parts: list[Measured] = []
    for path, one in read_ones:
        for entry in one.parts:
            device: Device = "npu" if entry.device == "npu" and _delegated(entry) else "cpu"
            found = known.get(entry.sha256)
            if found is None:
                problems.append(
                    f"{path}: no file here is {entry.file} as it was measured (sha256"
                    f" {entry.sha256[:12]}...); was the bundle made anew since?"
                )
            elif entry.device == "npu" and device == "cpu" and "npu" in devices:
                problems.append(f"{path}: {_not_delegated(entry)}")
            elif device in devices:
                graph = read(found.read_bytes(), where=str(found))
                label = f"{path.name}: {entry.file}"
                times = entry.invoke_ms.median, entry.transfer_ms.median
                parts.append(Measured(label, graph, device, *times))
    if not problems and not parts:
        problems.append(f"no part ran on the {' or the '.join(sorted(devices)).upper()}")
    _refuse(problems, devices)
    return BoardRuns(
        tuple(parts),
        read_ones[0][1].settings.threads,
        ", ".join(dict.fromkeys(one.machine.system or one.machine.arch for _, one in read_ones)),
        hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
    )


def _parsed(path: Path) -> Measurements:
    try:
        return Measurements.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SplitterError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise SplitterError(
            f"not what glue/run.py --bench writes: {place + ': ' if place else ''}{first['msg']}",
            where=str(path),
            hint="on the board: python3 glue/run.py --bench 100",
        ) from error


def _unfit(path: Path, one: Measurements, target: Target) -> Iterator[str]:
    if one.format != FORMAT:
        yield f"{path}: its format is {one.format!r}, not {FORMAT!r}"
    elif one.schema_version != VERSION:
        yield f"{path}: {FORMAT!r} version {one.schema_version}; this reads version {VERSION}"
    if one.target != target.name:
        yield f"{path}: measured with a bundle for {one.target}, not for {target.name}"
    if one.runs < RUNS:
        yield f"{path}: {one.runs} runs are too few, at least {RUNS} are needed"
    if one.settings.isolate:
        yield f"{path}: --isolate puts a pipe between, its times are not those of the parts"
    for part in one.parts:
        ms, passed = part.invoke_ms.median, part.transfer_ms.median
        if not ms:
            yield f"{path}: {part.file} took no time at all"
        elif not all(QUICKEST <= time <= SLOWEST for time in (ms, passed) if time):
            yield (
                f"{path}: {part.file} took {ms:g} ms and {passed:g} ms to pass its tensors;"
                f" {QUICKEST:g} to {SLOWEST:g} ms are believed"
            )


def _uneven(read_ones: Sequence[Measurements], devices: Collection[Device]) -> Iterator[str]:
    kinds = {(one.settings.threads, one.settings.xnnpack) for one in read_ones}
    if "cpu" in devices and len(kinds) > 1:
        yield "the files differ in --threads or --xnnpack; the CPU's figures hold for one of them"


def _delegated(entry: PartTimes) -> bool:
    return entry.delegated and entry.placement is not None and entry.placement.taken > 0


def _not_delegated(entry: PartTimes) -> str:
    if entry.placement is None:
        return f"{entry.file} is for the NPU and ran on the CPU, without --delegate"
    placed = entry.placement
    return (
        f"{entry.file} is for the NPU and the delegate took {placed.taken} of {placed.nodes} nodes"
    )


def _refuse(problems: Sequence[str], devices: Collection[Device]) -> None:
    if not problems:
        return
    text = problems[0] if len(problems) == 1 else "".join(f"\n  - {one}" for one in problems)
    hints = {
        "no file here is": "--bundle OUT says where the measured parts are",
        "are too few": f"on the board: python3 glue/run.py --bench {10 * RUNS}",
    }
    if "npu" in devices:
        only = "--only cpu refits the CPU's figures alone, from parts that ran there"
        hints |= {"is for the NPU": only, "no part ran": only}
    helps = dict.fromkeys(hint for sign, hint in hints.items() if sign in text)
    raise SplitterError(f"cannot be used: {text}", where="measurements", hint="; ".join(helps))


def _tflite_files(folders: Sequence[Path]) -> dict[str, Path]:
    """sha256 -> file, of the folders and their parts/."""
    found: dict[str, Path] = {}
    for folder in dict.fromkeys(folders):
        for path in sorted([*folder.glob("*.tflite"), *folder.glob("parts/*.tflite")]):
            found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    return found
