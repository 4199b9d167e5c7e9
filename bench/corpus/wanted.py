"""Which graphs a bench runs on: folders, parts of names, limits, from its command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.corpus.cases import Case, Kind, find

KINDS: tuple[Kind, ...] = ("zoo", "trained", "models")
FOLDERS: dict[Kind, str] = {
    "zoo": "folder of small graphs with recorded arrays",
    "trained": "folder of trained models with records",
    "models": "folder of graphs, weights stripped or not",
}

Parser = argparse.ArgumentParser | argparse._ArgumentGroup


def add_folders(
    parser: Parser, *, targets: Sequence[str], kinds: Sequence[Kind] = KINDS, seconds: float = 300
) -> None:
    """The options that say which graphs, for which targets, and within which limits."""
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=Path, help=FOLDERS[kind])
    parser.add_argument("--only", action="append", default=[], help="part of a graph's name")
    parser.add_argument("--target", action="append", help=f"default: {', '.join(targets)}")
    parser.add_argument("--seconds", type=float, default=seconds, help="time limit of a graph")
    parser.add_argument("--gigabytes", type=float, default=12, help="address space of a graph")


def has_folder(wanted: argparse.Namespace) -> bool:
    """Whether any folder of graphs is given."""
    return any(getattr(wanted, kind, None) for kind in KINDS)


def cases(wanted: argparse.Namespace) -> Iterator[Case]:
    """The graphs wanted, folder by folder, by name."""
    for kind in KINDS:
        folder = getattr(wanted, kind, None)
        for case in find(folder, kind) if folder else ():
            if not wanted.only or any(part in case.name for part in wanted.only):
                yield case


def smallest_first(wanted: argparse.Namespace) -> list[Case]:
    """The same graphs, by the size of their files."""
    return sorted(cases(wanted), key=lambda one: (one.path.stat().st_size, one.name))
