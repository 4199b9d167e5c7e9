"""Figures that come closest to measured times without leaving the old ones for no reason.

Least squares of relative errors (logarithms), by Levenberg and Marquardt. Every figure is pulled to
its old value, weakly, and the figures of one device's kernels move together first: one measurement
can tell that a board is twice as slow, not which kernel it is. A point far off pulls less (Huber).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TOGETHER = 3.0
"""Standard deviation (of a logarithm) of a device's common factor, before any measurement."""

ALONE = 0.7
"""That of a kernel's own factor beside the common one."""

FIXED = 1.5
"""That of a cost which stands alone: a call, an operator, a transfer."""

FASTENED = 1e-6
"""That of a figure which is not free to move."""

OUTLIER = 2.5
"""Errors over so many times the noise pull linearly."""

TURNS = 60
STEP = 1e-4

GROUPS = ("npu_classes.", "cpu.classes.")
NPU_KERNELS = ("npu.efficiency", "npu.depthwise_efficiency", "npu.elements")


@dataclass(frozen=True)
class Point:
    """A measured time and what was done in it.

    fixed: figure -> how many times its cost is due. keys, work, traffic: for each operator its
    figure, MACs or elements or bytes, and bytes of memory traffic; the longer of the two counts.
    """

    label: str
    ms: float
    fixed: Mapping[str, int]
    keys: tuple[str, ...] = ()
    work: tuple[float, ...] = ()
    traffic: tuple[float, ...] = ()

    @property
    def figures(self) -> set[str]:
        moved = {"npu.memory"} if any(self.traffic) else set()
        return {*self.fixed, *self.keys, *moved}


@dataclass(frozen=True)
class Fit:
    """costs: of the figures that the points involve, and of others that move with them.

    spread: standard deviation of the logarithm of each. before, after: estimated ms by point.
    """

    costs: Mapping[str, float]
    spread: Mapping[str, float]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class _Problem:
    """names: the figures, then the groups' common factors at the end of the vector."""

    points: Sequence[Point]
    names: tuple[str, ...]
    groups: tuple[str, ...]
    start: Array
    noise: float
    free: Array
    floors: Array
    members: Array = field(repr=False)
    tables: tuple[tuple[Array, Array, Array, Array, Array], ...] = field(repr=False)

    def logs(self, moves: Array) -> Array:
        count = len(self.names)
        moved: Array = self.start + moves[:count] + self.members @ moves[count:]
        held: Array = np.maximum(moved, self.floors)
        return held

    def estimates(self, moves: Array) -> Array:
        cost = np.exp(self.logs(moves))
        memory = cost[self.names.index("npu.memory")] if "npu.memory" in self.names else 0.0
        return np.array(
            [
                counts @ cost[fixed] + np.maximum(work * cost[keys], traffic * memory).sum()
                for fixed, counts, keys, work, traffic in self.tables
            ]
        )

    def misses(self, moves: Array) -> Array:
        measured = np.array([point.ms for point in self.points])
        missed: Array = np.log(self.estimates(moves) / measured) / self.noise
        return missed

    def pulls(self) -> Array:
        """Standard deviations of all moves."""
        own = np.where(self.free, [_alone(name) for name in self.names], FASTENED)
        return np.array([*own, *[TOGETHER] * len(self.groups)])


def fit(
    points: Sequence[Point],
    costs: Mapping[str, float],
    *,
    noise: float,
    free: Collection[str] | None = None,
    least: Mapping[str, float] | None = None,
) -> Fit:
    """Costs fitted to the points.

    noise: relative standard deviation of a measured time. free: the figures that may move, None
    for all. least: costs that figures cannot fall below.
    """
    problem = _problem(points, costs, noise, costs if free is None else free, least or {})
    moves = _descend(problem)
    pulls = problem.pulls()
    slope = _slope(problem, moves)
    around = np.linalg.inv(slope.T @ slope + np.diag(pulls**-2.0))
    spread = _spread(problem, around)
    fitted = np.exp(problem.logs(moves))
    return Fit(
        costs=dict(zip(problem.names, map(float, fitted), strict=True)),
        spread=dict(zip(problem.names, spread, strict=True)),
        before=tuple(map(float, problem.estimates(np.zeros(pulls.size)))),
        after=tuple(map(float, problem.estimates(moves))),
    )


def group_of(name: str) -> str:
    """The device whose kernels a figure moves with; "" for one that stands alone."""
    if name in NPU_KERNELS:
        return "npu"
    return next((prefix.partition(".")[0][:3] for prefix in GROUPS if name.startswith(prefix)), "")


def _problem(
    points: Sequence[Point],
    costs: Mapping[str, float],
    noise: float,
    free: Collection[str],
    least: Mapping[str, float],
) -> _Problem:
    involved = set().union(*(point.figures for point in points))
    moved = {group_of(name) for name in involved} - {""}
    names = tuple(name for name in costs if name in involved or group_of(name) in moved)
    groups = tuple(dict.fromkeys(group_of(name) for name in names if group_of(name)))
    members = np.array(
        [[name in free and group_of(name) == group for group in groups] for name in names], float
    )
    place = {name: index for index, name in enumerate(names)}
    tables = tuple(
        (
            np.array([place[name] for name in point.fixed], int),
            np.array(list(point.fixed.values()), float),
            np.array([place[name] for name in point.keys], int),
            np.array(point.work, float),
            np.array(point.traffic or [0.0] * len(point.work), float),
        )
        for point in points
    )
    start = np.log([costs[name] for name in names])
    loose = np.array([name in free for name in names])
    members = members.reshape(len(names), -1)
    floors = np.log([least.get(name, 1e-300) for name in names])
    return _Problem(points, names, groups, start, noise, loose, floors, members, tables)


def _alone(name: str) -> float:
    return ALONE if group_of(name) or name == "npu.memory" else FIXED


def _descend(problem: _Problem) -> Array:
    """The moves of least loss: Levenberg and Marquardt with Huber's weights."""
    pulls = problem.pulls()
    moves, damping = np.zeros(pulls.size), 1e-3
    least = _loss(problem, moves, pulls)
    for _ in range(TURNS):
        misses, slope = problem.misses(moves), _slope(problem, moves)
        weights = np.minimum(1.0, OUTLIER / np.maximum(np.abs(misses), 1e-9))
        normal = slope.T @ (weights[:, None] * slope) + np.diag(pulls**-2.0)
        uphill = slope.T @ (weights * misses) + moves * pulls**-2.0
        trial = moves - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), uphill)
        loss = _loss(problem, trial, pulls)
        if loss < least:
            done = least - loss < 1e-10 * least
            moves, least, damping = trial, loss, damping / 5
            if done:
                break
        else:
            damping *= 8
    return moves


def _loss(problem: _Problem, moves: Array, pulls: Array) -> float:
    size = np.abs(problem.misses(moves))
    huber = np.where(size <= OUTLIER, size**2, 2 * OUTLIER * size - OUTLIER**2)
    return float(huber.sum() + ((moves / pulls) ** 2).sum())


def _slope(problem: _Problem, moves: Array) -> Array:
    """Of the misses by the moves, by central differences."""
    columns = []
    for index in range(moves.size):
        step = np.zeros(moves.size)
        step[index] = STEP
        change = problem.misses(moves + step) - problem.misses(moves - step)
        columns.append(change / (2 * STEP))
    return np.stack(columns, axis=1)


def _spread(problem: _Problem, around: Array) -> list[float]:
    """Standard deviation of the logarithm of each figure's cost."""
    own = np.concatenate([np.eye(len(problem.names)), problem.members], axis=1)
    return [float(value) for value in np.sqrt(np.einsum("ij,jk,ik->i", own, around, own))]
