"""What `split calibrate` says: which figures changed, and how well the times are met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from splitter.refit.refit import Change, Refit

WORST = 8
"""Parts whose times are shown when there are more."""


def to_text(found: Refit, *, out: str) -> str:
    """For the terminal."""
    return "\n".join(_lines(found, out))


def to_json(found: Refit, *, out: str) -> dict[str, Any]:
    """For --json."""
    return {
        "target": found.target,
        "written": out,
        "changes": [asdict(one) for one in found.changes],
        "residuals": [asdict(one) for one in found.residuals],
        "median_error": {"before": found.error_before, "after": found.error_after},
        "untold": list(found.untold),
    }


def _lines(found: Refit, out: str) -> Iterator[str]:
    measured = [one for one in found.changes if one.measured]
    along = [one for one in found.changes if not one.measured]
    count = len(found.residuals)
    yield f"{found.target}: {count} measured time{'s' if count > 1 else ''}"
    yield ""
    yield f"{'milliseconds':50}{'measured':>10}{'before':>10}{'now':>10}"
    worst = sorted(found.residuals, key=lambda one: -abs(one.after / one.measured - 1))
    for one in worst[:WORST]:
        yield f"{one.label[-49:]:50}{one.measured:10.3f}{one.before:10.3f}{one.after:10.3f}"
    if len(worst) > WORST:
        yield f"... and {len(worst) - WORST} that are met better"
    yield f"median error: {found.error_before:.0%} before, {found.error_after:.0%} now"
    yield ""
    yield f"{'figure':36}{'before':>12}{'now':>12}  unit"
    yield from map(_change, measured)
    if along:
        yield "moved along, the times hardly tell them apart:"
        yield from map(_change, along)
    if found.untold:
        yield f"as before, in no measured part: {', '.join(found.untold)}"
    yield ""
    yield f"written: {out} (split MODEL.onnx --target {out})" if out else "-o FILE.toml writes it"


def _change(one: Change) -> str:
    spread = f" (+- {one.spread:.0%})" if one.measured else ""
    return f"{one.address:36}{one.old:12.4g}{one.new:12.4g}  {one.unit}{spread}"
