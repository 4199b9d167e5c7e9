"""docs/support: a page for every target, written from its rule file. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from splitter.rules.book import counts
from splitter.rules.schema import Limit, OperatorRule, Target

WRITTEN = "Written by `make docs` from the rule file; do not edit."


def support_page(target: Target) -> str:
    """The page of one target in Markdown."""
    return "\n".join(
        [*_head(target), *_operators(target), *_figures(target), *_sources(target), ""]
    )


def support_index(targets: Iterable[Target]) -> str:
    """The table of all targets in Markdown."""
    lines = [
        "# Targets",
        "",
        f"{WRITTEN} Yes: taken, within limits; unknown goes to the CPU like no.",
        "",
        "| target | what | its tool reads | tool | yes | no | unknown |",
        "|---|---|---|---|---|---|---|",
    ]
    for target in targets:
        found = counts(target)
        reads = {"tflite": "TFLite", "onnx": "ONNX"}[target.dialect]
        numbers = " | ".join(str(found[kind]) for kind in ("yes", "no", "unknown"))
        lines.append(
            f"| [{target.name}]({target.name}.md) | {target.title} | {reads} | "
            f"{target.tool.name} {target.version} | {numbers} |"
        )
    return "\n".join([*lines, ""])


def _head(target: Target) -> Iterator[str]:
    yield f"# {target.name}: {target.title}"
    yield ""
    yield f"{WRITTEN} Revision {target.revision} of `{target.file}`."
    yield ""
    rows = [
        ("rules for", f"{target.tool.name} {target.version}".strip()),
        ("other versions", ", ".join(v for v in target.tool.versions if v != target.version)),
        ("its tool reads", {"tflite": "TFLite", "onnx": "ONNX"}[target.dialect]),
        ("command", f"`{target.tool.command}`" if target.tool.command else ""),
        ("NPU segments", "any number" if target.max_segments is None else str(target.max_segments)),
        ("runtime on the board", target.board.runtime),
        ("delegate", f"`{target.board.delegate}`" if target.board.delegate else ""),
    ]
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {_cell(text)} |" for name, text in rows if text)
    yield ""
    for note in (target.note, target.tool.note, *target.board.notes):
        if note:
            yield f"- {note}"
    yield ""


def _operators(target: Target) -> Iterator[str]:
    yield "## Operators"
    yield ""
    if target.every.limits:
        yield "Every operator:"
        yield ""
        yield from (f"- {_words(limit)}" for limit in target.every.limits)
        yield ""
    yield "| operator | taken | within these limits | note |"
    yield "|---|---|---|---|"
    for code, rule in sorted(target.operators.items()):
        limits = "<br>".join(_cell(_words(limit)) for limit in rule.limits)
        yield f"| {code} | {_taken(rule)} | {limits} | {_cell(rule.note)} |"
    unlisted = target.every.unlisted
    why = f"{unlisted.confidence}, {unlisted.source}"
    yield f"| any other | no ({why}) | | {_cell(unlisted.note)} |"
    yield ""


def _taken(rule: OperatorRule) -> str:
    return f"{rule.support}{_span(rule)} ({rule.confidence}, {rule.source})"


def _span(rule: OperatorRule | Limit) -> str:
    since = f" from {rule.since}" if rule.since else ""
    return since + (f" before {rule.until}" if rule.until else "")


def _words(limit: Limit) -> str:
    note = f"; {limit.note}" if limit.note else ""
    basis = f"{limit.confidence}, {limit.source}{_span(limit)}"
    return f"`{limit.fact}` {limit} ({basis}{note})"


def _figures(target: Target) -> Iterator[str]:
    yield "## Latency figures"
    yield ""
    yield "| figure | value | rests on | note |"
    yield "|---|---|---|---|"
    latency = target.latency
    parts = []
    if latency.npu:
        parts += [(f"NPU {name}", figure) for name, figure in latency.npu if figure is not None]
    parts += [(f"NPU, class {name}", figure) for name, figure in latency.npu_classes.items()]
    parts += [("CPU cores", latency.cpu.cores), ("CPU operator", latency.cpu.operator)]
    parts += [(f"CPU {name}", figure) for name, figure in latency.cpu.classes.items()]
    for name, figure in parts:
        basis = f"{figure.confidence}, {figure.source}"
        yield f"| {name} | {figure.value:g} {figure.unit} | {basis} | {_cell(figure.note)} |"
    yield ""


def _sources(target: Target) -> Iterator[str]:
    yield "## Sources"
    yield ""
    yield from (f"- {key}: {text}" for key, text in target.sources.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
