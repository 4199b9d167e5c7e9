"""Times of a bundle on this machine, as a table and as JSON (`split calibrate` reads it).

Milliseconds of wall time: median, 95th percentile and minimum over the runs, after WARMUP runs.
transfer is setting a part's inputs and reading its outputs; invoke is the part itself.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.bundle import Bundle, OnnxPart, Part
from splitter.glue.board.engine import Engine
from splitter.glue.board.isolate import IsolatedEngine
from splitter.glue.board.runner import Lap, Runner, batches
from splitter.glue.board.runtimes import load_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

WARMUP = 3


def measure(runner: Runner, arrays: Mapping[str, Array], runs: int) -> dict[str, Any]:
    """The first batch of the arrays, run `runs` times. The JSON that --bench-out writes."""
    feeds = next(batches(runner.bundle, arrays))
    for _ in range(WARMUP):
        runner.infer(feeds)
    laps = [runner.infer(feeds).laps[0] for _ in range(runs)]
    runtime = _runtime(runner)
    return {
        "format": "splitter measurements",
        "schema_version": 1,
        "target": runner.bundle.target,
        "manifest_sha256": runner.bundle.sha256,
        "source": runner.bundle.source,
        "machine": {"arch": platform.machine(), "system": platform.platform()},
        "runtime": runtime,
        "settings": asdict(runner.settings),
        "runs": runs,
        "warmup": WARMUP,
        "quantize_ms": _spread([lap.quantize for lap in laps]),
        "parts": [_part(engine, i, laps) for i, engine in enumerate(runner.engines)],
        "dequantize_ms": _spread([lap.dequantize for lap in laps]),
        "remainder": _remainder(runner, laps),
        "total_ms": _spread([lap.total for lap in laps]),
    }


def _runtime(runner: Runner) -> dict[str, str]:
    """What runs the parts; ONNX Runtime where its part is all there is."""
    if runner.remainder is not None and not runner.engines:
        return {"name": "onnxruntime", "version": runner.remainder.version}
    runtime = load_runtime(runner.settings.runtime)
    return {"name": runtime.name, "version": runtime.version}


def random_inputs(bundle: Bundle) -> dict[str, Array]:
    """One batch of normal floats (fixed seed), zeros for integers: for times only."""
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(port.tensor.shape).astype(port.dtype)
        if np.dtype(port.dtype).kind == "f"
        else np.zeros(port.tensor.shape, port.dtype)
        for name, port in bundle.inputs.items()
    }


def bench_table(report: Mapping[str, Any]) -> str:
    """The report for people."""
    rows = [("quantize", report["quantize_ms"])]
    for part in report["parts"]:
        label = f"part {part['index']} {part['device']}"
        rows += [(f"{label} invoke", part["invoke_ms"]), (f"{label} transfer", part["transfer_ms"])]
    rows.append(("dequantize", report["dequantize_ms"]))
    behind = report["remainder"]
    rows += [(f"part {behind['index']} cpu, ONNX", behind["invoke_ms"])] if behind else []
    rows.append(("total", report["total_ms"]))
    lines = [f"{'milliseconds':24}{'median':>10}{'p95':>10}{'min':>10}"]
    lines += [f"{n:24}{t['median']:10.3f}{t['p95']:10.3f}{t['min']:10.3f}" for n, t in rows]
    return "\n".join(lines)


def measurements_json(report: Mapping[str, Any]) -> bytes:
    return (json.dumps(report, indent=2) + "\n").encode()


def _part(engine: Engine | IsolatedEngine, index: int, laps: Sequence[Lap]) -> dict[str, Any]:
    part = engine.part
    steps = [lap.steps[index] for lap in laps]
    tensors = [*part.inputs, *part.outputs]
    return {
        **_identity(part),
        "placement": asdict(engine.placement) if engine.placement else None,
        "delegated": _delegated(engine),
        "boundary_bytes": sum(_bytes(t.shape, t.type) for t in tensors),
        "invoke_ms": _spread([step.invoke for step in steps]),
        "transfer_ms": _spread([step.write + step.read for step in steps]),
    }


def _identity(part: Part | OnnxPart) -> dict[str, Any]:
    return {
        "index": part.index,
        "device": part.device,
        "file": part.file,
        "sha256": part.sha256,
        "operators": part.operators,
    }


def _remainder(runner: Runner, laps: Sequence[Lap]) -> dict[str, Any] | None:
    """The ONNX part, null where there is none."""
    if runner.remainder is None:
        return None
    part = runner.remainder.part
    return {
        **_identity(part),
        "runtime": {"name": "onnxruntime", "version": runner.remainder.version},
        "invoke_ms": _spread([lap.remainder for lap in laps]),
    }


def _delegated(engine: Engine | IsolatedEngine) -> bool:
    """Whether a delegate took the part, to the end of the runs."""
    if engine.placement is None or (isinstance(engine, IsolatedEngine) and engine.lost):
        return False
    return not engine.placement.refusal(engine.part.operators)


def _bytes(shape: Sequence[int], kind: str) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    times = 1e3 * np.asarray(seconds)
    return {
        "median": round(float(np.median(times)), 4),
        "p95": round(float(np.percentile(times, 95)), 4),
        "min": round(float(times.min()), 4),
    }
