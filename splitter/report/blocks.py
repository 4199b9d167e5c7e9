"""Units gathered into blocks for the picture: a transformer layer is one, not forty boxes in a row.

Decides the blocks by the scopes in the units' names ("/encoder/layer.3/mlp/fc1/MatMul"), never over
the border of a part, and which block repeats an earlier one. Leaves drawing to `picture`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from splitter.plan import Device
from splitter.report.placement import Placement

LARGEST = 70
"""A scope with more units than this is split into its inner scopes."""
SMALLEST = 3
"""A run of fewer units joins the block before it."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """Units that are drawn together. repeats: index of the block it is a copy of, -1 for none."""

    title: str
    device: Device
    segment: int
    units: tuple[Placement, ...]
    repeats: int = -1

    @property
    def macs(self) -> int:
        return sum(unit.macs for unit in self.units)

    @property
    def ms(self) -> float:
        return sum(unit.ms for unit in self.units)


def group_blocks(segments: Sequence[Sequence[Placement]]) -> tuple[Block, ...]:
    """Blocks in order; every unit of every segment is in one."""
    counts = Counter(
        prefix for segment in segments for unit in segment for prefix in _prefixes(_path(unit.unit))
    )
    blocks: list[Block] = []
    for index, segment in enumerate(segments):
        for path, units in _merged(_runs(segment, counts)):
            blocks.append(Block(_title(path), units[0].device, index, tuple(units)))
    return tuple(_marked(blocks))


def _path(name: str) -> Path:
    return tuple(part for part in name.split("/")[:-1] if part)


def _prefixes(path: Path) -> Iterator[Path]:
    return (path[:length] for length in range(len(path) + 1))


def _scope(path: Path, counts: Counter[Path]) -> Path:
    """The widest scope around a unit that is small enough to be one block."""
    return next((p for p in _prefixes(path) if counts[p] <= LARGEST), path)


def _runs(
    segment: Iterable[Placement], counts: Counter[Path]
) -> Iterator[tuple[Path, list[Placement]]]:
    """Consecutive units of one scope, at most LARGEST."""
    path: Path = ()
    run: list[Placement] = []
    for unit in segment:
        scope = _scope(_path(unit.unit), counts)
        if run and (scope != path or len(run) >= LARGEST):
            yield path, run
            run = []
        path = scope
        run.append(unit)
    if run:
        yield path, run


def _merged(
    runs: Iterable[tuple[Path, list[Placement]]],
) -> Iterator[tuple[Path, list[Placement]]]:
    """Short runs joined to the run before; the longer one gives the name."""
    held: tuple[Path, list[Placement]] | None = None
    for path, run in runs:
        if held is None:
            held = (path, run)
            continue
        short = len(run) < SMALLEST or len(held[1]) < SMALLEST or path == held[0]
        if short and len(held[1]) + len(run) <= LARGEST:
            held = (held[0] if len(held[1]) >= len(run) else path, held[1] + run)
            continue
        yield held
        held = (path, run)
    if held:
        yield held


def _title(path: Path) -> str:
    """The last two scopes that say something: "encoder/encoder/layer.3" is "encoder › layer.3"."""
    distinct = [name for index, name in enumerate(path) if index == 0 or name != path[index - 1]]
    return " › ".join(distinct[-2:]) or "top of the model"


def _marked(blocks: Sequence[Block]) -> Iterator[Block]:
    """Each block, with the first earlier one of the same operators and name but for numbers."""
    first: dict[tuple[str, tuple[str, ...]], int] = {}
    for index, block in enumerate(blocks):
        key = (re.sub(r"\d+", "#", block.title), tuple(unit.op for unit in block.units))
        original = first.setdefault(key, index)
        repeats = original if original != index else -1
        yield Block(block.title, block.device, block.segment, block.units, repeats)
