"""Generated: every limit of every rule file about ONNX, tried at the limit and one beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from splitter.probe.trials import within
from splitter.rules.check import broken_rules
from splitter.rules.dialect.facts import fact, facts
from splitter.rules.dialect.view import NodeView
from splitter.rules.schema import Condition, Limit, Target
from splitter.rules.targets import load_target, targets
from tests.rules.dialect.specimens import specimen

OTHERS: dict[str, tuple[Any, ...]] = {
    "dtypes": ("int8",),
    "broadcast": ("1c11", "b111", "1chw"),
    "kernel_stride": ("3x3s4", "5x5s4", "9x9s1"),
    "permutation": ("[3, 2, 1, 0]", "[0, 2, 1, 3]"),
    "axes_from_end": ("[-1]",),
    "mode": ("cubic", "edge"),
    "coordinates": ("tf_crop_and_resize",),
    "nearest_mode": ("ceil",),
    "padding_mode": ("border",),
    "auto_pad": ("SAME_UPPER",),
    "factor_h": (1.5, 9, 3),
    "factor_w": (1.5, 9, 3),
    "stride_h": (3,),
    "stride_w": (3,),
    "axis": (2,),
    "axis_from_end": (-4, -1),
    "exponent": (5,),
}
"""Values to try beyond a list or an equality."""


@dataclass(frozen=True)
class Case:
    target: Target
    op: str
    address: str
    limit: Limit

    def __str__(self) -> str:
        when = "".join(f" when {one.fact}={one.equals}" for one in self.limit.when)
        return f"{self.target.name} {self.address}{when}"


def cases() -> Iterator[Case]:
    for name in targets():
        target = load_target(name)
        if target.dialect != "onnx":
            continue
        for op, rule in target.operators.items():
            for address, limit in target.limits(op) if rule.support == "yes" else ():
                if not address.startswith("every.") or op == "Relu":
                    yield Case(target, op, address, limit)


def beyond(condition: Condition) -> list[Any]:
    if isinstance(condition.equals, bool):
        return [not condition.equals]
    values: list[Any] = [] if condition.max is None else [condition.max + 1]
    if condition.min is not None:
        values.append(0.0 if condition.min < 1 else condition.min - 1)
    values += [] if condition.multiple_of is None else [condition.multiple_of + 1]
    if condition.equals is not None or condition.among is not None:
        plain = condition.equals if isinstance(condition.equals, int) else 0
        others = OTHERS.get(condition.fact) or (plain + 1,)
        values += [value for value in others if not condition.holds(value)][:2]
    return values


def seen(case: Case, value: Any) -> tuple[list[str], NodeView]:
    want = {one.fact: within(one)[0] for one in case.limit.when} | {case.limit.fact: value}
    view = specimen(case.op, want)
    found = facts(view, case.op)[case.limit.fact]
    assert value in (found if isinstance(found, tuple) else (found,)), (want, found)
    checked = broken_rules(case.op, case.target, "inferred", partial(fact, view, case.op))
    return [reason.rule for reason in checked], view


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_limit_takes_its_own_values_and_refuses_the_next(case: Case) -> None:
    assert within(case.limit)
    assert beyond(case.limit)
    for value in within(case.limit):
        rules, view = seen(case, value)
        same = [limit for address, limit in case.target.limits(case.op) if address == case.address]
        narrower = not all(
            limit.holds(value)
            for limit in same
            if all(c.holds(fact(view, case.op, c.fact)) for c in limit.when)
        )
        assert narrower or case.address not in rules
    for value in beyond(case.limit):
        assert case.address in seen(case, value)[0]


ONNX = [name for name in targets() if load_target(name).dialect == "onnx"]


@pytest.mark.parametrize("name", ONNX)
def test_every_limit_of_a_file_is_among_those_tried(name: str) -> None:
    target = load_target(name)
    tried = [
        ("every" if case.address.startswith("every.") else case.op, case.limit)
        for case in cases()
        if case.target.name == name
    ]
    written = [
        (op, limit)
        for op, rule in [("every", target.every), *target.operators.items()]
        for limit in rule.limits
    ]
    assert [(op, str(limit)) for op, limit in written if (op, limit) not in tried] == []


@pytest.mark.parametrize("name", ONNX)
def test_a_plain_operator_that_is_listed_is_taken(name: str) -> None:
    target = load_target(name)
    for op, rule in target.operators.items():
        view = specimen(op, {})
        refused = list(broken_rules(op, target, "inferred", partial(fact, view, op)))
        assert bool(refused) == (rule.support != "yes"), (op, refused)
