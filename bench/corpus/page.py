"""docs/corpus.md out of the recorded rows. Decides what the page says first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.corpus.recorded import Kept, Peer, load_peer, load_rows
from bench.corpus.table import cells, decided, number, peer_cells
from bench.corpus.verdict import FLOAT_LIMIT, INTEGER_LIMIT

HEAD = """# The corpus

What became of real graphs in the main job: {graphs} graphs as exporters wrote them, never
simplified. Recorded by `python -m bench.corpus --models DIR --trained DIR --zoo DIR --record
bench/corpus/results.json` ({first} to {last}, one thread, on a machine that others used too: times
are seconds of the processor), written by `make docs`; do not edit.

- right: the float file is within {float_limit:g} relative RMS of ONNX Runtime at every output, no
  float tensor is left in the integer files, the parts equal the whole bit for bit, and the integer
  file decides as float does (97 % of the decisions, where it is known what the model decides) or is
  within {integer_limit:g} at every output.
- coarse: the same, but the integers are further off. Most graphs have random weights in place of
  their own: they carry no redundancy, so this says little of the trained model.
- float error over the limit counts as right where the reference moves as much by itself (inputs
  moved by their last bit, or its graph optimized), or where nothing is left of it once every rank,
  comparison and rounding is the reference's own, and under 1 % of these came out otherwise.
- wrong: float error over the limit without that excuse. refused: no file, with the reason.
"""
TABLE = (
    "| graph | result | float | integer | NPU units | operators | s | MB | onnx2tf | float | s |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)


def corpus_page() -> str:
    """The whole page in Markdown; the same rows, the same bytes."""
    rows, peer = load_rows(), load_peer()
    dates = sorted(row.date for row in rows)
    lines = [
        HEAD.format(
            graphs=len({row.name for row in rows}), first=dates[0], last=dates[-1],
            float_limit=FLOAT_LIMIT, integer_limit=INTEGER_LIMIT,
        )
    ]  # fmt: skip
    for target in sorted({row.target for row in rows}, reverse=True):
        lines += [*_summary(target, [row for row in rows if row.target == target]), ""]
    lines += [*_peer_summary(rows, peer), "", *_refusals(rows), "", *_explained(rows), ""]
    for target in sorted({row.target for row in rows}, reverse=True):
        lines += [f"## Every graph, {target}", "", *TABLE]
        lines += [_line(row, peer) for row in rows if row.target == target]
        lines.append("")
    return "\n".join(lines)


def _summary(target: str, rows: Sequence[Kept]) -> list[str]:
    counts = Counter(row.status for row in rows)
    kinds = ", ".join(
        f"{counts[kind]} {kind}"
        for kind in ("right", "coarse", "wrong", "refused", "crashed", "timeout")
        if counts[kind]
    )
    made = [row for row in rows if row.operators]
    lines = [f"## {target}", "", f"{len(rows)} graphs: {kinds}."]
    if not made:
        return lines
    slow, large = max(made, key=lambda r: r.cpu_seconds), max(made, key=lambda r: r.megabytes)
    equal = sum(row.split is True for row in made)
    whole = sum(row.split is None for row in made)
    floats = sum(bool(row.floats) for row in made)
    worst = max(made, key=lambda r: r.float_error or 0.0)
    return [
        *lines,
        f"Of {len(made)} with files: parts equal the whole bit for bit in {equal}"
        f"{f', {whole} not compared' if whole else ''}; float tensors left in {floats}.",
        f"Largest float error: {number(worst.float_error)} ({worst.name}).",
        f"Slowest: {slow.name}, {slow.cpu_seconds:.0f} s of the processor. Largest: {large.name}, "
        f"{large.megabytes:,.0f} MB.",
    ]


def _peer_summary(rows: Sequence[Kept], peer: Peer) -> list[str]:
    names = {row.name for row in rows}
    found = Counter(row.status for name, row in peer.rows.items() if name in names)
    ran = sum(found.values()) - found["not run"]
    lines = ["## onnx2tf on the same graphs", ""]
    if not ran:
        return [*lines, "Not run."]
    kinds = ", ".join(
        f"{found[kind]} {kind}"
        for kind in ("right", "near", "wrong", "refused", "timeout")
        if found[kind]
    )
    about = peer.about
    return [
        *lines,
        f"{about['tool']}, float conversion alone: of {ran} graphs {kinds}; "
        f"{len(names) - ran} not run. Right is an error of at most 1e-4, near at most 1e-2.",
        f"`{about['command']}`; {about['compared']}. {about['date']}, {about['machine']}.",
    ]


def _refusals(rows: Sequence[Kept]) -> list[str]:
    lines = ["## Refused, crashed, too slow", ""]
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.status in ("refused", "crashed", "timeout"):
            key = row.name, row.status, " ".join(row.reason.split())
            found.setdefault(key, []).append(row.target)
    if not found:
        return [*lines, "None."]
    return lines + [
        f"- {name} ({', '.join(targets)}): {status}: {reason}"
        for (name, status, reason), targets in found.items()
    ]


def _explained(rows: Sequence[Kept]) -> list[str]:
    """Every float error over the limit, and what explains it."""
    over = [row for row in rows if (row.float_error or 0.0) > FLOAT_LIMIT]
    lines = [
        "## Float errors over the limit",
        "",
        "with decisions given: the error left when every rank, comparison and rounding is the "
        "reference's own; reference moves: by how much its own outputs do, by rounding.",
        "",
        "| graph | target | result | float | with decisions given | differ | reference moves |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {row.name} | {row.target} | {row.status} | {number(row.float_error)} | "
        f"{number(row.forced_error)} | {row.flips[0]:,} of {row.flips[1]:,} | "
        f"{number(row.noise)} |"
        for row in over
    ]


def _line(row: Kept, peer: Peer) -> str:
    shown = list(cells(row))
    shown[4] = decided(row) or shown[4]
    del shown[1]
    return "| " + " | ".join([*shown, *peer_cells(peer.rows.get(row.name))]) + " |"
