"""Which graphs there are, and what is recorded beside each: inputs, and outputs of ONNX Runtime.

Three kinds of folders: `zoo` (NAME.npz with in_* and out_*), `trained` (in0/NAME, out0/NAME,
in1/...) and `models` (no records; index.json beside them names the shapes of siblings).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from splitter.graph import Array, Value

Kind = Literal["zoo", "trained", "models"]
Arrays = dict[str, Array]

USUAL = {"batch": 1, "n": 1, "seq": 64, "time": 50, "height": 224, "width": 224}
"""Lengths for free axes by their names, where no sibling in index.json says better."""


@dataclass(frozen=True)
class Case:
    """One graph of a folder."""

    name: str
    kind: Kind
    path: Path


@dataclass(frozen=True)
class Record:
    """One run: inputs, and the outputs that ONNX Runtime gave (none recorded: empty)."""

    inputs: Arrays
    outputs: Arrays = field(default_factory=dict)


def find(folder: Path, kind: Kind) -> list[Case]:
    """The graphs of a folder, by name."""
    return [Case(path.stem, kind, path) for path in sorted(folder.glob("*.onnx"))]


def records(case: Case) -> list[Record]:
    """What is recorded beside the graph."""
    path = case.path.with_suffix(".npz")
    if not path.is_file():
        return []
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if case.kind == "zoo":
        return [Record(_under(arrays, "in_"), _under(arrays, "out_"))]
    count = len({name.split("/")[0] for name in arrays if re.match(r"in\d+/", name)})
    return [Record(_under(arrays, f"in{i}/"), _under(arrays, f"out{i}/")) for i in range(count)]


def _under(arrays: Mapping[str, Array], prefix: str) -> Arrays:
    return {n[len(prefix) :]: a for n, a in arrays.items() if n.startswith(prefix)}


def bindings(
    case: Case,
    inputs: Sequence[Value],
    names: Mapping[str, tuple[str, ...]],
    stored: Sequence[Record],
) -> dict[str, tuple[int, ...]]:
    """Shapes for the inputs with free axes (length 0): the records', a sibling's, or usual ones.

    names: the axes' names by input, "" where they have none.
    """
    siblings = _sibling(case)
    shapes: dict[str, tuple[int, ...]] = {}
    for value in inputs:
        if all(value.shape):
            continue
        if stored and value.name in stored[0].inputs:
            shapes[value.name] = stored[0].inputs[value.name].shape
        elif value.name in siblings:
            shapes[value.name] = siblings[value.name]
        else:
            shapes[value.name] = tuple(
                length or USUAL.get(names[value.name][axis], 1 if axis == 0 else 16)
                for axis, length in enumerate(value.shape)
            )
    return shapes


def _sibling(case: Case) -> dict[str, tuple[int, ...]]:
    """Static input shapes of the same network, exported without free axes."""
    index = case.path.with_name("index.json")
    if not index.is_file():
        return {}
    entries = {entry["name"]: entry for entry in json.loads(index.read_text())["models"]}
    stem = re.sub(r"-dyn(B|HW|All|batch).*$", "", case.name)
    for name in (stem, re.sub(r"-[a-z]+\d+$", "", stem)):
        for other, entry in entries.items():
            if other != case.name and other.startswith(name) and _static(entry):
                return {i[0]: tuple(i[2]) for i in entry["inputs"]}
    return {}


def _static(entry: Mapping[str, list[list[object]]]) -> bool:
    shapes = [i[2] for i in entry["inputs"] if isinstance(i[2], list)]
    return all(isinstance(length, int) and length > 0 for shape in shapes for length in shape)
