"""The text of a rule file with other latency figures: the rest stays as it was, comments and all.

Decides the form of the new latency section, and proves that nothing else changed: the new text is
read back and held against the old target.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from splitter.diagnostics import SplitterError
from splitter.rules.schema import Figure, Latency, Target
from splitter.rules.targets import read_target

LATENCY = re.compile(r"\[\[?\s*latency\s*[.\]]")
SOURCES = re.compile(r"\[\s*sources\s*\]")
HEADER = re.compile(r"\[\[?[^=]*\]\s*(#.*)?$")


def with_latency(text: str, target: Target, latency: Latency, sources: Mapping[str, str]) -> str:
    """The text of `target`'s rule file with another latency section and further sources.

    Raises SplitterError when the file is written in a way that cannot be taken apart.
    """
    lines: list[str] = []
    old: list[str] = []
    dropping = placed = False
    for line in text.splitlines():
        if HEADER.match(line.strip()):
            dropping = bool(LATENCY.match(line.strip()))
        if dropping:
            old.append(line)
            continue
        lines.append(line)
        if SOURCES.match(line.strip()):
            lines += [f"{key} = {json.dumps(said)}" for key, said in sources.items()]
            placed = True
    if not placed:
        lines += ["", "[sources]", *(f"{k} = {json.dumps(said)}" for k, said in sources.items())]
    section = [*_kept(latency, target.latency, old)]
    made = "\n".join(lines).rstrip() + "\n" + "\n".join(section) + "\n"
    again = read_target(made.encode(), shown=target.file)
    expected = target.model_copy(
        update={
            "latency": latency,
            "sources": {**target.sources, **sources},
            "sha256": again.sha256,
        }
    )
    if again.at(target.version) != expected:
        raise SplitterError(
            "its latency section cannot be replaced without touching the rest",
            where=target.file,
            hint="write each table as [latency.npu], one figure a line, as the files in rules/ do",
        )
    return made


def _kept(latency: Latency, before: Latency, old: Sequence[str]) -> Iterator[str]:
    """The new section; lines of figures that did not change are the old ones, as they were."""
    written: dict[tuple[str, str], str] = {}
    table = ""
    for line in old:
        name = line.partition("=")[0].strip()
        table = name if HEADER.match(name) else table
        written[table, name] = line
    unchanged = set(_section(before))
    for line in _section(latency):
        name = line.partition("=")[0].strip()
        table = name if HEADER.match(name) else table
        yield written.get((table, name), line) if line in unchanged and name else line


def _section(latency: Latency) -> Iterator[str]:
    if latency.npu is not None:
        yield from ("", "[latency.npu]")
        for name, figure in latency.npu:
            if isinstance(figure, Figure):
                yield _line(name, figure)
    if latency.npu_classes:
        yield from ("", "[latency.npu_classes]")
        for name, figure in latency.npu_classes.items():
            yield _line(name, figure)
    yield from ("", "[latency.cpu]")
    yield _line("cores", latency.cpu.cores)
    yield _line("operator", latency.cpu.operator)
    yield from ("", "[latency.cpu.classes]")
    for name, figure in latency.cpu.classes.items():
        yield _line(name, figure)


def _line(name: str, figure: Figure) -> str:
    value = int(figure.value) if float(figure.value).is_integer() else figure.value
    words = [("unit", figure.unit), ("source", figure.source), ("confidence", figure.confidence)]
    words += [("note", figure.note)] if figure.note else []
    rest = ", ".join(f"{key} = {json.dumps(said, ensure_ascii=False)}" for key, said in words)
    return f"{name} = {{ value = {value}, {rest} }}"
