"""Mistakes of meaning in a rule file: what its tables name, and values that cannot be.

Decides what is a mistake beyond keys and types, which `schema`'s models see. All of them are
told, each with its place and the valid names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from splitter.diagnostics import nearest
from splitter.ops import OPS
from splitter.rules.dialect import facts as onnx_facts
from splitter.rules.schema import version_key
from splitter.specimens import BUILDERS, UNARY, specimen
from splitter.tflite.codes import CODES
from splitter.tflite.facts import facts, family
from splitter.tflite.view import UNKNOWN

CPU_CLASSES = (
    *("convolution", "depthwise", "matrix", "elementwise", "lookup", "softmax"),
    *("reduce", "pool", "resize", "copy", "transpose", "gather", "sort"),
)
NPU_CLASSES = (*CPU_CLASSES, "product", "prelu")

DTYPES = ("dtypes", "weights_dtype", "bias_dtype")
TYPES = (
    *("bool", "float16", "float32", "int4", "int8", "int16", "int32", "int64", "none", "uint8"),
    *("uint16", "uint32"),
)
"""Facts that are types, and the types there are; "none": there is no such input."""

DIVISORS = (
    *("peak", "channel_step", "efficiency", "depthwise_efficiency", "memory", "elements"),
    *("transfer", "cores"),
)
"""Figures that others are divided by."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What rules of a dialect may name: operators, and facts by operator ("" for any)."""

    name: str
    codes: Callable[[], Collection[str]]
    facts: Callable[[str], Collection[str]]


DIALECTS: Mapping[str, Dialect] = {
    "tflite": Dialect("TFLite", lambda: CODES, family),
    "onnx": Dialect("ONNX", onnx_facts.known_operators, onnx_facts.family),
}


def mistakes(raw: Mapping[str, Any]) -> Iterator[str]:
    """Of names: operators, facts, sources, versions, units, lowerings, kernel classes; of values:
    empty ranges and lists, kinds that a fact never has, commands without files, figures below 0."""
    dialect = DIALECTS.get(str(raw.get("dialect")))
    if dialect is not None:
        yield from _operators(raw, dialect)
    yield from _preferred(_table(raw, "preferred"))
    yield from _sources(raw, "")
    yield from _versions(raw)
    yield from _command(_table(raw, "tool"))
    yield from _figures(_table(raw, "latency"), "latency")
    most = raw.get("max_segments")
    if isinstance(most, int) and most < 1:
        yield f"max_segments: {most}; leave it out for any number"
    classes = _table(_table(_table(raw, "latency"), "cpu"), "classes")
    for name in CPU_CLASSES:
        if name not in classes:
            yield f"latency.cpu.classes: {name} is missing"
    for name in classes:
        if name not in CPU_CLASSES:
            yield f"latency.cpu.classes.{name}: unknown class; {nearest(name, CPU_CLASSES)}"
    for name in _table(_table(raw, "latency"), "npu_classes"):
        if name not in NPU_CLASSES:
            yield f"latency.npu_classes.{name}: unknown class; {nearest(name, NPU_CLASSES)}"


def _operators(raw: Mapping[str, Any], dialect: Dialect) -> Iterator[str]:
    for index, limit in enumerate(_list(_table(raw, "every"), "limits")):
        yield from _limit(f"every.limits.{index}", limit, dialect, "")
    taken = []
    for code, rule in _table(raw, "operators").items():
        if code not in dialect.codes():
            near = nearest(code, dialect.codes())
            yield f"operators.{code}: no such {dialect.name} operator; {near}"
            continue
        taken += [code] if isinstance(rule, Mapping) and rule.get("support") == "yes" else []
        for index, limit in enumerate(_list(rule, "limits")):
            yield from _limit(f"operators.{code}.limits.{index}", limit, dialect, code)
    if taken and not _table(_table(raw, "latency"), "npu"):
        yield f"latency.npu: missing, and the NPU takes {taken[0]}; times need its figures"


def _limit(place: str, limit: Any, dialect: Dialect, code: str) -> Iterator[str]:
    if not isinstance(limit, Mapping):
        return
    known = dialect.facts(code)
    for part in (limit, *_list(limit, "when")):
        fact = part.get("fact") if isinstance(part, Mapping) else None
        if not isinstance(fact, str):
            continue
        if fact not in known:
            yield f"{place}: no fact {fact!r}; {nearest(fact, known)}"
        elif dialect.name == "TFLite":
            yield from _kinds(place, part, fact, code)
        yield from _values(f"{place}: {fact}", part)


def _values(place: str, part: Mapping[str, Any]) -> Iterator[str]:
    """Conditions that nothing or anything satisfies."""
    if not any(key in part for key in ("min", "max", "equals", "in", "multiple_of")):
        yield f"{place} is given no value; use min, max, equals, in or multiple_of"
    low, high, step = (part.get(key) for key in ("min", "max", "multiple_of"))
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        yield f"{place} has min {low} over max {high}"
    if part.get("in") == []:
        yield f"{place} has an empty list of values"
    if isinstance(step, int) and step < 1:
        yield f"{place} cannot be a multiple of {step}"


def _kinds(place: str, part: Mapping[str, Any], fact: str, code: str) -> Iterator[str]:
    """Values of another kind than the fact has: "true" for true, "4" for 4."""
    kind = _kind(code, fact)
    given = [part[key] for key in ("equals", "min", "max") if key in part]
    given += part["in"] if isinstance(part.get("in"), list) else []
    for value in given if kind else ():
        if _word(value) != kind:
            yield f"{place}: {fact} is {kind}, not {value!r}"
        elif fact in DTYPES and value not in TYPES:
            yield f"{place}: {fact}: no type {value!r}; {nearest(str(value), TYPES)}"


@cache
def _kind(code: str, fact: str) -> str:
    """What kind of value a fact has, by a plain operator; "" where that does not tell."""
    code = code or "ADD"
    if code not in (*BUILDERS, *UNARY):
        return ""
    graph = specimen(code, {})
    value = facts(graph, graph.operators[0]).get(fact)
    first = value[0] if isinstance(value, tuple) and value else value
    return "" if first in (None, UNKNOWN, ()) else _word(first)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a word"


def _preferred(preferred: Mapping[str, Any]) -> Iterator[str]:
    for unit, names in preferred.items():
        if unit not in OPS:
            yield f"preferred.{unit}: no such unit; {nearest(unit, OPS)}"
            continue
        known = [lowering.name for lowering in OPS[unit].lowerings]
        for name in names if isinstance(names, list) else ():
            if name not in known:
                yield f"preferred.{unit}: no lowering {name!r}; {nearest(str(name), known)}"


def _sources(node: Any, place: str, known: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Every `source` names keys of [sources]."""
    known = _table(node, "sources") if known is None else known
    children = node.items() if isinstance(node, Mapping) else enumerate(node)
    for key, child in children:
        here = f"{place}.{key}" if place else str(key)
        if key == "source" and isinstance(child, str):
            for name in (part.strip() for part in child.split(",")):
                if name not in known:
                    yield f"{here}: no source {name!r} in [sources]; {nearest(name, known)}"
        elif isinstance(child, Mapping | list) and here != "sources":
            yield from _sources(child, here, known)


def _versions(raw: Mapping[str, Any]) -> Iterator[str]:
    tool = _table(raw, "tool")
    known = [str(version) for version in _list(tool, "versions")]
    assumed = tool.get("assumed", "")
    if assumed and assumed not in known:
        near = nearest(str(assumed), known)
        yield f"tool.assumed: {assumed!r} is not among tool.versions; {near}"
    for code, rule in {"every": _table(raw, "every"), **_table(raw, "operators")}.items():
        place = code if code == "every" else f"operators.{code}"
        limits = {f"{place}.limits.{i}": one for i, one in enumerate(_list(rule, "limits"))}
        for where, one in {place: rule, **limits}.items():
            yield from _span(where, one, known)


def _span(place: str, rule: Any, known: Collection[str]) -> Iterator[str]:
    """since and until are versions of the tool, and in this order."""
    given = {
        key: str(rule[key])
        for key in ("since", "until")
        if isinstance(rule, Mapping) and rule.get(key)
    }
    for key, version in given.items():
        if version not in known:
            near = nearest(version, known)
            yield f"{place}.{key}: {version!r} is not among tool.versions; {near}"
    if len(given) == 2 and version_key(given["since"]) >= version_key(given["until"]):
        yield f"{place}: since {given['since']} is not before until {given['until']}"


def _command(tool: Mapping[str, Any]) -> Iterator[str]:
    command = tool.get("command")
    if not isinstance(command, str) or not command:
        return
    if "{input}" not in command:
        yield "tool.command: has no {input}"
    if not any(word in command for word in ("{output}", "{output_dir}")):
        yield "tool.command: has neither {output} nor {output_dir}"


def _figures(table: Mapping[str, Any], place: str) -> Iterator[str]:
    """Figures are never negative, and what others are divided by is not 0."""
    for key, child in table.items():
        if not isinstance(child, Mapping):
            continue
        value = child.get("value")
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield from _figures(child, f"{place}.{key}")
        elif value < 0 or (value == 0 and key in DIVISORS):
            least = "over 0" if key in DIVISORS else "at least 0"
            yield f"{place}.{key}.value: {value} must be {least}"


def _table(node: Any, key: str) -> Mapping[str, Any]:
    child = node.get(key) if isinstance(node, Mapping) else None
    return child if isinstance(child, Mapping) else {}


def _list(node: Any, key: str) -> list[Any]:
    child = node.get(key) if isinstance(node, Mapping) else None
    return child if isinstance(child, list) else []
