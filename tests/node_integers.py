"""The ONNX project's node tests in int8: what passes in float, calibrated on its own inputs.

Each runs in a process of its own where one of its neighbors aborts. Decides what counts as near.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Literal

import numpy as np

from splitter.diagnostics import SplitterError
from tests.node_suite import array_of, node_tests, outcome
from tests.node_suite import lowered as float_graph
from tests.ops.lowered import Array, Lowered

NEAR = 0.2
"""Relative RMS in int8, or share of other integers and conditions, from which on a result is gross:
a few inputs lie where the function jumps, or side by side with others a thousand times as large."""

Kind = Literal["near", "gross", "refused", "no real values", "not in float", "broken"]


@dataclass(frozen=True)
class Integers:
    """What became of one node test in int8. error: of its worst output."""

    kind: Kind
    error: float = 0.0
    reason: str = ""


def in_integers(name: str) -> Integers:
    """One test; anything raised but a refusal is a fault of ours."""
    found = outcome(name)
    if found.kind not in ("pass", "pass with constants"):
        return Integers("not in float")
    test = node_tests()[name]
    inputs, outputs = test.data_sets[-1]
    graph = test.model.graph
    arrays = {v.name: array_of(a) for v, a in zip(graph.input, inputs, strict=False)}
    wanted = {v.name: array_of(a) for v, a in zip(graph.output, outputs, strict=True)}
    bound = tuple(arrays)[1:] if found.kind == "pass with constants" else ()
    lite = float_graph(test.model, arrays, constants=bound)
    if not any(t.dtype == "float32" for t in lite.tensors.values()):
        return Integers("no real values")
    sample = {name: _single(arrays[name]) for name in lite.inputs}
    made = Lowered(lite, [sample], [{n: _single(a) for n, a in wanted.items()}])
    try:
        error = made.integer_error()
    except SplitterError as refusal:
        return Integers("refused", reason=str(refusal))
    return Integers("near" if error <= NEAR else "gross", error)


def _single(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _many(names: Sequence[str]) -> list[Integers]:
    made = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            try:
                made.append(in_integers(name))
            except Exception as error:  # noqa: BLE001  one table for all, faults of ours included
                made.append(Integers("broken", reason=f"{type(error).__name__}: {error}"))
    return made


def run_integers(names: Iterable[str], *, workers: int = 2, chunk: int = 40) -> dict[str, Integers]:
    """All of them, in processes: a kernel that aborts takes its process with it."""
    listed, lost = list(names), list[str]()
    found: dict[str, Integers] = {}
    parts = [listed[i : i + chunk] for i in range(0, len(listed), chunk)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for part, future in [(part, pool.submit(_many, part)) for part in parts]:
            try:
                found.update(zip(part, future.result(), strict=True))
            except BrokenProcessPool:
                lost += part
    for name in lost:
        found[name] = _alone(name)
    return found


def _alone(name: str) -> Integers:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_many, [name]).result()[0]
        except BrokenProcessPool:
            return Integers("broken", reason="the runtime aborted")
