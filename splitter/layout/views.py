"""Chains of Reshape and Transpose as one permutation of atoms, and how such a chain is written.

An atom is a factor of an axis of the source. A view says in which order the atoms of the source
stand in the target; axes of length 1 have no atoms. Two tensors hold the same bytes in the same
order exactly when their atoms stand in the same order, so whether a Transpose is needed is a
comparison of two sequences, and any chain needs at most one Transpose between two Reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Perm = tuple[int, ...]
Shape = tuple[int, ...]
Atoms = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """`sizes`: lengths of the source's atoms in its own order; `order`: their order in target."""

    sizes: Atoms
    order: Atoms

    @staticmethod
    def of(shape: Shape) -> View:
        sizes = tuple(d for d in shape if d != 1)
        return View(sizes, tuple(range(len(sizes))))

    def reshaped(self, shape: Shape) -> View | None:
        """The view after a Reshape of the target; None when lengths have no common factors."""
        view = self
        position = 0
        for length in shape:
            covered = 1
            while covered < length:
                if position >= len(view.order):
                    return None
                atom = view.order[position]
                size, need = view.sizes[atom], length // covered
                if need % size:
                    if size % need or length % covered:
                        return None
                    view, size = view._split(atom, need), need
                covered *= size
                position += 1
            if covered != length:
                return None
        return view

    def transposed(self, shape: Shape, perm: Perm) -> View | None:
        """The view after a Transpose of the target, whose shape is given."""
        fine = self.reshaped(shape)
        if fine is None:
            return None
        groups = group(fine, shape)
        return View(fine.sizes, tuple(a for axis in perm for a in groups[axis]))

    def _split(self, atom: int, first: int) -> View:
        sizes = (*self.sizes[:atom], first, self.sizes[atom] // first, *self.sizes[atom + 1 :])
        order: list[int] = []
        for other in self.order:
            order.append(other + (other > atom))
            if other == atom:
                order.append(atom + 1)
        return View(sizes, tuple(order))


def group(view: View, shape: Shape) -> list[Atoms]:
    """The target's atoms, axis by axis. The view must be fine enough (`reshaped(shape)`)."""
    groups: list[Atoms] = []
    position = 0
    for length in shape:
        start, covered = position, 1
        while covered < length:
            covered *= view.sizes[view.order[position]]
            position += 1
        groups.append(view.order[start:position])
    return groups


def source_groups(view: View, shape: Shape) -> list[Atoms]:
    """The source's atoms, axis by axis."""
    return group(View(view.sizes, tuple(range(len(view.sizes)))), shape)


def stored(groups: Sequence[Atoms], perm: Perm) -> Atoms:
    """The order of atoms in memory when the axes are stored in the order `perm`."""
    return tuple(atom for axis in perm for atom in groups[axis])


def perm_for(groups: Sequence[Atoms], atoms: Atoms, like: Perm | None = None) -> Perm | None:
    """Axes in an order that stores the atoms as given; None when an axis would be torn apart.

    Axes of length 1 go where `like` has them, else stay behind their neighbor on the left.
    """
    if like is not None and stored(groups, like) == atoms:
        return like
    where = {atom: index for index, atom in enumerate(atoms)}
    keyed: list[tuple[int, int]] = []
    key = -1
    for axis, parts in enumerate(groups):
        if parts:
            key = where[parts[0]]
        keyed.append((key, axis))
    perm = tuple(axis for _, axis in sorted(keyed))
    identity = tuple(range(len(groups)))
    if stored(groups, identity) == atoms:
        return identity
    return perm if stored(groups, perm) == atoms else None


@dataclass(frozen=True, slots=True)
class Steps:
    """How the target's bytes are made: Reshape to `before`, Transpose, Reshape to `after`.

    `before` or `after` None: no such Reshape; perm None: no Transpose.
    """

    before: Shape | None
    perm: Perm | None
    after: Shape | None


MAX_RANK = 4  # higher ranks run in few TFLite kernels and on no NPU known here
LAST_RANK = 6  # of TFLite's TRANSPOSE (kernels/transpose.cc)


def steps(sizes: Atoms, have: Atoms, want: Atoms, source: Shape, target: Shape) -> Steps:
    """From atoms stored as `have` in a tensor of shape `source` to `want` in `target`.

    Fewest reshapes wins, then the lowest rank of the Transpose; ranks over MAX_RANK only if needed.
    """
    if have == want:
        return Steps(None, None, None if source == target else target)
    place = {atom: index for index, atom in enumerate(have)}
    moved = tuple(place[atom] for atom in want)
    lengths = tuple(sizes[atom] for atom in have)
    options = [_minimal(lengths, moved)]
    for axes, from_source in ((source, True), (target, False)):
        option = _along(lengths, moved, axes, from_source=from_source)
        if option is not None:
            options.append(option)
    best = min(options, key=lambda o: _cost(o, source, target))
    before, perm = best
    after = tuple(before[axis] for axis in perm)
    return Steps(None if before == source else before, perm, None if after == target else target)


def _cost(option: tuple[Shape, Perm], source: Shape, target: Shape) -> tuple[bool, int, int]:
    before, perm = option
    after = tuple(before[axis] for axis in perm)
    return len(perm) > MAX_RANK, (before != source) + (after != target), len(perm)


def _minimal(lengths: Atoms, moved: Atoms) -> tuple[Shape, Perm]:
    """Atoms that stay neighbors are one axis."""
    runs: list[list[int]] = []
    for atom in moved:
        if runs and runs[-1][-1] + 1 == atom:
            runs[-1].append(atom)
        else:
            runs.append([atom])
    ranked = sorted(range(len(runs)), key=lambda i: runs[i][0])
    perm = tuple(ranked.index(i) for i in range(len(runs)))
    before = tuple(_product(lengths[a] for a in runs[i]) for i in ranked)
    return before, perm


def _along(
    lengths: Atoms, moved: Atoms, axes: Shape, *, from_source: bool
) -> tuple[Shape, Perm] | None:
    """A Transpose of exactly the axes of the source (or that makes exactly those of the target)."""
    inverse = tuple(sorted(range(len(moved)), key=moved.__getitem__))
    sequence = lengths if from_source else tuple(lengths[a] for a in moved)
    other = moved if from_source else inverse
    try:
        groups = group(View(sequence, tuple(range(len(sequence)))), axes)
    except IndexError:
        return None
    if sum(map(len, groups)) != len(sequence) or any(
        _product(sequence[a] for a in parts) != length
        for parts, length in zip(groups, axes, strict=True)
    ):
        return None
    perm = perm_for(groups, other)
    if perm is None:
        return None
    if from_source:
        return axes, perm
    back = tuple(sorted(range(len(perm)), key=perm.__getitem__))
    return tuple(axes[axis] for axis in perm), back


def _product(values: object) -> int:
    result = 1
    for value in values:  # type: ignore[attr-defined]
        result *= int(value)
    return result


def pieces(shape: Shape, perm: Perm) -> list[tuple[Shape, Perm]]:
    """A Transpose as several of rank MAX_RANK at most, each of the shape given before it.

    Each swaps two neighboring blocks of axes, the pair that leaves the fewest axes apart from the
    neighbor they are to have.
    """
    order = list(range(len(perm)))
    moves = []
    while order != list(perm):
        place = {axis: index for index, axis in enumerate(perm)}
        first, second, end = min(
            ((i, j, k) for k in range(2, len(order) + 1) for j in range(1, k) for i in range(j)),
            key=lambda cut: _apart(_swapped(order, *cut), place),
        )
        blocks = (order[:first], order[first:second], order[second:end], order[end:])
        kept = [index for index, block in enumerate(blocks) if block]
        lengths = tuple(_product(shape[axis] for axis in blocks[index]) for index in kept)
        moves.append((lengths, tuple(kept.index(i) for i in (0, 2, 1, 3) if i in kept)))
        order = _swapped(order, first, second, end)
    return moves


def _swapped(order: list[int], first: int, second: int, end: int) -> list[int]:
    return [*order[:first], *order[second:end], *order[first:second], *order[end:]]


def _apart(order: list[int], place: dict[int, int]) -> int:
    """Neighbors that are not to be neighbors, both ends of the order counted in."""
    places = [-1, *(place[axis] for axis in order), len(order)]
    return sum(right != left + 1 for left, right in pairwise(places))
