"""`python -m bench.placements`: what the planner makes of a folder of graphs on several targets.

Planning only: nothing is quantized. --save keeps what docs/placements.md is made of.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.corpus.cases import Case, Kind
from bench.corpus.wanted import add_folders, smallest_first
from bench.placements.page import SAVED, TARGETS, cells
from bench.subprocesses import Row, resumed, rows_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.placements", description=__doc__)
    kinds: tuple[Kind, ...] = ("trained", "models")
    add_folders(parser, targets=TARGETS, kinds=kinds, seconds=600)
    parser.add_argument("--json", type=Path, help="write all rows here; rows there are not redone")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}")
    return parser.parse_args()


def rows(wanted: argparse.Namespace) -> list[Row]:
    def make(case: Case) -> list[Row]:
        words = ["bench.placements.case", str(case.path), case.kind, *(wanted.target or TARGETS)]
        found = rows_of(words, case, seconds=wanted.seconds, gigabytes=wanted.gigabytes)
        for row in found:
            print(f"{row['name']:34} {row['target']:10} {' | '.join(cells(row))}", flush=True)
        return found

    return resumed(wanted.json, smallest_first(wanted), make)


def main() -> None:
    wanted = arguments()
    found = sorted(rows(wanted), key=lambda row: (row["name"], row["target"]))
    if wanted.save:
        SAVED.parent.mkdir(exist_ok=True)
        SAVED.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
