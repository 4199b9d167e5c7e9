"""What reports have in common: the template's words and settings, and text as a terminal shows it.

Decides the filters of the templates and how ANSI text is made; what is shown is each report's.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from io import StringIO

from jinja2 import Environment, StrictUndefined, Template
from rich.console import Console, RenderableType

from splitter.report import words


def template(package: str, name: str) -> Template:
    """A packaged HTML template; a name that it does not get is an error, text is escaped."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        big=words.big,
        ms=words.milliseconds,
        percent=words.percent,
        error=words.error,
        shape=words.shape,
        shortened=words.shortened,
        counted=words.counted,
    )
    return environment.from_string(packaged(package, name))


def packaged(package: str, name: str) -> str:
    """The text of a file that lies in a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def printed(blocks: Iterable[RenderableType], *, color: bool, width: int) -> str:
    """The blocks for a terminal of `width` columns, whatever the environment says of it."""
    stream = StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    for block in blocks:
        console.print(block)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
