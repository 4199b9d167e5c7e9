"""Measurements made from known figures: small networks, their estimated times as measured ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.networks import Net
from splitter.latency import graph_ms, invoke_ms, transfer_ms
from splitter.plan import Device
from splitter.rules.schema import Target
from splitter.tflite.facts import tensor_bytes
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write


def networks(count: int) -> list[LiteGraph]:
    """Each of another mix of convolutions, depthwise ones, products and element-wise operators."""
    rng = np.random.default_rng(3)
    made = []
    for _ in range(count):
        net = Net(int(rng.integers(4, 24) * 8))
        x = net.conv("x", int(rng.integers(1, 9)) * 16, 3, 2)
        for kind in rng.choice(4, size=int(rng.integers(2, 9)), p=(0.2, 0.2, 0.3, 0.3)):
            if kind == 0:
                x = net.conv(x, int(rng.integers(1, 9)) * 16, 3)
            elif kind == 1:
                x = net.depthwise(x, 3)
            else:
                x = net.op("ADD" if kind == 2 else "TANH", [x], net.shape(x))
        made.append(net.classify(x, 10) if rng.random() < 0.5 else net.graph(x))
    return made


@dataclass
class Board:
    """A bundle's folder with parts, and a way to say what a board measured of them."""

    folder: Path
    graphs: Sequence[LiteGraph]

    def measure(self, truth: Target, device: Device, *, noise: float = 0.0, **changes: Any) -> Path:
        """measurements.json as a board of these figures would write it, with changes to it."""
        rng = np.random.default_rng(5)
        parts = []
        for i, graph in enumerate(self.graphs):
            data = (self.folder / f"parts/{i}.tflite").read_bytes()
            ms = graph_ms(graph, device, truth) + (invoke_ms(truth) if device == "npu" else 0.0)
            sizes = [tensor_bytes(graph.tensors[n]) for n in (*graph.inputs, *graph.outputs)]
            passed = sum(transfer_ms(size, truth) for size in sizes)
            spread = [float(np.exp(rng.normal() * noise)) for _ in range(2)]
            parts.append(
                {
                    "index": i,
                    "device": device,
                    "file": f"parts/{i}.tflite",
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "placement": {"nodes": 9, "taken": 9, "left": {}} if device == "npu" else None,
                    "delegated": device == "npu",
                    "invoke_ms": _times(ms * spread[0]),
                    "transfer_ms": _times(passed * spread[1]),
                }
            )
        report = {
            "format": "splitter measurements",
            "schema_version": 1,
            "target": truth.name,
            "machine": {"arch": "aarch64", "system": "a board"},
            "settings": {"threads": 1, "xnnpack": False, "isolate": False},
            "runs": 100,
            "parts": parts,
            **changes,
        }
        path = self.folder / "measurements.json"
        path.write_text(json.dumps(report))
        return path


def _times(ms: float) -> Mapping[str, float]:
    return {"median": ms, "p95": 1.1 * ms, "min": 0.9 * ms}


@pytest.fixture
def board(tmp_path: Path) -> Callable[[int], Board]:
    def make(count: int) -> Board:
        (tmp_path / "out" / "parts").mkdir(parents=True)
        graphs = networks(count)
        for i, graph in enumerate(graphs):
            (tmp_path / "out" / f"parts/{i}.tflite").write_bytes(write(graph))
        return Board(tmp_path / "out", graphs)

    return make
