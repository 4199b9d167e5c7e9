"""Progress by stage. The pipeline names its stages; here it is decided what a person sees of it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.status import Status


class Progress(Protocol):
    """What the pipeline tells while it works."""

    def stage(self, name: str) -> None:
        """The stage before has ended, this one begins."""

    def step(self, done: int, total: int) -> None:
        """Samples that the stage is through with."""


class Silent:
    """No terminal, or --json: nothing is shown."""

    def stage(self, name: str) -> None:
        pass

    def step(self, done: int, total: int) -> None:
        pass


class Terminal:
    """A spinner for the stage at work, one line with its time for each that has ended.

    Everything goes to stderr and lives as long as the `with` block.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status: Status = self._console.status("")
        self._name = ""
        self._started = 0.0

    def __enter__(self) -> Terminal:
        self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._end()
        self._status.stop()

    def stage(self, name: str) -> None:
        self._end()
        self._name, self._started = name, time.monotonic()
        self._status.update(name)

    def step(self, done: int, total: int) -> None:
        self._status.update(f"{self._name}  [dim]{done} of {total} samples[/dim]")

    def _end(self) -> None:
        if self._name:
            seconds = time.monotonic() - self._started
            self._console.print(f"  {self._name:<10} [dim]{seconds:6.1f} s[/dim]")
            self._name = ""
