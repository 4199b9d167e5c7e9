"""Graph by graph, each in a process of its own, with limits on its time and memory.

Decides which graphs and that no graph can end the sweep. Leaves measuring to `measure` and the
judgement to `verdict`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.corpus.cases import Case, Kind, find
from bench.corpus.verdict import Row, judged, largest

ROOT = Path(__file__).resolve().parent.parent.parent
TARGETS = ("imx95", "cpu")
KINDS: tuple[Kind, ...] = ("zoo", "trained", "models")


def add_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """What says which graphs, and within which limits."""
    parser.add_argument("--zoo", type=Path, help="folder of small graphs with recorded arrays")
    parser.add_argument("--trained", type=Path, help="folder of trained models with records")
    parser.add_argument("--models", type=Path, help="folder of graphs, weights stripped or not")
    parser.add_argument("--only", action="append", default=[], help="part of a graph's name")
    parser.add_argument("--target", action="append", help="default: imx95 and cpu")
    parser.add_argument("--int16", action="append", default=[], help="as of `split`; auto")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a graph")
    parser.add_argument("--gigabytes", type=float, default=12, help="address space of a graph")


def has_folder(wanted: argparse.Namespace) -> bool:
    """Whether any folder of graphs is given."""
    return any(getattr(wanted, kind) for kind in KINDS)


def sweep(wanted: argparse.Namespace) -> Iterator[Row]:
    """The rows of all graphs wanted, target by target, as they come."""
    for case in cases(wanted):
        for target in wanted.target or TARGETS:
            yield row_of(case, target, wanted)


def cases(wanted: argparse.Namespace) -> Iterator[Case]:
    for kind in KINDS:
        folder = getattr(wanted, kind)
        for case in find(folder, kind) if folder else ():
            if not wanted.only or any(part in case.name for part in wanted.only):
                yield case


def row_of(case: Case, target: str, wanted: argparse.Namespace) -> Row:
    """The graph's row, whatever happens to its process."""
    command = [sys.executable, "-m", "bench.corpus.measure"]
    command += [str(case.path), case.kind, target, *wanted.int16]
    limit = int(wanted.gigabytes * 2**30)

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    row: Row = {"name": case.name, "kind": case.kind, "target": target}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=wanted.seconds,
            cwd=ROOT,
            preexec_fn=bounded,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {**row, "status": "timeout", "reason": f"over {wanted.seconds:.0f} s"}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        return {
            **row,
            "status": "crashed",
            "reason": f"status {done.returncode}: {last}",
            "trace": "\n".join(lines[-25:]),
        }
    found: Row = json.loads(done.stdout.splitlines()[-1])
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
