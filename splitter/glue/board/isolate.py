"""A part in a process of its own: a fault in the NPU's driver ends that process, not the caller.

Seen on i.MX95: "internal fault code=442", then a segmentation fault at the first invoke.
Arrays go through a pipe as .npz bytes. When the process dies or hangs, the part goes on with its
unconverted file on the CPU, which gives the same integers as the host, and says so.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.arrays import npz_bytes
from splitter.glue.board.bundle import Part
from splitter.glue.board.engine import Engine, Settings, Step
from splitter.glue.board.messages import BadInput, note
from splitter.glue.board.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    Array = NDArray[Any]

START_SECONDS = 60.0
"""At least this long for a process to start and open its part."""


class IsolatedEngine:
    """The interface of Engine; `lost` says why the process was given up, "" while it lives."""

    def __init__(self, part: Part, path: Path, settings: Settings) -> None:
        self.part = part
        self.lost = ""
        self.placement: Placement | None = None
        self._settings = settings
        self._spare: Engine | None = None
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        arguments = (far, part, path, settings)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        far.close()
        answer, _ = self._answer(max(START_SECONDS, settings.timeout))
        if answer.get("placement"):
            self.placement = Placement(**answer["placement"])

    def run(self, feeds: Mapping[str, Array]) -> Step:
        """As Engine.run; on the CPU once the process is lost."""
        if self._spare is None:
            step = self._remote(feeds)
            if step is not None:
                return step
        return self._on_cpu().run(feeds)

    def close(self) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join(5)

    def _remote(self, feeds: Mapping[str, Array]) -> Step | None:
        if self.lost:
            return None
        try:
            self._pipe.send_bytes(npz_bytes(feeds))
        except OSError:
            self._give_up(self._end())
            return None
        answer, data = self._answer(self._settings.timeout)
        return Step(_arrays_of(data), *answer["seconds"]) if answer else None

    def _answer(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The process's next message; empty when it was lost. Raises BadInput for its message."""
        try:
            if not self._pipe.poll(seconds):
                self._give_up(f"did not answer for {seconds:g} s")
                return {}, b""
            header, _, data = self._pipe.recv_bytes().partition(b"\n")
        except (EOFError, OSError):
            self._give_up(self._end())
            return {}, b""
        answer: dict[str, Any] = json.loads(header)
        if "error" in answer:
            raise BadInput(answer["error"])
        return answer, data

    def _end(self) -> str:
        self._process.join(5)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"was ended by signal {signal.Signals(-code).name}, as by a driver fault"
        return f"ended with status {code}"

    def _give_up(self, why: str) -> None:
        self.lost = f"the process of {self.part.label} {why}"
        self.close()

    def _on_cpu(self) -> Engine:
        if self._spare is None:
            note(f"warning: {self.lost}; it goes on with {self.part.file} on the CPU")
            plain = replace(self._settings, delegate="", converted="")
            self._spare = Engine(self.part, self.part.path, plain)
        return self._spare


def _serve(pipe: Connection, part: Part, path: Path, settings: Settings) -> None:
    """The other process: opens the part, answers each request until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        engine = Engine(part, path, settings)
        placement = engine.placement
        _send(pipe, {"placement": asdict(placement) if placement else None})
        while True:
            step = engine.run(_arrays_of(pipe.recv_bytes()))
            seconds = [step.write, step.invoke, step.read]
            _send(pipe, {"seconds": seconds}, npz_bytes(step.outputs))
    except BadInput as error:
        _send(pipe, {"error": str(error)})
    except EOFError:
        return


def _send(pipe: Connection, header: Mapping[str, Any], data: bytes = b"") -> None:
    pipe.send_bytes(json.dumps(header).encode() + b"\n" + data)


def _arrays_of(data: bytes) -> dict[str, Array]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
