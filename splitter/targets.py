"""Find and read rule files. Decides whether a file is right; every mistake is told at once.

What the rules mean is `rulefile`'s matter, what they do to an operator `support`'s.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from splitter.diagnostics import SplitterError, nearest
from splitter.dialect import facts as onnx_facts
from splitter.ops import OPS
from splitter.rulefile import Condition, Target
from splitter.tflite.codes import CODES
from splitter.tflite.facts import family

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PACKAGE = Path(__file__).parent
_FOLDERS = (_PACKAGE / "_rules", _PACKAGE.parent / "rules")
"""In an installed wheel, and in a checkout."""

CPU_CLASSES = (
    *("convolution", "depthwise", "matrix", "elementwise", "lookup", "softmax"),
    *("reduce", "pool", "resize", "copy", "transpose", "gather", "sort"),
)
NPU_CLASSES = (*CPU_CLASSES, "product")


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


def targets() -> tuple[str, ...]:
    """Names of the rule files that come with the tool."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load_target(name_or_path: str) -> Target:
    """A target by name ("imx95"), by name and tool version ("imx95@3.0.1"), or by path of a file.

    Raises SplitterError for an unknown target or version, and for a wrong file (all mistakes).
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        return _read(path, shown=name_or_path)
    name, _, version = name_or_path.partition("@")
    if name not in targets():
        raise SplitterError(
            f"unknown target {name!r}; there are: {', '.join(targets())}",
            where="--target",
            hint=f"{nearest(name, targets())}; your own rule file is given by its path (.toml)",
        )
    target = _read(_folder() / f"{name}.toml", shown=f"rules/{name}.toml")
    if not version:
        return target
    if version not in target.tool.versions:
        raise SplitterError(
            f"{name} has no rules for {target.tool.name} {version!r}",
            where="--target",
            hint="versions: " + ", ".join(target.tool.versions),
        )
    return target.at(version)


def _folder() -> Path:
    return next(folder for folder in _FOLDERS if folder.is_dir())


def rule_file(target: Target) -> Path:
    """The file that a target was read from."""
    shown = Path(target.file)
    shipped = _folder() / shown.name
    data = shipped.read_bytes() if shipped.is_file() else b""
    return shipped if hashlib.sha256(data).hexdigest() == target.sha256 else shown


def _read(path: Path, *, shown: str) -> Target:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SplitterError(f"cannot read it: {error.strerror}", where=shown) from error
    return read_target(data, shown=shown)


def read_target(data: bytes, *, shown: str) -> Target:
    """A target from the bytes of a rule file. Raises SplitterError with every mistake in it."""
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SplitterError(f"not a TOML file: {error}", where=shown) from error
    raw["file"] = shown
    raw["sha256"] = hashlib.sha256(data).hexdigest()
    mistakes = list(_meaning(raw))
    try:
        target = Target.model_validate(raw)
    except ValidationError as error:
        mistakes = [*_structure(error), *mistakes]
    if mistakes:
        lines = "".join(f"\n  - {mistake}" for mistake in dict.fromkeys(mistakes))
        raise SplitterError(
            f"{len(mistakes)} mistake(s) in the rule file:{lines}",
            where=shown,
            hint="docs/adding-a-target.md describes every key",
        )
    return target


def _structure(error: ValidationError) -> Iterator[str]:
    """Mistakes of keys and types; a misspelt key comes with the valid ones."""
    for item in error.errors():
        place = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            *above, key = item["loc"]
            yield f"{place}: unknown key; {nearest(str(key), _keys(above))}"
        else:
            yield f"{place}: {item['msg'].lower()}"


def _keys(location: list[Any]) -> list[str]:
    """Valid keys of the table at a location of a rule file."""
    model: type[BaseModel] = Target
    for part in location:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is not None:
            model = next(_models(field.annotation), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _meaning(raw: Mapping[str, Any]) -> Iterator[str]:
    """Mistakes of names: operators, facts, sources, versions, units, lowerings, kernel classes."""
    dialect = DIALECTS.get(str(raw.get("dialect")))
    if dialect is not None:
        yield from _operators(raw, dialect)
    yield from _preferred(_table(raw, "preferred"))
    yield from _sources(raw, "")
    yield from _versions(raw)
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
        yield from _limit(f"every.limits.{index}", limit, dialect.facts(""))
    taken = []
    for code, rule in _table(raw, "operators").items():
        if code not in dialect.codes():
            near = nearest(code, dialect.codes())
            yield f"operators.{code}: no such {dialect.name} operator; {near}"
            continue
        taken += [code] if isinstance(rule, Mapping) and rule.get("support") == "yes" else []
        for index, limit in enumerate(_list(rule, "limits")):
            yield from _limit(f"operators.{code}.limits.{index}", limit, dialect.facts(code))
    if taken and not _table(_table(raw, "latency"), "npu"):
        yield f"latency.npu: missing, and the NPU takes {taken[0]}; times need its figures"


def _limit(place: str, limit: Any, known: Collection[str]) -> Iterator[str]:
    if not isinstance(limit, Mapping):
        return
    for part in (limit, *_list(limit, "when")):
        fact = part.get("fact") if isinstance(part, Mapping) else None
        if not isinstance(fact, str):
            continue
        if fact not in known:
            yield f"{place}: no fact {fact!r}; {nearest(fact, known)}"
        if not any(key in part for key in ("min", "max", "equals", "in", "multiple_of")):
            yield f"{place}: {fact} is given no value; use min, max, equals, in or multiple_of"


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


def _table(node: Any, key: str) -> Mapping[str, Any]:
    child = node.get(key) if isinstance(node, Mapping) else None
    return child if isinstance(child, Mapping) else {}


def _list(node: Any, key: str) -> list[Any]:
    child = node.get(key) if isinstance(node, Mapping) else None
    return child if isinstance(child, list) else []


__all__ = ["CPU_CLASSES", "NPU_CLASSES", "Condition", "Target", "load_target", "targets"]
