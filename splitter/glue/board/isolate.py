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
        answer = self._answer()
        if answer and answer["placement"]:
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
        answer = self._answer()
        if answer is None:
            return None
        with np.load(io.BytesIO(self._pipe.recv_bytes()), allow_pickle=False) as arrays:
            return Step({name: arrays[name] for name in arrays.files}, *answer["seconds"])

    def _answer(self) -> dict[str, Any] | None:
        """The process's next message; None when it was lost. Raises BadInput for its message."""
        try:
            if not self._pipe.poll(self._settings.timeout):
                self._give_up(f"did not answer for {self._settings.timeout:g} s")
                return None
            answer: dict[str, Any] = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._give_up(self._end())
            return None
        if "error" in answer:
            raise BadInput(answer["error"])
        return answer

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
        pipe.send_bytes(_json({"placement": asdict(placement) if placement else None}))
        while True:
            with np.load(io.BytesIO(pipe.recv_bytes()), allow_pickle=False) as arrays:
                step = engine.run({name: arrays[name] for name in arrays.files})
            pipe.send_bytes(_json({"seconds": [step.write, step.invoke, step.read]}))
            pipe.send_bytes(npz_bytes(step.outputs))
    except BadInput as error:
        pipe.send_bytes(_json({"error": str(error)}))
    except EOFError:
        return


def _json(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode()
