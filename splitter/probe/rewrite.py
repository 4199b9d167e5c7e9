"""A target as the text of a rule file. Decides the form, nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from splitter.rules.schema import Target

LEFT_OUT = {"file", "sha256"}
"""What a file does not say of itself."""


def rule_file(target: Target, *, heading: Sequence[str] = ()) -> str:
    """TOML that reads back as the same target; `heading` becomes comments at the top."""
    data = target.model_dump(by_alias=True, exclude_defaults=True, exclude=LEFT_OUT)
    lines = [f"# {line}".rstrip() for line in heading]
    lines += [""] if lines else []
    plain = {key: value for key, value in data.items() if not _is_table(value)}
    lines += [f"{key} = {_inline(value)}" for key, value in plain.items()]
    for key, value in data.items():
        if key not in plain:
            lines += list(_table(key, value))
    return "\n".join([*lines, ""])


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)
    )


def _table(name: str, value: Any) -> Iterator[str]:
    """A table with its own tables under it, or an array of tables."""
    if not isinstance(value, Mapping):
        for one in value:
            yield ""
            yield f"[[{name}]]"
            yield from (f"{key} = {_inline(part)}" for key, part in one.items())
        return
    below = {key: part for key, part in value.items() if _has_header(key, part)}
    own = {key: part for key, part in value.items() if key not in below}
    if own or not below:
        yield ""
        yield f"[{name}]"
        for key, part in own.items():
            yield from _entry(key, part)
    for key, part in below.items():
        yield from _table(f"{name}.{_key(key)}", part)


def _has_header(key: str, part: Any) -> bool:
    if key == "limits":
        return False
    return _is_table(part) and not _is_figure(part)


def _is_figure(part: Any) -> bool:
    """A small table that stands on one line: a figure, a source."""
    return (
        isinstance(part, Mapping)
        and not any(_is_table(one) for one in part.values())
        and ("source" in part and "support" not in part)
    )


def _entry(key: str, part: Any) -> Iterator[str]:
    if key != "limits":
        yield f"{_key(key)} = {_inline(part)}"
        return
    yield "limits = ["
    yield from (f"  {_inline(limit)}," for limit in part)
    yield "]"


def _key(key: str) -> str:
    bare = key.replace("_", "").replace("-", "").isalnum() and key.isascii()
    return key if bare else json.dumps(key)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        kept = {key: part for key, part in value.items() if part is not None}
        return "{ " + ", ".join(f"{_key(k)} = {_inline(part)}" for k, part in kept.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_inline(part) for part in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
