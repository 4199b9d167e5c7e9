"""The vendors' own compilers: called as a user would, their answer read from what they write."""

from __future__ import annotations

from splitter.compilers.placement import Compiler, Placement

__all__ = ["Compiler", "Placement"]
