"""What the tool tells people: errors that the user must act on, and reasons for placements.

This module imports nothing of ours. `SplitterError` is raised anywhere, caught once, in the CLI.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class SplitterError(Exception):
    """Something the user must change.

    what:  one sentence, what is wrong.
    where: the file, node, tensor, rule or option it is about ("" when it is the whole call).
    hint:  what to do about it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.what}{hint}"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator is not on the NPU, as data. `rule` is the rule's address in its file.

    limit and actual are printable values ("1 to 3", "4"); source and confidence come from the rule.
    """

    rule: str
    limit: str
    actual: str
    source: str
    confidence: str
    file: str

    def __str__(self) -> str:
        return (
            f"{self.rule} is {self.actual}; the target takes {self.limit} "
            f"({self.file}, {self.confidence}: {self.source})"
        )


def nearest(name: str, known: Iterable[str], *, count: int = 3) -> str:
    """ "did you mean a, b or c?" for an unknown name; lists all names when few."""
    names: Sequence[str] = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=count, cutoff=0.4)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    if len(names) <= 30:
        return "valid: " + ", ".join(names)
    return f"there are {len(names)} names, none of them close"
