"""Calibration runs samples side by side; one that fails ends all of them."""

from __future__ import annotations

from threading import Thread

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.quantize import calibrate
from splitter.tflite.types import LiteGraph, Operator, Tensor

PLACES = 20_000
"""So many that the other samples fail while the first is at work."""


def test_samples_that_fail_beside_a_good_one_end_with_the_message() -> None:
    table = np.random.default_rng(0).normal(size=(50, 64)).astype(np.float32)
    lookup = LiteGraph(
        ("ids",),
        ("y",),
        {
            "ids": Tensor("ids", (1, PLACES), "int32"),
            "table": Tensor("table", (50, 64), "float32", table),
            "y": Tensor("y", (1, PLACES, 64), "float32"),
        },
        (Operator("GATHER", ("table", "ids"), ("y",), {"axis": 0, "batch_dims": 0}),),
    )
    samples = [{"ids": np.full((1, PLACES), 0 if i == 0 else 77, np.int32)} for i in range(8)]
    told: list[str] = []

    def job() -> None:
        try:
            calibrate(lookup, samples, threads=2)
        except SplitterError as error:
            told.append(error.what)

    thread = Thread(target=job, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert "gather index out of bounds" in told[0]
