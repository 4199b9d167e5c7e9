"""What is kept of a run for docs/vela-agreement.md: docs/data/vela-agreement.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.agreement.fit import Row, our_ms
from splitter.rules.targets import load_target

SAVED = Path(__file__).resolve().parents[2] / "docs" / "data" / "vela-agreement.json"

KEPT = ("name", "kind", "target", "status", "reason", "operators", "compared", "on_cpu", "left_out")


def saved(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows without what only a fit needs; differences counted by operator and cause."""
    return [_saved(row) for row in sorted(rows, key=lambda one: (one["name"], one["target"]))]


def _saved(row: Row) -> dict[str, Any]:
    kept = {name: row.get(name) for name in KEPT}
    kept["reason"] = " ".join(str(row.get("reason") or "").split())[:160]
    if row["status"] != "done":
        return kept
    causes = Counter(
        (one["code"], one["ours"], " ".join((one["theirs_why"] or one["ours_why"]).split()))
        for one in row["differences"]
    )
    kept["differences"] = [[*cause, count] for cause, count in sorted(causes.items())]
    kept["our_ms"] = float(f"{our_ms(row, load_target(row['target'])):.4g}")
    kept["their_ms"] = float(f"{row['their_ms'] or 0.0:.4g}")
    return kept
