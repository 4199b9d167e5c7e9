"""`python -m bench.placements`: what the planner makes of a folder of graphs on several targets.

Planning only: nothing is quantized. --save keeps what docs/placements.md is made of.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.corpus.cases import Case, Kind, find
from bench.placements.page import SAVED, TARGETS, cells
from bench.subprocesses import rows_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.placements", description=__doc__)
    parser.add_argument("--models", type=Path, help="folder of graphs, weights stripped or not")
    parser.add_argument("--trained", type=Path, help="folder of trained models")
    parser.add_argument("--only", action="append", default=[], help="part of a graph's name")
    parser.add_argument("--target", action="append", help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--json", type=Path, help="write all rows here; rows there are not redone")
    parser.add_argument("--seconds", type=float, default=600, help="time limit of a graph")
    parser.add_argument("--gigabytes", type=float, default=12, help="address space of a graph")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    return parser.parse_args()


def cases(wanted: argparse.Namespace) -> Iterator[Case]:
    """The graphs, smallest file first."""
    kinds: tuple[Kind, ...] = ("trained", "models")
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
        words = ["bench.placements.case", str(case.path), case.kind, *(wanted.target or TARGETS)]
        head = {"name": case.name, "target": ""}
        found = rows_of(words, head, seconds=wanted.seconds, gigabytes=wanted.gigabytes)
        made += found
        for row in found:
            print(f"{row['name']:34} {row['target']:10} {' | '.join(cells(row))}", flush=True)
        if wanted.json:
            wanted.json.write_text(json.dumps(made, indent=0))
    return made


def main() -> None:
    wanted = arguments()
    found = sorted(rows(wanted), key=lambda row: (row["name"], row["target"]))
    if wanted.save:
        SAVED.parent.mkdir(exist_ok=True)
        SAVED.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
