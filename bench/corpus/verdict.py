"""What a graph's row amounts to: right, coarse, wrong, refused, crashed or timeout.

Decides the limits. Leaves measuring to `measure` and `conditioning`.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

FLOAT_LIMIT = 1e-4
"""Relative RMS of the float file at an output, against ONNX Runtime."""

INTEGER_LIMIT = 0.05
"""Relative RMS of the integer file at an output, where no decisions are known of the model."""

AGREEING = 0.97
"""Share of decisions that the integer file must take as the float one does."""

AMPLIFIED = 4
"""Times the reference's own noise that a float error may be: rounding is random."""

FLIPPED = 0.01
"""Share of decisions, of those near ties, that may come out otherwise."""


def judged(row: Row) -> str:
    """right, coarse (float right, integers over the limit), wrong, or what became of it before."""
    if row["status"] != "done":
        return str(row["status"])
    if not converted(row) or row["split"] is False or row["floats"]:
        return "wrong"
    decided = list(row["decisions"].values())
    if decided:
        return "right" if all(agree >= AGREEING * total for agree, total in decided) else "coarse"
    fine = all(error <= INTEGER_LIMIT for error in row["integer_error"].values())
    return "right" if fine else "coarse"


def converted(row: Row) -> bool:
    """Whether the float error is within the limit, or not the conversion's."""
    for name, error in row["float_error"].items():
        forced = row["forced_error"].get(name, error)
        if min(error, forced) > max(FLOAT_LIMIT, AMPLIFIED * row["noise"].get(name, 0.0)):
            return False
    differ, total = row["flips"]
    return bool(differ <= FLIPPED * total)


def largest(row: Row, key: str) -> float:
    """The largest error of any output; NaN where none was measured."""
    return float(max(row[key].values(), default=float("nan")))
