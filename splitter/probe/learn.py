"""Rules from a compiler's answers, and where they differ from the file.

Decides what an answer says of a rule: what the compiler does stands as `probed`; what could not be
tried stays as the file has it. A looser compiler widens a limit only as far as it was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from splitter.probe.ask import Asker
from splitter.probe.questions import GENERAL, Question, codes, of_common, of_limit
from splitter.probe.search import Search, search
from splitter.rules.schema import Limit, OperatorRule, Target, in_versions
from splitter.rules.support import check_lite

SOURCE = "PROBE"
"""Key of the source that stands for the compiler's answers."""


@dataclass(frozen=True, slots=True)
class Difference:
    """place: an operator or the address of a limit. file: what the rule file says there. compiler:
    what the compiler does. learned: what the learned file says instead. why: the compiler's own
    words, "" when it has none."""

    place: str
    file: str
    compiler: str
    learned: str
    why: str = ""


@dataclass(frozen=True)
class Learned:
    """target: with the learned rules. untried: limits that no specimen could show."""

    target: Target
    differences: tuple[Difference, ...]
    untried: tuple[str, ...]
    operators: int
    limits: int


@dataclass
class _Notes:
    differences: list[Difference] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    limits: int = 0


def learn(target: Target, asker: Asker, only: Sequence[str] = ()) -> Learned:
    """Ask about every operator and limit; `target` is read for the compiler's version.

    only: these operators; the others stay as the file has them.
    """
    notes = _Notes()
    every = tuple(sorted(only)) or codes(target)
    asker.ask(Question(code) for code in every)
    yes = [code for code in every if _listed(target, code)]
    asker.ask(
        question
        for code in yes
        for limit in _limits(target, code)
        for group in of_limit(code, limit)
        for question in group
    )
    new = [code for code in every if code not in yes and _taken(asker, Question(code))]
    asker.ask(question for code in new for question in of_common(code))
    borders = _borders(target, asker, yes)
    general = target.every.limits
    if GENERAL in yes:
        general = tuple(
            one
            for limit in general
            if _holds(target, limit)
            for one in _learned(
                target, asker, GENERAL, f"every.{limit.fact}", limit, borders, notes
            )
        )
    rules = {**target.operators, **{c: _rule(target, asker, c, borders, notes) for c in every}}
    learned = target.model_copy(
        update={
            "operators": {code: rule for code, rule in sorted(rules.items()) if rule is not None},
            "every": target.every.model_copy(update={"limits": general}),
        }
    )
    return Learned(
        target=learned,
        differences=tuple(notes.differences),
        untried=tuple(notes.untried),
        operators=sum(Question(code) in asker.answers for code in every),
        limits=notes.limits,
    )


def _listed(target: Target, code: str) -> bool:
    rule = target.operators.get(code)
    return (
        rule is not None
        and rule.support == "yes"
        and in_versions(target.version, since=rule.since, until=rule.until)
    )


def _holds(target: Target, limit: Limit) -> bool:
    return in_versions(target.version, since=limit.since, until=limit.until)


def _limits(target: Target, code: str) -> list[Limit]:
    """The operator's own limits at this version; those on every operator at the general one."""
    general = target.every.limits if code == GENERAL else ()
    return [*_own_limits(target, code), *(one for one in general if _holds(target, one))]


def _own_limits(target: Target, code: str) -> list[Limit]:
    return [limit for limit in target.operators[code].limits if _holds(target, limit)]


def _ours(target: Target, question: Question) -> bool:
    """Whether the file's rules take a specimen."""
    graph = question.build()
    return graph is not None and not check_lite(graph, target, trust="inferred")


def _rule(
    target: Target, asker: Asker, code: str, borders: dict[int, Search], notes: _Notes
) -> OperatorRule | None:
    """The learned rule; None for an operator that is neither in the file nor could be tried."""
    rule = target.operators.get(code)
    answer = asker.answers.get(Question(code))
    says: str = "not listed" if rule is None else rule.support
    if rule is not None and rule.support == "yes" and not _listed(target, code):
        says = f"not in {target.version}"
    if answer is None or answer.failed:
        words = "no plain specimen" if answer is None else f"the compiler fails: {answer.why}"
        notes.untried.append(f"{code}: {words}")
        return rule
    if says == "yes" and rule is not None:
        limits = [
            one
            for limit in _own_limits(target, code)
            for one in _learned(target, asker, code, f"{code}.{limit.fact}", limit, borders, notes)
        ]
        if answer.taken:
            return _probed(rule, "yes", limits)
        some = any(a.taken for q, a in asker.answers.items() if q.code == code)
        support = "yes" if some else "no"
        refused = "refused in its plain form"
        notes.differences.append(Difference(code, "yes", refused, support, answer.why))
        return _probed(rule, support, limits if some else [])
    if answer.taken:
        limits = list(_common(asker, code))
        within = ", ".join(f"{limit.fact} {limit}" for limit in limits) or "without limits"
        notes.differences.append(Difference(code, says, "taken", f"yes, {within}"))
        return _probed(rule, "yes", limits)
    if says == "unknown":
        notes.differences.append(Difference(code, says, "refused", "no", answer.why))
    return _probed(rule, "no", [])


def _probed(rule: OperatorRule | None, support: str, limits: Sequence[Limit]) -> OperatorRule:
    note = "" if rule is None else rule.note
    return OperatorRule.model_validate(
        {
            "support": support,
            "source": SOURCE,
            "confidence": "probed",
            "note": note,
            "limits": [limit.model_dump(by_alias=True) for limit in limits],
        }
    )


def _common(asker: Asker, code: str) -> Iterator[Limit]:
    """Limits of an operator of which the file has none: what was taken of what was tried."""
    facts: dict[str, list[tuple[Any, bool]]] = {}
    for question in of_common(code):
        answer = asker.answers.get(question)
        if answer is not None and not answer.failed:
            facts.setdefault(question.fact, []).append((question.value, answer.taken))
    for fact, tried in facts.items():
        taken = tuple(value for value, ok in tried if ok)
        if taken and (len(taken) < len(tried) or fact == "dtypes"):
            yield _sourced(Limit.model_validate({"fact": fact, "in": taken, **_BASIS}))


_BASIS = {"source": SOURCE, "confidence": "probed"}


def _sourced(limit: Limit) -> Limit:
    return limit.model_copy(update={**_BASIS, "since": "", "until": ""})


def _borders(target: Target, asker: Asker, yes: Sequence[str]) -> dict[int, Search]:
    """Searches by the limit they are about, for maxima that the compiler does not keep."""
    found: dict[int, Search] = {}
    for code in yes:
        for limit in _limits(target, code):
            most = limit.max
            if most is None or not isinstance(most, int) or isinstance(most, bool):
                continue
            at, over = of_limit(code, limit)
            start = next((q for q in at if _taken(asker, q) is not None and q.value <= most), None)
            looser = any(_taken(asker, q) and q.value > most for q in over)
            tighter = [q for q in at if _taken(asker, q) is False and q.value > (limit.min or 0)]
            if start is None or not (looser or [q for q in tighter if _ours(target, q)]):
                continue
            found[id(limit)] = (
                Search(at[-1], start=most, low=most)
                if looser
                else Search(at[-1], start=most, high=most)
            )
    search(asker, list(found.values()))
    return found


def _taken(asker: Asker, question: Question) -> bool | None:
    answer = asker.answers.get(question)
    return None if answer is None or answer.failed else answer.taken


def _learned(
    target: Target,
    asker: Asker,
    code: str,
    address: str,
    limit: Limit,
    borders: dict[int, Search],
    notes: _Notes,
) -> Iterator[Limit]:
    """The limit as the compiler keeps it; none where it is no limit of the compiler's."""
    at, over = of_limit(code, limit)
    unknown = [_unknown(asker, group) for group in (at, over)]
    if any(unknown):
        notes.untried.append(
            f"{address}, {limit}: {'; '.join(dict.fromkeys(filter(None, unknown)))}"
        )
        yield limit
        return
    notes.limits += 1
    looser = [q for q in over if _taken(asker, q) and not _ours(target, q)]
    tighter = [q for q in at if _taken(asker, q) is False and _ours(target, q)]
    if not looser and not tighter:
        yield _sourced(limit)
        return
    accepted = [q.value for q in (*at, *over) if _taken(asker, q)]
    learned = _changed(limit, accepted, borders.get(id(limit)), looser=bool(looser))
    for question in (*looser, *tighter):
        answer = asker.answers[question]
        does = f"{question.value} {'taken' if answer.taken else 'refused'}"
        now = "no limit" if learned is None else str(learned)
        notes.differences.append(Difference(address, str(limit), does, now, answer.why))
    if learned is not None:
        yield learned


def _unknown(asker: Asker, group: Sequence[Question]) -> str:
    """Why none of these has an answer, "" where one has."""
    if any(_taken(asker, question) is not None for question in group):
        return ""
    failed = (asker.answers[q].why for q in group if q in asker.answers)
    return next((f"the compiler fails ({why})" for why in failed), "no specimen can show it")


def _changed(
    limit: Limit, accepted: Sequence[Any], border: Search | None, *, looser: bool
) -> Limit | None:
    """A limit that the compiler does not keep as it stands, as far as it was tried."""
    learned = _sourced(limit)
    if isinstance(limit.equals, bool) or limit.multiple_of is not None:
        return None if looser else limit
    if limit.equals is not None or limit.among is not None:
        values = tuple(dict.fromkeys(accepted))
        return learned.model_copy(update={"equals": None, "among": values}) if values else limit
    if border is not None and border.low:
        note = limit.note if border.high is not None else f"no limit met up to {border.low}"
        return learned.model_copy(update={"max": border.low, "note": note})
    if looser and limit.min is not None and limit.max is None:
        return learned.model_copy(update={"min": min(accepted)})
    return limit
