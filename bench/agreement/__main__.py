"""`python -m bench.agreement`: our verdicts and times for Ethos-U beside those of Vela.

Every graph is written as an integer file for each target and given to Vela, which places it
operator by operator; its placement is held against the rules, and its estimated time against ours.
Needs Vela (`pip install 'onnx-npu-splitter[vela]'`). --fit fits the NPU's figures to Vela's
estimates and writes them into the rule files; --save keeps what docs/vela-agreement.md is made of.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.agreement.fit import check, fitted, halves
from bench.agreement.page import summary
from bench.agreement.table import SAVED, saved
from bench.corpus.cases import Case, Kind, find
from bench.subprocesses import rows_of
from splitter.refit.rulefile import with_latency
from splitter.targets import load_target, rule_file

TARGETS = ("ethos-u55", "ethos-u65", "ethos-u85")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__)
    parser.add_argument("--zoo", type=Path, help="folder of small graphs with recorded arrays")
    parser.add_argument("--trained", type=Path, help="folder of trained models with records")
    parser.add_argument("--models", type=Path, help="folder of graphs, weights stripped or not")
    parser.add_argument("--only", action="append", default=[], help="part of a graph's name")
    parser.add_argument("--target", action="append", help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--vela", default="vela", help="the program")
    parser.add_argument("--json", type=Path, help="write all rows here; rows there are not redone")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a graph")
    parser.add_argument("--gigabytes", type=float, default=12, help="address space of a graph")
    parser.add_argument("--fit", action="store_true", help="fit the rule files' figures to Vela")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    return parser.parse_args()


def cases(wanted: argparse.Namespace) -> Iterator[Case]:
    """The graphs, smallest file first."""
    kinds: tuple[Kind, ...] = ("zoo", "trained", "models")
    folders = [(kind, getattr(wanted, kind)) for kind in kinds]
    found = [case for kind, folder in folders if folder for case in find(folder, kind)]
    for case in sorted(found, key=lambda one: (one.path.stat().st_size, one.name)):
        if not wanted.only or any(part in case.name for part in wanted.only):
            yield case


def rows(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if wanted.json and wanted.json.is_file():
        made = json.loads(wanted.json.read_text())
    known = {row["name"] for row in made}
    for case in cases(wanted):
        if case.name in known:
            continue
        words = ["bench.agreement.case", str(case.path), case.kind, wanted.vela]
        words += wanted.target or TARGETS
        head = {"name": case.name, "target": ""}
        found = rows_of(words, head, seconds=wanted.seconds, gigabytes=wanted.gigabytes)
        made += [{**row, "kind": case.kind} for row in found]
        print("\n".join(map(line_of, found)), flush=True)
        if wanted.json:
            wanted.json.write_text(json.dumps(made))
    return made


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
