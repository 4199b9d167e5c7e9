"""Find and read rule files. Decides whether a file is right; every mistake is told at once.

What the rules mean is `schema`'s matter, what they do to an operator `support`'s.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from splitter.diagnostics import SplitterError, nearest
from splitter.rules.mistakes import mistakes
from splitter.rules.schema import Condition, Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "_rules", _PACKAGE.parent / "rules")
"""In an installed wheel, and in a checkout."""


def targets() -> tuple[str, ...]:
    """Names of the rule files that come with the tool."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load_target(name_or_path: str) -> Target:
    """A target by name ("imx95") or by the path of a file ("./my_npu.toml"); with @VERSION behind
    it the rules are read for that version of the tool ("imx95@3.0.1").

    Raises SplitterError for an unknown target or version, and for a wrong file (all mistakes).
    """
    name, version = name_and_version(name_or_path)
    if name.endswith(".toml"):
        target = _read(Path(name), shown=name)
    elif name in targets():
        target = _read(_folder() / f"{name}.toml", shown=f"rules/{name}.toml")
    else:
        near = nearest(name, targets())
        all_of_them = f"valid: {', '.join(targets())}"
        raise SplitterError(
            f"unknown target {name!r}; {all_of_them}",
            where="--target",
            hint=f"{'' if near == all_of_them else f'{near} '}"
            "your own rule file is given by its path (.toml)",
        )
    if not version:
        return target
    if version not in target.tool.versions:
        raise SplitterError(
            f"{name} has no rules for {target.tool.name} {version!r}",
            where="--target",
            hint="versions: " + (", ".join(target.tool.versions) or "it names none"),
        )
    return target.at(version)


def name_and_version(text: str) -> tuple[str, str]:
    """("imx95", "3.0.1") of "imx95@3.0.1"; a path may have an @ in it."""
    name, _, version = text.rpartition("@")
    return (text, "") if not name or text.endswith(".toml") else (name, version)


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
        raise SplitterError(
            f"cannot read it: {error.strerror}",
            where=shown,
            hint="give the path of a rule file, or a name that `split targets` lists",
        ) from error
    return read_target(data, shown=shown)


def read_target(data: bytes, *, shown: str) -> Target:
    """A target from the bytes of a rule file. Raises SplitterError with every mistake in it."""
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SplitterError(f"not a TOML file: {error}", where=shown) from error
    raw["file"] = shown
    raw["sha256"] = hashlib.sha256(data).hexdigest()
    found = list(mistakes(raw))
    try:
        target = Target.model_validate(raw)
    except ValidationError as error:
        found = [*_structure(error), *found]
    if found:
        lines = "".join(f"\n  - {mistake}" for mistake in dict.fromkeys(found))
        raise SplitterError(
            f"{len(dict.fromkeys(found))} mistake(s) in the rule file:{lines}",
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
            given = item["input"]
            plain = isinstance(given, str | int | float) and item["type"] != "missing"
            yield f"{place}: {item['msg'].lower()}" + (f", not {given!r}" if plain else "")


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


__all__ = ["Condition", "Target", "load_target", "targets"]
