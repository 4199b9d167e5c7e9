"""The corpus table in the terminal: our row of each graph, onnx2tf's recorded one beside it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.corpus.recorded import Kept, Peer, PeerRow

COLUMNS = (
    "graph", "target", "result", "float", "integer", "NPU units", "operators", "s", "MB",
    "onnx2tf", "float", "s",
)  # fmt: skip

LONGEST = 400
"""Characters of a reason."""


def corpus_table(rows: Sequence[Kept], peer: Peer) -> Table:
    """A line a graph and target. s: seconds of the processor."""
    table = Table(title="The corpus: float and integer files against ONNX Runtime")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:3] else "right")
    for row in rows:
        table.add_row(*cells(row), *peer_cells(peer.rows.get(row.name)))
    return table


def cells(row: Kept) -> tuple[str, ...]:
    """Name, target, result, errors, units on the NPU, operators, seconds, megabytes."""
    if row.status in ("crashed", "timeout", "refused"):
        return row.name, row.target, row.status, number(row.float_error), "", "", "", "", ""
    return (
        row.name,
        row.target,
        row.status,
        number(row.float_error),
        decided(row) or number(row.integer_error),
        f"{row.on_npu} of {row.units}",
        f"{row.operators:,}",
        f"{row.cpu_seconds:.1f}",
        f"{row.megabytes:.0f}",
    )


def peer_cells(row: PeerRow | None) -> tuple[str, str, str]:
    """Result, error, seconds; "not run" where nothing is recorded."""
    if row is None or row.status == "not run":
        return "not run", "", ""
    return row.status, number(row.error), f"{row.seconds:.1f}"


def number(error: float | None) -> str:
    """Two digits; nothing where nothing was measured."""
    if error is None:
        return ""
    return f"{error:.1e}" if error < 1e-3 else f"{error:.3f}"


def decided(row: Kept) -> str:
    """How many decisions are as in float, by question."""
    return ", ".join(f"{name} {agree} of {total}" for name, (agree, total) in row.decisions.items())


def in_short(reason: str) -> str:
    """A reason on one line, its beginning where it lists hundreds of names."""
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST else line[:LONGEST].rpartition(" ")[0] + " ..."


def reasons(rows: Sequence[Kept]) -> list[str]:
    """One line for each graph and target without a file: where it ended, and why."""
    return [
        f"{row.name} ({row.target}): {row.status}"
        f"{f' in {row.stage}' if row.stage else ''}: {in_short(row.reason)}"
        for row in rows
        if row.status in ("refused", "crashed", "timeout")
    ]
