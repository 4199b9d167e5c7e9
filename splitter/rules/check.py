"""One operator against the rules of a target, whatever dialect the rules speak.

Decides what counts as broken. Facts are read by the caller: TFLite's in `support`, ONNX' in
`dialect`; a fact that reads None cannot be known yet and breaks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from splitter.diagnostics import Reason
from splitter.rules.schema import Condition, Limit, Target, in_versions, trusted

Read = Callable[[str], object]
"""The value of a fact by name, None when it cannot be known yet."""


LISTED = "the operators of its rule file"
"""The limit of a reason that says only that an operator is not listed."""


def broken_rules(code: str, target: Target, trust: str, read: Read) -> Iterator[Reason]:
    """All reasons against an operator of this code, none when the target takes it."""
    yield from not_supported(code, target, trust)
    for address, limit in target.limits(code):
        if all(holds(condition, read) for condition in limit.when) and not holds(limit, read):
            yield _reason(target, address, limit, read(limit.fact))


def holds(condition: Condition, read: Read) -> bool:
    value = read(condition.fact)
    return value is None or condition.holds(value)


def not_supported(code: str, target: Target, trust: str) -> Iterator[Reason]:
    """Reasons of the operator itself: not listed, not taken, not trusted, not in this version."""
    rule = target.operators.get(code)
    if rule is None:
        unlisted = target.every.unlisted
        yield Reason(
            rule=code,
            limit=LISTED,
            actual="not listed",
            source=target.source_text(unlisted.source),
            confidence=unlisted.confidence,
            file=target.file,
        )
        return
    claims = (
        (rule.support == "yes", "support", "yes", rule.support),
        (trusted(rule.confidence, trust), "confidence", f"{trust} or better", rule.confidence),
        (
            in_versions(target.version, since=rule.since, until=rule.until),
            "since" if rule.since else "until",
            f"{target.tool.name} from {rule.since or 'the first'} to {rule.until or 'today'}",
            target.version,
        ),
    )
    for fulfilled, key, limit, actual in claims:
        if not fulfilled and (key != "confidence" or rule.support == "yes"):
            yield Reason(
                rule=f"{code}.{key}",
                limit=limit,
                actual=actual,
                source=target.source_text(rule.source),
                confidence=rule.confidence,
                file=target.file,
            )


def _reason(target: Target, address: str, limit: Limit, value: object) -> Reason:
    return Reason(
        rule=address,
        limit=str(limit),
        actual=printed(value),
        source=target.source_text(limit.source),
        confidence=limit.confidence,
        file=target.file,
    )


def printed(value: object) -> str:
    """A fact's value for people."""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
