"""What a command does with this terminal: progress on stderr, a report as wide as it is.

Decides when progress and color are shown, and where lines are broken; prints nothing itself.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import Protocol, TypeVar

from splitter.progress import Progress, Silent, Terminal

Made = TypeVar("Made")
WIDEST = 120
"""Columns of a report on the widest terminal."""


class Shown(Protocol):
    """A result that is shown as text."""

    def text(self, *, color: bool = False, width: int = 100) -> str:
        """For a terminal of so many columns."""


def watched(work: Callable[[Progress], Made], *, quiet: bool) -> Made:
    """Do the work; its progress goes to stderr, when that is a terminal and it may."""
    if quiet or not sys.stderr.isatty():
        return work(Silent())
    with Terminal() as progress:
        return work(progress)


def shown(result: Shown, *, widest: int = WIDEST) -> str:
    """The report for this terminal; no color into files and pipes, nor where NO_COLOR is set."""
    columns = shutil.get_terminal_size((100, 24)).columns
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return result.text(color=color, width=min(columns, widest))


def wrapped(text: str) -> str:
    """Lines broken where the terminal ends, the rest of each one deeper in; words stay whole, since
    names of nodes are for copying. In files and pipes a line stays a line (unless COLUMNS is set).
    """
    columns = shutil.get_terminal_size((0, 0)).columns
    if not columns:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, columns))


def _broken(line: str, columns: int) -> list[str]:
    if len(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )
