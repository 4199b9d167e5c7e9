"""The outputs that an ONNX part makes: whether the cut is right, and what int8 before it does.

Bits cannot be compared there: the part is float, and its outputs may have as many rows as the data
decides. Decides what is compared instead: the part on ONNX Runtime's own values must give what the
whole file gives (the cut is right), and on the values of the integer parts something close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitter.graph import Array
from splitter.verify.tensors import TensorMeter

Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Behind:
    """One run. whole: the whole file. cut: the part on float values. integer: on integer ones.

    results: all outputs of the model, of the whole file and of the bundle. fixed: those whose shape
    does not depend on data. ranked: values before the part whose rows a TopK has put in order.
    """

    whole: Outputs
    cut: Outputs
    integer: Outputs
    results: tuple[Outputs, Outputs] = ({}, {})
    fixed: frozenset[str] = frozenset()
    ranked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BehindError:
    """One output over all runs.

    cut: relative RMS of the part on float values against the whole file; infinite when a shape
    differs. rows: length of the first axis summed over the runs, in float and with integer values
    before the part (1 a run for scalars). alike: runs in which both shapes are equal. relative_rms:
    of integer against float over those runs, None when there are none.
    """

    name: str
    runs: int
    cut: float
    rows: tuple[int, int]
    alike: int
    relative_rms: float | None


class BehindMeter:
    """Sums up run by run."""

    def __init__(self) -> None:
        self._outputs: dict[str, _Output] = {}

    def add(self, run: Behind | None) -> None:
        """None: there is no ONNX part."""
        if run is None:
            return
        for name in run.whole:
            output = self._outputs.setdefault(name, _Output(name))
            output.add(run.whole[name], run.cut[name], run.integer[name])

    def result(self) -> tuple[BehindError, ...]:
        return tuple(output.result() for output in self._outputs.values())


class _Output:
    def __init__(self, name: str) -> None:
        self._name = name
        self._runs = self._alike = 0
        self._rows = np.zeros(2, np.int64)
        self._cut, self._integer = TensorMeter(name), TensorMeter(name)
        self._broken = False

    def add(self, whole: Array, cut: Array, integer: Array) -> None:
        self._runs += 1
        self._rows += [_rows(whole), _rows(integer)]
        if whole.dtype.kind in "OUS":
            self._broken |= not np.array_equal(whole, cut)
            self._alike += np.array_equal(whole, integer)
            return
        if whole.shape == cut.shape:
            self._cut.add(whole, cut)
        else:
            self._broken = True
        if whole.shape == integer.shape:
            self._alike += 1
            self._integer.add(whole, integer)

    def result(self) -> BehindError:
        return BehindError(
            self._name,
            self._runs,
            float("inf") if self._broken else self._cut.result().relative_rms,
            (int(self._rows[0]), int(self._rows[1])),
            self._alike,
            self._integer.result().relative_rms if self._alike else None,
        )


def _rows(array: Array) -> int:
    return int(array.shape[0]) if array.ndim else 1
