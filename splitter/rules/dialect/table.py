"""The form of a fact about an ONNX node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from splitter.rules.dialect.view import NodeView

Value = int | float | bool | str | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """How a fact is read, and what it says in words."""

    read: Callable[[NodeView], Value]
    says: str


Family = Mapping[str, Fact]
