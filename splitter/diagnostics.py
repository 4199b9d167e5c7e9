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
class Cause:
    """An operator that has no TFLite form: the nodes of the file it stands for, and why.

    runs: whether ONNX Runtime has such an operator.
    """

    op: str
    nodes: tuple[str, ...]
    why: str
    runs: bool = True


ENDLESS = "ends when the data says so"
"""In the reason against a Loop whose turns a bound would help to write out."""
TRIPS = (
    "--max-trips K writes a Loop out for at most K turns, and refuses inputs that need more "
    "(--calibration FILE.npz finds K); "
)

SUGGESTED = 16
"""Values to end a model at, at most; more are no help."""

SHOWN, WIDTH = 3, 72
"""Nodes and reasons of one kind of operator that a message spells out, and letters of a name."""


class Unsupported(SplitterError):
    """Operators that no TFLite operator can do; all of them in `causes`, and what helps.

    ends: values at which the model could end before them, if they are known and few. trips: what
    helps with a Loop among them, "" without one.
    """

    def __init__(self, causes: Sequence[Cause], *, ends: Sequence[str] = ()) -> None:
        self.causes = tuple(causes)
        count = len(self.causes)
        what = f"{count} operators have" if count > 1 else "1 operator has"
        self.trips = TRIPS if any(ENDLESS in cause.why for cause in self.causes) else ""
        super().__init__(
            f"{what} no TFLite form:\n  " + "\n  ".join(_listed(self.causes)),
            hint=self.trips + _way_out(self.causes, ends),
        )


def _way_out(causes: Sequence[Cause], ends: Sequence[str]) -> str:
    values = ",".join(ends) if 0 < len(ends) <= SUGGESTED else "VALUE,..."
    ending = f"--outputs {values} ends the model before them, and your own code does the rest"
    unknown = sorted({cause.op for cause in causes if not cause.runs})
    if unknown:
        return (
            f"export the model again so that {', '.join(unknown)} is written out of ONNX's own "
            f"operators, as no runtime for ONNX has it; or {ending}"
        )
    return f"--cpu-runtime onnxruntime runs them, and what follows, in ONNX Runtime; or {ending}"


def _listed(causes: Sequence[Cause]) -> list[str]:
    """ "NonZero a, b, c and 4 more: why", equal reasons together, a few for each operator."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for cause in causes:
        nodes = " + ".join(map(_short, cause.nodes))
        kinds.setdefault(cause.op, {}).setdefault(cause.why, []).append(nodes)
    lines = [
        f"{op} {several(names, most=SHOWN)}: {why}"
        for op, reasons in kinds.items()
        for why, names in list(reasons.items())[:SHOWN]
    ]
    for op, reasons in kinds.items():
        rest = list(reasons.values())[SHOWN:]
        if rest:
            lines.append(f"{op}, {sum(map(len, rest))} more, for {len(rest)} more reasons")
    cut = any(len(v) > SHOWN + 1 for r in kinds.values() for v in r.values())
    if cut or any(len(reasons) > SHOWN for reasons in kinds.values()):
        lines.append("(--json names every node with its reason)")
    return lines


def several(names: Sequence[str], *, most: int) -> str:
    """ "a, b, c and 4 more"; one more than `most` is told too, as the count would be as long."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _short(name: str) -> str:
    """The beginning and the end of a long name (TensorFlow's name all that went into a node)."""
    half = WIDTH // 2 - 2
    return name if len(name) <= WIDTH else f"{name[:half]}...{name[-half:]}"


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
