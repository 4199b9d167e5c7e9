"""`python -m bench.agreement`: our verdicts and times for Ethos-U beside those of Vela.

Every graph is written as an integer file for each target and given to Vela, which places it
operator by operator; its placement is held against the rules, and its estimated time against ours.
Needs Vela (`pip install 'onnx-npu-splitter[vela]'`). --fit fits the NPU's figures to Vela's
estimates and writes them into the rule files; --save keeps what docs/vela-agreement.md is made of.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.agreement.fit import check, fitted, halves
from bench.agreement.page import summary
from bench.agreement.table import SAVED, saved
from bench.corpus.cases import Case
from bench.corpus.wanted import add_folders, smallest_first
from bench.subprocesses import Row, resumed, rows_of
from splitter.refit.rulefile import with_latency
from splitter.rules.targets import load_target, rule_file

TARGETS = ("ethos-u55", "ethos-u65", "ethos-u85")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__)
    add_folders(parser, targets=TARGETS)
    parser.add_argument("--vela", default="vela", help="the program")
    parser.add_argument("--json", type=Path, help="write all rows here; rows there are not redone")
    parser.add_argument("--fit", action="store_true", help="fit the rule files' figures to Vela")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    return parser.parse_args()


def rows(wanted: argparse.Namespace) -> list[Row]:
    def make(case: Case) -> list[Row]:
        words = ["bench.agreement.case", str(case.path), case.kind, wanted.vela]
        words += wanted.target or TARGETS
        found = rows_of(words, case, seconds=wanted.seconds, gigabytes=wanted.gigabytes)
        print("\n".join(map(line_of, found)), flush=True)
        return [{**row, "kind": case.kind} for row in found]

    return resumed(wanted.json, smallest_first(wanted), make)


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['target']:10} {row['name']:34}"
    if row["status"] != "done":
        return f"{head} {row['status']}: {row['reason'][:150]}"
    different = len(row["differences"])
    text = f"{head} {row['compared']} operators, {row['on_cpu']} on the CPU, {different} differ"
    left = f", left out {row['left_out']}" if row["left_out"] else ""
    return f"{text}{left}; Vela {row['their_ms'] or 0:.2f} ms"


def refitted(rows: list[dict[str, Any]], name: str) -> None:
    """Fit the figures of a target, say how that does, and write its rule file."""
    target = load_target(name)
    new = fitted(rows, target)
    for said, one in (
        ("figures as they are", check(rows, target)),
        ("fitted", check(rows, new)),
        ("each half by the other's fit", halves(rows, target)),
    ):
        print(
            f"{name}, {said}: Spearman {one.spearman:.3f}, median difference {one.error:.0%},"
            f" {one.graphs} models"
        )
    path = rule_file(target)
    path.write_text(with_latency(path.read_text(), target, new.latency, {}))


def main() -> None:
    wanted = arguments()
    found = rows(wanted)
    targets = wanted.target or TARGETS
    if wanted.fit:
        for target in targets:
            refitted([row for row in found if row["target"] == target], target)
    kept = saved(found)
    for target in targets:
        print("\n  ".join([target, *summary(kept, target)]))
    if wanted.save:
        SAVED.parent.mkdir(exist_ok=True)
        SAVED.write_text(json.dumps(kept, indent=0) + "\n")


if __name__ == "__main__":
    main()
