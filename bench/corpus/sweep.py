"""Graph by graph, each in a process of its own, with limits on its time and memory.

Decides which graphs and that no graph can end the sweep. Leaves measuring to `measure` and the
judgement to `verdict`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bench.corpus.cases import Case
from bench.corpus.verdict import Row, judged, largest
from bench.corpus.wanted import Parser, add_folders, cases
from bench.subprocesses import CaseFailed, result_of

TARGETS = ("imx95", "cpu")


def add_arguments(parser: Parser) -> None:
    """What says which graphs, and within which limits."""
    add_folders(parser, targets=TARGETS)
    parser.add_argument("--int16", action="append", default=[], help="as of `split`; auto")


def sweep(wanted: argparse.Namespace) -> Iterator[Row]:
    """The rows of all graphs wanted, target by target, as they come."""
    for case in cases(wanted):
        for target in wanted.target or TARGETS:
            yield row_of(case, target, wanted)


def row_of(case: Case, target: str, wanted: argparse.Namespace) -> Row:
    """The graph's row, whatever happens to its process."""
    words = ["bench.corpus.measure", str(case.path), case.kind, target, *wanted.int16]
    row: Row = {"name": case.name, "kind": case.kind, "target": target}
    try:
        found = result_of(words, seconds=wanted.seconds, gigabytes=wanted.gigabytes)
    except CaseFailed as failure:
        return {**row, **failure.row}
    return {**row, **found, "status": judged(found)}


def line_of(row: Row) -> str:
    """One line for the terminal."""
    head = f"{row['status']:8} {row['target']:6} {row['name']:34}"
    if row["status"] in ("crashed", "timeout"):
        return f"{head} {row['reason'][:200]}"
    text = f"{head} float {largest(row, 'float_error'):.1e}"
    if more := max(row.get("float_more", {}).values(), default=0.0):
        text += f" ({more:.1e})"
    if row["forced_error"]:
        forced, noise = largest(row, "forced_error"), largest(row, "noise")
        text += f" (decisions given {forced:.1e}, {row['flips'][0]} differ, noise {noise:.1e})"
    if row["reason"]:
        first = " ".join(row["reason"].split())[:300]
        return f"{text}  at {row['stage']}: {first}"
    split = {True: "=", False: "PARTS DIFFER", None: "?"}[row["split"]]
    decided = "".join(f"  {k} {a}/{n}" for k, (a, n) in row["decisions"].items())
    left = f"  {row['floats']} FLOAT TENSORS" if row["floats"] else ""
    return (
        f"{text} int {largest(row, 'integer_error'):.4f} {split} "
        f"npu {row['on_npu']}/{row['units']} "
        f"{row['operators']} ops {row['bits']:.1f} bit {row['seconds']:.1f} s "
        f"({row['cpu_seconds']:.1f} of the processor) "
        f"{row['megabytes']:.0f} MB{left}{decided}"
    )
