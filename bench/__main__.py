"""`make bench`: prints the tables. `python -m bench [tiny|nano ...] [--turns N]`."""

from __future__ import annotations

import argparse
import platform
import shutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.inference import contestants, race
from bench.job import JOBS, ONNX2TF, Measured, run

OUT = Path(__file__).resolve().parent / "out"


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
    parser = argparse.ArgumentParser(description="Time, memory and sizes of the main job.")
    parser.add_argument("models", nargs="*", metavar="tiny|nano")
    parser.add_argument("--turns", type=int, default=15)
    wanted = parser.parse_args()
    chosen = [job for job in JOBS if not wanted.models or job.name in wanted.models]
    if len(chosen) < len(set(wanted.models)):
        parser.error("the models are tiny and nano")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    measured = {job.name: run(job, OUT / job.name) for job in chosen}
    races = {job.name: race(contestants(job, OUT / job.name), turns=wanted.turns) for job in chosen}
    console = Console(width=100, highlight=False)
    console.print(f"{platform.machine()}, Python {platform.python_version()}")
    console.print(jobs_table(measured))
    if "nano" in measured:
        console.print(ONNX2TF.note)
    for name, milliseconds in races.items():
        console.print(inference_table(name, milliseconds))


if __name__ == "__main__":
    main()
