"""onnx2tf on the same graphs: `python -m bench.corpus.peer --models DIR --onnx2tf COMMAND`.

It has an environment of its own (`pip install onnx2tf tensorflow onnxruntime`), COMMAND is its
program there. Each graph: a copy with its weights (onnx2tf rewrites its input), the shapes that we
bind, float conversion within a time limit, then its float file in LiteRT on one sample, against
ONNX Runtime with its rewrites off.

Decides in its favor where its conventions leave a choice: inputs and outputs may have come out in
any order of axes that fits their lengths; the one with the least error counts.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ai_edge_litert import interpreter as litert

from bench.corpus.cases import Arrays, Case, bindings, records
from bench.corpus.measure import axis_names, restored
from bench.corpus.recorded import PEER, Peer, PeerRow, load_peer, save_peer
from bench.corpus.samples import invented
from bench.corpus.sweep import add_arguments
from bench.corpus.wanted import cases
from splitter.diagnostics import SplitterError
from splitter.graph import Array, Value
from splitter.model import Model, load
from splitter.reference import OnnxRunner

RIGHT, NEAR = 1e-4, 1e-2
"""Relative RMS of an output."""

TIMEOUT = 120
"""Seconds of a conversion, of the processor: others may be using the machine."""

PATIENCE = 8
"""Times as long on the clock."""

UNUSABLE = "LiteRT refuses the file"
ATTEMPTS = 64
"""Layouts of inputs that are tried."""


@dataclass(frozen=True)
class Conversion:
    """file: the float file, None when there is none. reason: why, in its own words."""

    file: Path | None
    seconds: float
    reason: str = ""


def compare(case: Case, command: str, folder: Path) -> PeerRow:
    """Convert a graph and hold the result against ONNX Runtime."""
    path = restored(case, folder)
    if path == case.path:
        path = folder / case.path.name
        path.write_bytes(case.path.read_bytes())
    model = load(path)
    stored = records(case)
    shapes = bindings(case, model.inputs, axis_names(model), stored)
    static = [Value(v.name, shapes.get(v.name, v.shape), v.dtype) for v in model.inputs]
    inputs = stored[0].inputs if stored else invented(static, 1)[0]
    expected = OnnxRunner(model.proto, None, threads=1, optimize=False).run(inputs)
    made = convert(path, shapes, command, folder / "made")
    if made.file is None:
        status = "timeout" if made.seconds >= TIMEOUT else "refused"
        return PeerRow(case.name, status, seconds=round(made.seconds, 1), reason=made.reason)
    error, reason = least_error(made.file, model, inputs, expected)
    status = "right" if error <= RIGHT else "near" if error <= NEAR else "wrong"
    if reason.startswith(UNUSABLE):
        status = "refused"
    shown = float(f"{error:.3g}") if np.isfinite(error) else None
    return PeerRow(case.name, status, shown, round(made.seconds, 1), reason)


def convert(
    path: Path, shapes: Mapping[str, tuple[int, ...]], command: str, out: Path
) -> Conversion:
    """Run onnx2tf on a file that it may rewrite. Seconds of the processor."""
    call = [command, "-i", str(path), "-o", str(out), "-n"]
    if shapes:
        call += ["-ois", *(f"{n}:{','.join(map(str, shape))}" for n, shape in shapes.items())]
    before = processor_seconds()
    with subprocess.Popen(
        call,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT, TIMEOUT)),
    ) as process:
        try:
            text, _ = process.communicate(timeout=PATIENCE * TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Conversion(None, TIMEOUT, f"over {TIMEOUT} s")
    seconds = processor_seconds() - before
    found = sorted(out.glob("*float32.tflite"))
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and seconds >= TIMEOUT - 1:
        return Conversion(None, TIMEOUT, f"over {TIMEOUT} s")
    if not found:
        return Conversion(None, seconds, last_words(text))
    return Conversion(found[0], seconds)


def processor_seconds() -> float:
    """Of the processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last_words(text: str) -> str:
    """The line that says why: the last that names an error, or the last."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["no output"])[-1][:160]


class PeerFile:
    """A .tflite file of another converter, its free axes (-1) as the arrays have them."""

    def __init__(self, model: bytes) -> None:
        kernels = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self._runtime = litert.Interpreter(
            model_content=model, num_threads=1, experimental_op_resolver_type=kernels
        )
        self._runtime.allocate_tensors()
        self._inputs = {d["name"]: d for d in self._runtime.get_input_details()}
        self.shapes = {
            name: tuple(int(n) for n in detail["shape_signature"])
            for name, detail in self._inputs.items()
        }

    def run(self, feeds: Arrays) -> Arrays:
        for name, array in feeds.items():
            if tuple(self._inputs[name]["shape"]) != array.shape:
                self._runtime.resize_tensor_input(self._inputs[name]["index"], array.shape)
        self._runtime.allocate_tensors()
        for name, array in feeds.items():
            detail = self._inputs[name]
            self._runtime.set_tensor(detail["index"], array.astype(detail["dtype"]))
        self._runtime.invoke()
        details = self._runtime.get_output_details()
        return {d["name"]: self._runtime.get_tensor(d["index"]) for d in details}


def least_error(file: Path, model: Model, inputs: Arrays, expected: Arrays) -> tuple[float, str]:
    """The error with the layout that serves it best, and why where it does not run."""
    try:
        peer = PeerFile(file.read_bytes())
    except (RuntimeError, ValueError) as failure:
        return float("inf"), f"{UNUSABLE}: {' '.join(str(failure).split())}"[:160]
    names = match([v.name for v in model.inputs], list(peer.shapes))
    best, reason = float("inf"), ""
    choices = [list(layouts(inputs[ours], peer.shapes[other])) for ours, other in names.items()]
    if not all(choices):
        return best, "an input has another shape"
    for chosen in itertools.islice(itertools.product(*choices), ATTEMPTS):
        try:
            made = peer.run(dict(zip(names.values(), chosen, strict=True)))
        except (RuntimeError, ValueError) as failure:
            reason = " ".join(str(failure).split())[:160]
            continue
        best = min(best, error_of(expected, made))
        if best <= RIGHT:
            break
    return best, reason if best == float("inf") else ""


def match(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Inputs by name, where a name ends as the other does, the rest in order."""
    left = list(theirs)
    found: dict[str, str] = {}
    for name in ours:
        plain = name.replace(":", "_").replace("/", "_")
        for other in left:
            stem = other.rsplit(":", 1)[0]
            if other in (name, plain) or stem in (name, plain) or stem.endswith(f"_{plain}"):
                found[name] = other
                left.remove(other)
                break
    rest = [name for name in ours if name not in found]
    found |= dict(zip(rest, left, strict=False))
    return {name: found[name] for name in ours if name in found}


def layouts(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """The array in every order of axes that has the shape (-1: any length); channels last first."""
    rank = array.ndim
    if rank != len(shape):
        if array.size == int(np.prod(shape)):
            yield array.reshape(shape)
        return
    last = (0, *range(2, rank), 1) if rank >= 3 else tuple(range(rank))
    orders = dict.fromkeys([last, *itertools.permutations(range(rank))] if rank <= 5 else [last])
    for order in orders:
        lengths = [array.shape[axis] for axis in order]
        if all(want in (-1, length) for want, length in zip(shape, lengths, strict=True)):
            yield np.ascontiguousarray(array.transpose(order))


def error_of(expected: Arrays, made: Arrays) -> float:
    """The largest relative RMS of any output, each matched with the one that is nearest to it."""
    worst = 0.0
    for wanted in expected.values():
        errors = [
            relative(wanted, other)
            for array in made.values()
            for other in layouts(array, wanted.shape)
        ]
        worst = max(worst, min(errors, default=float("inf")))
    return worst


def relative(wanted: Array, made: Array) -> float:
    real, other = wanted.astype(np.float64), made.astype(np.float64)
    if not np.isfinite(other).all():
        return float("inf")
    size = float(np.sqrt(np.square(real).mean())) if real.size else 0.0
    return float(np.sqrt(np.square(other - real).mean())) / (size or 1.0) if real.size else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus.peer", description=__doc__)
    add_arguments(parser)
    parser.add_argument("--onnx2tf", required=True, help="its program, in its own environment")
    parser.add_argument("--version", required=True, help="what it says of itself")
    parser.add_argument("--record", type=Path, default=PEER)
    wanted = parser.parse_args()
    about = {
        "tool": f"onnx2tf {wanted.version}",
        "command": "onnx2tf -i COPY.onnx -o OUT -n [-ois INPUT:SHAPE ...]",
        "compared": f"float32 file in ai-edge-litert {version('ai-edge-litert')} with ONNX "
        f"Runtime {version('onnxruntime')}, rewrites off; one sample; "
        f"{TIMEOUT} s of the processor a graph, one thread",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared",
    }
    peer = load_peer(wanted.record)
    rows = dict(peer.rows)
    for case in cases(wanted):
        if case.name in rows:
            continue
        with tempfile.TemporaryDirectory(prefix="peer-") as folder:
            try:
                row = compare(case, wanted.onnx2tf, Path(folder))
            except SplitterError as failure:
                row = PeerRow(case.name, "not run", reason=str(failure).splitlines()[0])
        rows[case.name] = row
        print(row.status, row.name, row.error, row.seconds, row.reason, flush=True)
        save_peer(wanted.record, Peer(about, rows))


if __name__ == "__main__":
    main()
