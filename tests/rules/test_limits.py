"""Generated: every limit of every rule file, tried at the limit and one beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from splitter.probe.trials import beyond, within
from splitter.rules.schema import Limit, Target, in_versions
from splitter.rules.support import check_lite
from splitter.rules.targets import load_target, targets
from splitter.specimens import specimen
from splitter.tflite.facts import facts

TFLITE = [name for name in targets() if load_target(name).dialect == "tflite"]
"""The others are in tests/dialect."""

OVERLAID = {
    ("imx95", "CONV_2D.kernel_h"),
    ("imx95", "CONV_2D.kernel_w"),
    ("imx95", "DEPTHWISE_CONV_2D.kernel_h"),
    ("imx95", "DEPTHWISE_CONV_2D.kernel_w"),
    ("imx95", "TRANSPOSE_CONV.kernel_h"),
    ("imx95", "TRANSPOSE_CONV.kernel_w"),
}
"""Limits that another one makes unreachable: 4096 * 16 channels is over a volume of 65535."""


GENERAL = "ADD"
"""The operator on which limits on every operator are tried."""


@dataclass(frozen=True)
class Case:
    target: Target
    code: str
    address: str
    limit: Limit

    def __str__(self) -> str:
        when = "".join(f" when {one.fact}" for one in self.limit.when)
        return f"{self.target.name}@{self.target.version} {self.code} {self.address}{when}"


def cases() -> Iterator[Case]:
    """Each limit once, at the newest of the tool's versions it holds for."""
    for name in TFLITE:
        target = load_target(name)
        seen = set()
        for version in reversed(target.tool.versions or ("",)):
            here = target.at(version)
            for code, rule in here.operators.items():
                known = in_versions(version, since=rule.since, until=rule.until)
                if rule.support != "yes" or not known:
                    continue
                for address, limit in here.limits(code):
                    if address.startswith("every.") and code != GENERAL:
                        continue
                    if (code, id(limit)) not in seen:
                        seen.add((code, id(limit)))
                        yield Case(here, code, address, limit)


def reasons(case: Case, value: Any) -> list[str]:
    want = {one.fact: within(one)[0] for one in case.limit.when} | {case.limit.fact: value}
    graph = specimen(case.code, want)
    found = facts(graph, graph.operators[0])[case.limit.fact]
    assert value in (found if isinstance(found, tuple) else (found,)), "the specimen is wrong"
    checked = check_lite(graph, case.target, trust="inferred")
    return [reason.rule for _, group in checked for reason in group]


def narrowed(case: Case, value: Any) -> bool:
    """Whether another limit on the same fact takes less."""
    others = [limit for _, limit in case.target.limits(case.code) if limit.fact == case.limit.fact]
    return not all(limit.holds(value) for limit in others if not limit.when)


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_limit_takes_its_own_values_and_refuses_the_next(case: Case) -> None:
    assert within(case.limit)
    assert beyond(case.limit)
    for value in within(case.limit):
        assert case.address not in reasons(case, value)
    for value in beyond(case.limit):
        assert case.address in reasons(case, value)


@pytest.mark.parametrize("name", TFLITE)
def test_every_limit_of_a_file_is_among_those_tried(name: str) -> None:
    target = load_target(name)
    tried = [
        ("every" if case.address.startswith("every.") else case.code, case.limit)
        for case in cases()
        if case.target.name == name
    ]
    written = [
        (code, limit)
        for code, rule in [("every", target.every), *target.operators.items()]
        for limit in rule.limits
    ]
    assert [(code, str(limit)) for code, limit in written if (code, limit) not in tried] == []


@pytest.mark.parametrize("name", TFLITE)
def test_an_operator_at_any_of_its_limits_is_taken(name: str) -> None:
    target = load_target(name)
    for case in cases():
        if case.target.name != name or case.target.version != target.tool.versions[-1]:
            continue
        if (name, case.address) not in OVERLAID:
            for value in within(case.limit):
                if not narrowed(case, value):
                    assert reasons(case, value) == [], f"{case} at {value}"


@pytest.mark.parametrize("name", TFLITE)
def test_a_plain_operator_that_is_listed_is_taken(name: str) -> None:
    target = load_target(name)
    for code, rule in target.operators.items():
        graph = specimen(code, {})
        refused = check_lite(graph, target, trust="inferred")
        known = in_versions(target.version, since=rule.since, until=rule.until)
        assert bool(refused) == (rule.support != "yes" or not known), code
