"""A target's rules as text: every operator, every limit, its source and its confidence.

One source for what the checker does and what people read: it prints the rule file's own data, for
the terminal (`split rules show`), for docs/support (`support_page`, `support_index`) and as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from splitter.diagnostics import SplitterError, nearest
from splitter.rules.schema import Limit, OperatorRule, Target, in_versions


def rulebook(target: Target, operator: str = "") -> str:
    """Plain text; limits that do not hold at the assumed tool version are left out.

    operator: only this one. Raises SplitterError with the nearest names for one that is not listed.
    """
    return "\n".join(_lines(target) if not operator else _one(target, operator))


def rules_json(target: Target, operator: str = "") -> dict[str, Any]:
    """The same as data: the rule file's own words, and what holds at the assumed version."""
    codes = [_known(target, operator)] if operator else sorted(target.operators)
    return {
        "name": target.name,
        "file": target.file,
        "version": target.version,
        "every": [limit.model_dump(by_alias=True) for _, limit in target.limits("")],
        "operators": {
            code: target.operators[code].model_dump(by_alias=True, exclude={"limits"})
            | {
                "limits": [
                    {"rule": address, **limit.model_dump(by_alias=True, exclude_none=True)}
                    for address, limit in target.limits(code)
                ]
            }
            for code in codes
        },
        "sources": dict(target.sources),
    }


def counts(target: Target) -> Counter[str]:
    """Operators by support: yes, no, unknown; "yes" only where the assumed version has it."""
    found: Counter[str] = Counter()
    for rule in target.operators.values():
        here = in_versions(target.version, since=rule.since, until=rule.until)
        found[rule.support if here or rule.support != "yes" else "no"] += 1
    return found


def _one(target: Target, operator: str) -> Iterator[str]:
    code = _known(target, operator)
    yield f"{target.name} ({target.file}), read for {target.tool.name} {target.version}"
    yield from _operator(target, code)
    general = [(address, limit) for address, limit in target.limits("") if limit]
    if general:
        yield "and like every operator"
        for address, limit in general:
            yield from _limit(address, limit)
    rule = target.operators[code]
    limits = [*rule.limits, *(limit for _, limit in general)]
    keys = dict.fromkeys(_keys([rule.source, *(limit.source for limit in limits)]))
    yield ""
    yield "sources"
    yield from (f"  {key}: {target.sources[key]}" for key in keys)


def _known(target: Target, operator: str) -> str:
    named = {code.casefold(): code for code in target.operators}
    if operator.casefold() in named:
        return named[operator.casefold()]
    unlisted = target.every.unlisted
    raise SplitterError(
        f"{target.name} lists no operator {operator!r}, so the NPU does not take it "
        f"({unlisted.confidence}: {target.source_text(unlisted.source)})",
        where=target.file,
        hint=nearest(
            operator.upper() if target.dialect == "tflite" else operator, target.operators
        ),
    )


def _keys(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from (part.strip() for part in text.split(","))


def _lines(target: Target) -> Iterator[str]:
    yield f"{target.name}: {target.title}"
    yield f"{target.file}, revision {target.revision}, read for {target.tool.name} {target.version}"
    if target.note:
        yield target.note
    yield ""
    yield from _to_fill_in(target)
    yield "every operator"
    for address, limit in target.limits(""):
        yield from _limit(address, limit)
    for code in sorted(target.operators):
        yield ""
        yield from _operator(target, code)
    yield ""
    unlisted = target.every.unlisted
    yield f"any other operator: no ({unlisted.confidence}: {unlisted.source})"
    yield ""
    yield "sources"
    yield from (f"  {key}: {text}" for key, text in target.sources.items())


def _to_fill_in(target: Target) -> Iterator[str]:
    """What a user must add before this target can take anything."""
    if not target.has_npu or counts(target)["yes"]:
        return
    yield "to be filled in by you, in a copy of the file (docs/adding-a-target.md):"
    yield "  [sources]              what you know it from"
    yield '  [operators.NAME]       support = "yes", source, confidence, limits: one an operator'
    if target.latency.npu is None:
        yield "  [latency.npu]          figures of the NPU; split calibrate improves them"
    yield "  then: split rules check ./MINE.toml; split MODEL --target ./MINE.toml"
    unknown = [code for code, rule in sorted(target.operators.items()) if rule.support != "no"]
    yield f"  begin with: {', '.join(unknown)}"
    yield ""


def _operator(target: Target, code: str) -> Iterator[str]:
    rule = target.operators[code]
    yield _head(code, rule)
    if rule.note:
        yield f"  note: {rule.note}"
    for address, limit in target.limits(code):
        if address.startswith(f"{code}."):
            yield from _limit(address, limit)


def _head(code: str, rule: OperatorRule) -> str:
    return f"{code}: {rule.support}{_span(rule)} ({rule.confidence}: {rule.source})"


def _span(rule: OperatorRule | Limit) -> str:
    since = f", from {rule.since}" if rule.since else ""
    return since + (f", before {rule.until}" if rule.until else "")


def _limit(address: str, limit: Limit) -> Iterator[str]:
    yield f"  {address}: {limit}{_span(limit)} ({limit.confidence}: {limit.source})"
    if limit.note:
        yield f"    note: {limit.note}"
