"""The form of a fact: how it is read from an operator, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from splitter.tflite.view import View

Value = int | float | bool | str | tuple[Any, ...]
Read = Callable[[View], Value | None]


@dataclass(frozen=True, slots=True)
class Fact:
    """How a fact is read, and what it says in words. None: not there (quantization facts)."""

    read: Read
    says: str


Family = Mapping[str, Fact]


def option(name: str, default: Value, says: str) -> Fact:
    """A builtin option of the operator."""
    return Fact(lambda view: view.op.options.get(name, default), says)
