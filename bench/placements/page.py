"""docs/placements.md from docs/data/placements.json, for docs/generate.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

SAVED = Path(__file__).resolve().parents[2] / "docs" / "data" / "placements.json"
TARGETS = ("imx95", "rk3588", "ethos-u85")

Row = dict[str, Any]

HEAD = """# Placements

What the planner makes of {graphs} graphs of real networks: the plan that it would carry out by
itself when any number of segments is allowed. Planned by `python -m bench.placements --models DIR
--trained DIR --save`; this page is written from docs/data/placements.json by `make docs`; do not
edit.

- MACs: share of the multiply-accumulates in NPU segments.
- segments: in their order. A further segment must save 3 % of the time.
- kB: bytes of the tensors that pass between segments, each once.
- ms: estimated, not measured ([latency.md](latency.md) says how far off that may be); then all on
  the CPU of that target. The rk3588 has four Cortex-A76 at work, the others one Cortex-A55.

Rules are trusted as by default (`--trust proxy`).
"""


def page() -> str:
    """The whole page in Markdown."""
    rows: list[Row] = json.loads(SAVED.read_text())
    names = sorted({row["name"] for row in rows})
    lines = [HEAD.format(graphs=len(names)), *_summary(rows), ""]
    for target in TARGETS:
        lines += [f"## {target}", "", "| graph | MACs | segments | kB | ms | all CPU, ms |"]
        lines += ["|---|---|---|---|---|---|", *_table(rows, target), ""]
    return "\n".join(lines)


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    yield "| target | planned | refused or given up | NPU takes 90 % of the MACs | median gain |"
    yield "|---|---|---|---|---|"
    for target in TARGETS:
        mine = [row for row in rows if row["target"] in (target, "")]
        done = [row for row in mine if row["status"] == "done"]
        most = sum(row["npu_macs"] >= 0.9 for row in done)
        gain = median(row["cpu_ms"] / row["ms"] for row in done) if done else 0.0
        yield f"| {target} | {len(done)} | {len(mine) - len(done)} | {most} | {gain:.1f} times |"


def _table(rows: Sequence[Row], target: str) -> Iterator[str]:
    for row in sorted(rows, key=lambda one: str(one["name"])):
        if row["target"] in (target, ""):
            yield f"| {row['name']} | {' | '.join(cells(row))} |"


def cells(row: Row) -> tuple[str, ...]:
    """MACs, segments, kB, ms, ms all on the CPU; what stopped it where it was not planned."""
    if row["status"] != "done":
        why = " ".join(str(row["reason"]).split())[:100].replace("|", "/")
        return f"{row['status']}: {why}", "", "", "", ""
    return (
        f"{100 * row['npu_macs']:.1f} %",
        _segments(row["segments"]),
        f"{row['boundary'] / 1000:.1f}",
        f"{row['ms']:.3g}",
        f"{row['cpu_ms']:.3g}",
    )


def _segments(text: str) -> str:
    """In a table a bar ends the cell."""
    return text.replace(" | ", ", ")
