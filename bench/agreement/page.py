"""docs/vela-agreement.md from docs/data/vela-agreement.json, for docs/generate.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.agreement.fit import spearman
from bench.agreement.table import SAVED

Rows = Sequence[dict[str, Any]]

HEAD = """# Agreement with Vela

Our verdicts and estimated times for Ethos-U beside those of Arm's own compiler, Vela 5.2.0, on
{graphs} graphs: real networks (weights drawn), small trained models, and small graphs of single
faults. Measured by `python -m bench.agreement --models DIR --trained DIR --zoo DIR --save`, which
makes the integer files from the folders of ONNX files that you name; this page is written from
docs/data/vela-agreement.json by `make docs`; do not edit.

Each graph is an integer file, written with the lowerings that fit the target. Vela places every
operator of it on the NPU or leaves it to the CPU, and that is held against what the rule file says
of the finished file. Times are of the operators on the NPU, estimated by both (the figures of the
rule files were fitted to Vela's estimates: `--fit`); nothing here was measured on a board.
"""


def page() -> str:
    """The whole page in Markdown."""
    rows: Rows = json.loads(SAVED.read_text())
    targets = sorted({row["target"] for row in rows if row["target"]})
    lines = [HEAD.format(graphs=len({row["name"] for row in rows}))]
    for target in targets:
        lines += [f"## {target}", "", *(f"- {text}" for text in summary(rows, target)), ""]
    lines += ["## Graph by graph", "", *_table(rows, targets), ""]
    return "\n".join(lines)


def summary(rows: Rows, target: str) -> Iterator[str]:
    """Agreement, every kind of difference with its cause, and how the times rank."""
    mine = [row for row in rows if row["target"] == target]
    done = [row for row in mine if row["status"] == "done"]
    total = sum(row["compared"] for row in done)
    causes: Counter[tuple[str, bool, str]] = Counter()
    for row in done:
        for code, ours, why, count in row["differences"]:
            causes[code, ours, why] += count
    share = 1 - causes.total() / total if total else 0.0
    yield f"{share:.2%} of {total} operators equal, in {len(done)} of {len(mine)} graphs"
    for (code, ours, why), count in causes.most_common():
        side = "we take it, Vela does not" if ours else "Vela takes it, we do not"
        yield f"{count} {code}: {side}: {why or 'Vela gives no reason'}"
    left: Counter[str] = Counter()
    for row in done:
        left.update(row["left_out"])
    if left:
        listed = ", ".join(f"{count} {code}" for code, count in left.most_common())
        yield f"kept from Vela because it ends on them, and not compared: {listed}"
    timed = [row for row in done if row["kind"] != "zoo" and row["their_ms"]]
    if len(timed) > 2:
        ours, theirs = ([row[key] for row in timed] for key in ("our_ms", "their_ms"))
        error = float(np.median(np.abs(np.array(ours) / np.array(theirs) - 1)))
        rank = spearman(ours, theirs)
        yield f"times of {len(timed)} models: Spearman {rank:.3f}, median difference {error:.0%}"


def _table(rows: Rows, targets: Sequence[str]) -> Iterator[str]:
    """A line a graph: operators compared, on the CPU by Vela, differing; our ms / Vela's."""
    heads = "".join(f" {t}: operators, CPU, differ | ms, Vela's ms |" for t in targets)
    yield f"| graph |{heads}"
    yield "|---|" + "---|---|" * len(targets)
    found = {(row["name"], row["target"]): row for row in rows}
    for name in sorted({row["name"] for row in rows}):
        whole = found.get((name, ""))
        cells = [_cells(found.get((name, target)) or whole) for target in targets]
        yield f"| {name} | {' | '.join(cells)} |"


def _cells(row: dict[str, Any] | None) -> str:
    if row is None:
        return " | "
    if row["status"] != "done":
        return f"{row['status']}: {row['reason'][:60].replace('|', '/')} | "
    differ = sum(count for *_, count in row["differences"])
    left = sum(row["left_out"].values())
    counts = f"{row['compared']}, {row['on_cpu']}, {differ}" + (
        f" (without {left})" if left else ""
    )
    return f"{counts} | {row['our_ms']:.3g}, {row['their_ms']:.3g}"
