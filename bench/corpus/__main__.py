"""`python -m bench.corpus`: graph by graph, each in a process of its own, one line a graph."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from bench.corpus.recorded import add_rows
from bench.corpus.sweep import add_arguments, line_of, sweep


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=__doc__)
    add_arguments(parser)
    parser.add_argument("--json", type=Path, help="write all rows here")
    parser.add_argument("--record", type=Path, help="put the rows among the recorded ones, here")
    wanted = parser.parse_args()
    rows = []
    for row in sweep(wanted):
        rows.append(row)
        print(line_of(row), flush=True)
        if wanted.json:
            wanted.json.write_text(json.dumps(rows, indent=1))
    if wanted.record:
        add_rows(wanted.record, rows)
    counts = Counter(row["status"] for row in rows)
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
