"""docs/corpus.md out of the recorded rows. Decides what the page says first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.corpus.recorded import Kept, Peer
from bench.corpus.table import cells, in_short, number, peer_cells
from bench.corpus.verdict import FLOAT_LIMIT, INTEGER_LIMIT

HEAD = """# The corpus

What became of {graphs} graphs in the main job: real networks as exporters wrote them, never
simplified ("models", random weights in place of their own), small models with their real weights
("trained"), and small graphs for faults that users report ("zoo"). Written by `make docs` from
bench/corpus/results.json; do not edit. Recorded {dates} by

    python -m bench.corpus --models DIR --trained DIR --zoo DIR --record bench/corpus/results.json

with one thread on a machine that others used too: times are seconds of the processor, for the job
alone; memory is the peak of the process, ONNX Runtime beside it included. Models are calibrated on
8 samples and verified on 2, large ones (over 60 MB) mostly on 2 and 1, trained ones on 24 and 24.
`make bench ARGS="--models DIR"` prints the table for a folder of yours.

- right: the float file is within {float_limit:g} relative RMS of ONNX Runtime at every output, no
  float tensor is left in the integer files, the parts equal the whole bit for bit, and the integer
  file decides as float does (97 % of the decisions, where it is known what the model decides) or is
  within {integer_limit:g} at every output.
- coarse: the same, but the integers are further off. Random weights carry no redundancy: for
  "models" this says little of the trained network.
- wrong: a float error over the limit that float32 does not explain, parts that differ, or a float
  tensor left. It is explained where the reference moves as much by itself (its inputs moved by
  their last bit, or its graph optimized), or where nothing is left of it once every rank,
  comparison and rounding is the reference's own and under 1 % of these came out otherwise.
- refused: no file, with the reason. What is not listed was not run.
"""
KINDS = ("models", "trained", "zoo")
STATUSES = ("right", "coarse", "wrong", "refused", "crashed", "timeout")
NO_FILE = ("refused", "crashed", "timeout")
SHOWN = 5


def corpus_page(rows: Sequence[Kept], peer: Peer) -> str:
    """The whole page in Markdown; the same rows, the same bytes."""
    dates = sorted({row.date for row in rows})
    head = HEAD.format(
        graphs=len({row.name for row in rows}),
        dates=" to ".join(dict.fromkeys((dates[0], dates[-1]))),
        float_limit=FLOAT_LIMIT,
        integer_limit=INTEGER_LIMIT,
    )
    sections = [
        _counts(rows),
        _extremes(rows),
        _refusals(rows),
        _explained(rows),
        _beside(rows, peer),
        *(_table(rows, peer, target) for target in _targets(rows)),
    ]
    return "\n".join([head, *("\n".join([*lines, ""]) for lines in sections)])


def _targets(rows: Iterable[Kept]) -> list[str]:
    return sorted({row.target for row in rows}, reverse=True)


def _counts(rows: Sequence[Kept]) -> list[str]:
    lines = [
        "## How many",
        "",
        "| graphs | target | " + " | ".join(STATUSES) + " | all |",
        "|---|---|" + "---|" * (len(STATUSES) + 1),
    ]
    for kind in KINDS:
        for target in _targets(rows):
            found = Counter(r.status for r in rows if (r.kind, r.target) == (kind, target))
            if found:
                numbers = " | ".join(str(found[status] or "") for status in STATUSES)
                lines.append(f"| {kind} | {target} | {numbers} | {sum(found.values())} |")
    return lines


def _extremes(rows: Sequence[Kept]) -> list[str]:
    made = [row for row in rows if row.status not in NO_FILE]
    slow = sorted(made, key=lambda row: -row.cpu_seconds)[:SHOWN]
    large = sorted(made, key=lambda row: -row.megabytes)[:SHOWN]
    equal = sum(row.split is True for row in made)
    alone = sum(row.split is None for row in made)
    return [
        f"Of {len(made)} bundles the parts equal the whole bit for bit in {equal}"
        + (f" ({alone} not compared)" if alone else "")
        + f"; float tensors are left in {sum(bool(row.floats) for row in made)}.",
        "",
        "Slowest: "
        + ", ".join(f"{r.name} ({r.target}) {r.cpu_seconds:.0f} s" for r in slow)
        + ". Largest: "
        + ", ".join(f"{r.name} ({r.target}) {r.megabytes:,.0f} MB" for r in large)
        + ".",
    ]


def _refusals(rows: Sequence[Kept]) -> list[str]:
    lines = ["## Without a file", ""]
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.status in NO_FILE:
            key = row.name, row.status, in_short(row.reason)
            found.setdefault(key, []).append(row.target)
    return lines + (
        [
            f"- {name} ({', '.join(targets)}), {status}: {reason}"
            for (name, status, reason), targets in found.items()
        ]
        or ["None."]
    )


def _explained(rows: Sequence[Kept]) -> list[str]:
    over = [row for row in rows if (row.float_error or 0.0) > FLOAT_LIMIT]
    lines = [
        "## Float errors over the limit",
        "",
        "Decisions given: the error that is left when every rank, comparison and rounding is the "
        "reference's own. Reference moves: by how much its own outputs do, by rounding alone.",
        "",
        "| graph | target | result | float | decisions given | differ | reference moves |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {row.name} | {row.target} | {row.status} | {number(row.float_error)} | "
        f"{number(row.forced_error)} | {row.flips[0]:,} of {row.flips[1]:,} | "
        f"{number(row.noise)} |"
        for row in over
    ]


def _beside(rows: Sequence[Kept], peer: Peer) -> list[str]:
    lines = ["## Beside onnx2tf", ""]
    ran = {name for name, row in peer.rows.items() if row.status != "not run"}
    best = {row.name: row for row in rows if row.name in ran}
    if not best:
        return [*lines, "Not run."]
    ours = Counter(
        "right" if row.status in ("right", "coarse") else row.status for row in best.values()
    )
    theirs = Counter(peer.rows[name].status for name in best)
    about = peer.about
    missing = len({row.name for row in rows} - set(best))
    kinds = ("right", "near", "wrong", "refused", "crashed", "timeout")
    return [
        *lines,
        f"{about['tool']}, float conversion alone, on {len(best)} of these graphs "
        f"({missing} not run). `{about['command']}`; {about['compared']}. Recorded "
        f"{about['date']}, {about['machine']}.",
        "",
        "| float files | " + " | ".join(kinds) + " |",
        "|---|" + "---|" * len(kinds),
        "| this tool | " + " | ".join(str(ours[kind] or "") for kind in kinds) + " |",
        f"| {about['tool']} | " + " | ".join(str(theirs[kind] or "") for kind in kinds) + " |",
        "",
        "Right is an error of at most 1e-4, near of at most 1e-2; for onnx2tf no explanation by "
        "rounding is looked for, and of all layouts of its inputs and outputs the one with the "
        "least error counts. Not right:",
        "",
        *(
            f"- {name}: {row.status}{f', error {number(row.error)}' if row.error else ''}"
            f"{f': {row.reason}' if row.reason else ''}"
            for name, row in sorted(peer.rows.items())
            if name in best and row.status != "right"
        ),
    ]


def _table(rows: Sequence[Kept], peer: Peer, target: str) -> list[str]:
    heads = ["graph", "result", "float", "integer", "NPU units", "operators", "s", "MB"]
    heads += ["onnx2tf", "its float", "its s"]
    return [
        f"## Every graph, {target}",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *(_line(row, peer) for row in rows if row.target == target),
    ]


def _line(row: Kept, peer: Peer) -> str:
    name, _, *rest = cells(row)
    return "| " + " | ".join([name, *rest, *peer_cells(peer.rows.get(row.name))]) + " |"
