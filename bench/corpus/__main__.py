"""`python -m bench.corpus`: graph by graph, each in a process of its own, one line a graph."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.corpus.cases import Case, find
from bench.corpus.measure import FLOAT_LIMIT

ROOT = Path(__file__).resolve().parent.parent.parent
INTEGER_LIMIT = 0.05
AMPLIFIED = 4
"""Times the reference's own noise that a float error may be: rounding is random."""

FLIPPED = 0.01
"""Share of decisions, of those near ties, that may come out otherwise."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=__doc__)
    parser.add_argument("--zoo", type=Path, help="folder of small graphs with recorded arrays")
    parser.add_argument("--trained", type=Path, help="folder of trained models with records")
    parser.add_argument("--models", type=Path, help="folder of graphs, weights stripped or not")
    parser.add_argument("--only", action="append", default=[], help="part of a graph's name")
    parser.add_argument("--target", action="append", help="default: imx95 and cpu")
    parser.add_argument("--int16", action="append", default=[], help="as of `split`; auto")
    parser.add_argument("--json", type=Path, help="write all rows here")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a graph")
    parser.add_argument("--gigabytes", type=float, default=12, help="address space of a graph")
    return parser.parse_args()


def cases(wanted: argparse.Namespace) -> Iterator[Case]:
    for kind in ("zoo", "trained", "models"):
        folder = getattr(wanted, kind)
        for case in find(folder, kind) if folder else ():
            if not wanted.only or any(part in case.name for part in wanted.only):
                yield case


def row_of(case: Case, target: str, wanted: argparse.Namespace) -> dict[str, Any]:
    """The graph's row, whatever happens to its process."""
    command = [sys.executable, "-m", "bench.corpus.measure"]
    command += [str(case.path), case.kind, target, *wanted.int16]
    limit = int(wanted.gigabytes * 2**30)

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    row: dict[str, Any] = {"name": case.name, "target": target}
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
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "status": judged(found)}


def judged(row: dict[str, Any]) -> str:
    """right, coarse (float right, integers over the limit), wrong, or refused."""
    if row["status"] != "done":
        return str(row["status"])
    if not converted(row):
        return "wrong"
    if row["split"] is False or row["floats"]:
        return "wrong"
    decided = list(row["decisions"].values())
    if decided:
        return "right" if all(agree >= 0.97 * total for agree, total in decided) else "coarse"
    fine = all(error <= INTEGER_LIMIT for error in row["integer_error"].values())
    return "right" if fine else "coarse"


def converted(row: dict[str, Any]) -> bool:
    """Whether the float error is within the limit, or not the conversion's."""
    for name, error in row["float_error"].items():
        forced = row["forced_error"].get(name, error)
        if min(error, forced) > max(FLOAT_LIMIT, AMPLIFIED * row["noise"].get(name, 0.0)):
            return False
    differ, total = row["flips"]
    return bool(differ <= FLIPPED * total)


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['status']:8} {row['target']:6} {row['name']:34}"
    if row["status"] in ("crashed", "timeout"):
        return f"{head} {row['reason'][:200]}"
    floats = max(row["float_error"].values(), default=float("nan"))
    text = f"{head} float {floats:.1e}"
    if more := max(row.get("float_more", {}).values(), default=0.0):
        text += f" ({more:.1e})"
    if row["forced_error"]:
        forced, noise = (max(row[key].values()) for key in ("forced_error", "noise"))
        text += f" (decisions given {forced:.1e}, {row['flips'][0]} differ, noise {noise:.1e})"
    if row["reason"]:
        first = " ".join(row["reason"].split())[:300]
        return f"{text}  at {row['stage']}: {first}"
    integers = max(row["integer_error"].values(), default=float("nan"))
    split = {True: "=", False: "PARTS DIFFER", None: "?"}[row["split"]]
    decided = "".join(f"  {k} {a}/{n}" for k, (a, n) in row["decisions"].items())
    left = f"  {row['floats']} FLOAT TENSORS" if row["floats"] else ""
    return (
        f"{text} int {integers:.4f} {split} npu {row['on_npu']}/{row['units']} "
        f"{row['operators']} ops {row['bits']:.1f} bit {row['seconds']:.1f} s "
        f"({row['cpu_seconds']:.1f} of the processor) "
        f"{row['megabytes']:.0f} MB{left}{decided}"
    )


def main() -> None:
    wanted = arguments()
    rows = []
    for case in cases(wanted):
        for target in wanted.target or ("imx95", "cpu"):
            rows.append(row_of(case, target, wanted))
            print(line_of(rows[-1]), flush=True)
            if wanted.json:
                wanted.json.write_text(json.dumps(rows, indent=1))
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
