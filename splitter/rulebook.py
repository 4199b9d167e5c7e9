"""A target's rules as text: every operator, every limit, its source and its confidence.

One source for what the checker does and what people read: it prints the rule file's own data.
"""

from __future__ import annotations

from collections.abc import Iterator

from splitter.rulefile import Limit, OperatorRule, Target


def rulebook(target: Target) -> str:
    """Plain text; limits that do not hold at the assumed tool version are left out."""
    return "\n".join(_lines(target))


def _lines(target: Target) -> Iterator[str]:
    yield f"{target.name}: {target.title}"
    yield f"{target.file}, revision {target.revision}, read for {target.tool.name} {target.version}"
    if target.note:
        yield target.note
    yield ""
    yield "every operator"
    for address, limit in target.limits(""):
        yield from _limit(address, limit)
    for code, rule in sorted(target.operators.items()):
        yield ""
        yield _head(code, rule)
        if rule.note:
            yield f"  note: {rule.note}"
        for address, limit in target.limits(code):
            if address.startswith(f"{code}."):
                yield from _limit(address, limit)
    yield ""
    unlisted = target.every.unlisted
    yield f"any other operator: no ({unlisted.confidence}: {unlisted.source})"
    yield ""
    yield "sources"
    yield from (f"  {key}: {text}" for key, text in target.sources.items())


def _head(code: str, rule: OperatorRule) -> str:
    since = f", from {rule.since}" if rule.since else ""
    until = f", before {rule.until}" if rule.until else ""
    return f"{code}: {rule.support}{since}{until} ({rule.confidence}: {rule.source})"


def _limit(address: str, limit: Limit) -> Iterator[str]:
    yield f"  {address}: {limit} ({limit.confidence}: {limit.source})"
    if limit.note:
        yield f"    note: {limit.note}"

