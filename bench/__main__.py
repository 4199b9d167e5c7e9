"""`make bench`: prints the tables. `python -m bench [tiny|nano ...] [--turns N]`.

With folders of graphs (--models DIR, --trained DIR, --zoo DIR) it prints the corpus table instead.
"""

from __future__ import annotations

import argparse
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.corpus.recorded import kept, load_peer
from bench.corpus.sweep import add_arguments, sweep
from bench.corpus.table import corpus_table, reasons
from bench.corpus.wanted import has_folder
from bench.inference import contestants, race
from bench.job import JOBS, ONNX2TF, Job, Measured, run

OUT = Path(__file__).resolve().parent / "out"
CORPUS_WIDTH = 160


def jobs_table(measured: dict[str, Measured]) -> Table:
    table = Table(title="The job: split MODEL --target imx95")
    for column in ("model", "time s", "peak MB", "operators", "of them TRANSPOSE", "status"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in measured.items():
        table.add_row(
            name,
            f"{row.seconds:.1f}",
            f"{row.megabytes:.0f}",
            f"{row.operators:,}",
            str(row.transposes),
            str(row.status),
        )
    if "nano" in measured:
        table.add_row(
            f"{ONNX2TF.name} (recorded)",
            f"{ONNX2TF.seconds:.0f}",
            "",
            f"{ONNX2TF.operators:,}",
            str(ONNX2TF.transposes),
            "float",
        )
    return table


def inference_table(name: str, milliseconds: dict[str, float]) -> Table:
    table = Table(title=f"One inference, {name}, on this machine, 2 threads")
    table.add_column("what")
    table.add_column("median ms", justify="right")
    for contestant, value in milliseconds.items():
        table.add_row(contestant, f"{value:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="tiny|nano")
    parser.add_argument("--turns", type=int, default=15)
    add_arguments(parser.add_argument_group("the corpus instead, onnx2tf beside it"))
    wanted = parser.parse_args()
    chosen = [job for job in JOBS if not wanted.jobs or job.name in wanted.jobs]
    if len(chosen) < len(set(wanted.jobs)):
        parser.error("the models are tiny and nano")
    console = Console(width=CORPUS_WIDTH if has_folder(wanted) else 100, highlight=False)
    console.print(f"{platform.machine()}, Python {platform.python_version()}")
    if has_folder(wanted):
        print_corpus(console, wanted)
    else:
        print_jobs(console, chosen, wanted.turns)


def print_jobs(console: Console, chosen: Sequence[Job], turns: int) -> None:
    """Run the job on the demo models; its time, memory and sizes."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    measured = {job.name: run(job, OUT / job.name) for job in chosen}
    races = {job.name: race(contestants(job, OUT / job.name), turns=turns) for job in chosen}
    console.print(jobs_table(measured))
    if "nano" in measured:
        console.print(ONNX2TF.note)
    for name, milliseconds in races.items():
        console.print(inference_table(name, milliseconds))


def print_corpus(console: Console, wanted: argparse.Namespace) -> None:
    """Sweep the folders given; one table, and why there are no files where there are none."""
    rows = [kept(row) for row in sweep(wanted)]
    peer = load_peer()
    console.print(corpus_table(rows, peer))
    for line in reasons(rows):
        console.print(line)
    if peer.about:
        console.print(
            f"{peer.about['tool']}: recorded {peer.about['date']}; {peer.about['compared']}"
        )


if __name__ == "__main__":
    main()
