"""The search behind `--int16 auto`: which units outside the NPU compute in 16 bits.

Each unit alone is put to 8 bits in an otherwise exact graph, and what that does to the outputs is
measured. Errors of independent roundings add up as squares, so the units that may stay at 8 bits
are those whose errors together are LEFT of what 8 bits everywhere cost. The choice is then measured
on the integers themselves, and widened until it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from splitter.graph import Array
from splitter.plan import Plan
from splitter.quantize.fine import rounded_weights
from splitter.quantize.kernels import KERNELS
from splitter.tail import IntegerTail, Lead, halves, real, run_float, same_border
from splitter.tflite.facts import macs
from splitter.tflite.types import LiteGraph
from splitter.verify import Task
from splitter.widen.damage import Damage, Outputs, damage
from splitter.widen.rounding import Group, rounded
from splitter.width import free_inputs

LEFT = 0.01
"""Share of what 8 bits cost, as squared error, that may stay: a tenth of the error. With a tenth of
its square, a third of the error, a text recognizer kept 21 of 24 lines where 24 were possible."""
WORK = 2e11
"""Multiply-accumulates that the search may run in float: about a minute on one core."""
JUDGED = 6e9
"""Multiply-accumulates in 16 bits for one judgment of integers: about ten seconds on one core."""
SAMPLES = 16
"""Samples used at most."""
CALL = 50_000
"""What a unit of 16 bits costs besides its own work, as multiply-accumulates: a change of type on
its edges, about as long as the call of an operator (rules/imx95.toml, CPU operator)."""
REAL = 1.3
"""A figure counts when 8 bits cost at least so many times what 16 bits still do: an eighth of
it, as an error, can be gained."""


class Requantize(Protocol):
    """Tensors of 16 bits, units with weights in two pieces -> the integer graph; asked for the same
    ones again, it should remember."""

    def __call__(self, wide: frozenset[str], fine: frozenset[str] = frozenset(), /) -> LiteGraph:
        """The integer graph."""


Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Rated:
    """A group with the share of what 8 bits cost that it causes, and its work (MACs a sample)."""

    group: Group
    share: float
    work: float


class Bench:
    """The part of the model outside the leading NPU part, in float and in integers, on samples."""

    def __init__(
        self,
        floats: LiteGraph,
        requantize: Requantize,
        plan: Plan,
        samples: Sequence[Mapping[str, Array]],
        task: Task,
    ) -> None:
        self._requantize, self._plan, self._task = requantize, plan, task
        self.samples = samples
        lead, self.integer = halves(requantize(frozenset()), plan)
        self.floats = halves(floats, plan)[1]
        runner = Lead(lead, self.integer)
        self._borders = [runner.run(sample) for sample in samples]
        free = free_inputs(floats, plan)
        self._reals = [
            real(self.integer, border) | {name: sample[name] for name in free}
            for border, sample in zip(self._borders, samples, strict=True)
        ]
        self._reference = run_float(self.floats, self._reals)

    def of_integers(self, wide: frozenset[str], fine: frozenset[str] = frozenset()) -> Damage:
        """What the integer form does, against float, with these tensors in 16 bits and the weights
        of these units in two pieces."""
        lead, tail = halves(self._requantize(wide, fine), self._plan)
        borders = self._borders
        if not same_border(tail, self.integer):
            runner = Lead(lead, tail)
            borders = [runner.run(sample) for sample in self.samples]
        runtime = IntegerTail(tail)
        return self._damage([runtime.run(border) for border in borders])

    def of_group(self, group: Group) -> Damage:
        """What 8 bits in this group alone do."""
        return self._damage(run_float(rounded(self.floats, self.integer, group), self._reals))

    def of_weights(self, group: Group) -> Damage:
        """What the weights of this group alone do in 8 bits."""
        graph = self.floats
        for unit in group.units:
            graph = rounded_weights(graph, unit)
        return self._damage(run_float(graph, self._reals))

    def weighted(self, wide: frozenset[str]) -> tuple[str, ...]:
        """Units with weights that compute in 16 bits then, in the order of the graph."""
        tail = halves(self._requantize(wide), self._plan)[1]
        found = (op for op in tail.operators if op.code in KERNELS and KERNELS[op.code].weighted)
        wider = (op for op in found if tail.tensors[op.outputs[0]].dtype == "int16")
        return tuple(dict.fromkeys(op.unit for op in wider))

    def _damage(self, made: Sequence[Outputs]) -> Damage:
        return damage(self._task, self._reference, made)


def gains(eight: Damage, sixteen: Damage) -> Mapping[str, float]:
    """What 16 bits everywhere gain, for the figures in which that is much."""
    return {
        name: cost - sixteen[name]
        for name, cost in eight.items()
        if cost > REAL * sixteen[name] and cost > 0.0
    }


def share(cost: Damage, gain: Mapping[str, float]) -> float:
    """A cost relative to what can be gained, the mean over the figures that count."""
    return float(np.mean([max(0.0, cost.get(name, 0.0)) / gain[name] for name in gain]))


def rate(
    bench: Bench,
    measure: Callable[[Group], Damage],
    groups: Sequence[Group],
    gain: Mapping[str, float],
    *,
    threads: int,
    step: Step,
) -> list[Rated]:
    """Every group measured; the result does not depend on `threads`."""
    work = unit_work(bench.floats)
    rated = []
    with ThreadPoolExecutor(threads) as pool:
        for group, cost in zip(groups, pool.map(measure, groups), strict=True):
            total = sum(work.get(unit, 0.0) for unit in group.units)
            rated.append(Rated(group, share(cost, gain), total))
            step(len(rated), len(groups))
    return rated


def choose(rated: Sequence[Rated], left: float, *, least: int = 0) -> list[Rated]:
    """The groups to widen, so that the shares of the others sum up to at most `left`.

    least: so many groups anyway. Most error for the work first; of equals the earlier one.
    """
    order = sorted(range(len(rated)), key=lambda i: (-rated[i].share / (rated[i].work + CALL), i))
    rest = sum(one.share for one in rated)
    chosen: list[Rated] = []
    for i in order:
        if rest <= left and len(chosen) >= least:
            break
        chosen.append(rated[i])
        rest -= rated[i].share
    return chosen


def settle(
    rated: Sequence[Rated],
    judge: Callable[[Sequence[Rated]], Damage],
    gain: Mapping[str, float],
    best: Damage,
) -> Sequence[Rated]:
    """The least choice whose integers hold what the rating promised; else all."""
    promised, least = LEFT, 0
    while len(chosen := choose(rated, promised, least=least)) < len(rated):
        if share(judge(chosen), gain) - share(best, gain) <= LEFT:
            return chosen
        promised, least = promised / 2, 2 * len(chosen) + 1  # few judgments, whatever the ratings
    return rated


def unit_work(graph: LiteGraph) -> Mapping[str, float]:
    """Multiply-accumulates and elements written, by unit."""
    work: dict[str, float] = {}
    for op in graph.operators:
        written = sum(graph.tensors[name].elements for name in op.outputs)
        work[op.unit] = work.get(op.unit, 0.0) + macs(graph, op) + written
    return work


def samples_for(graph: LiteGraph, groups: int, given: int) -> int:
    """How many samples the work allows, at least one."""
    once = sum(unit_work(graph).values()) * max(1, groups)
    return max(1, min(SAMPLES, given, int(WORK / max(1.0, once))))


def samples_to_judge(graph: LiteGraph, rated: int, given: int) -> int:
    """How many samples integers are judged on, at least as many as units are rated on: a few
    changed answers say more than one."""
    once = sum(unit_work(graph).values())
    return max(rated, min(SAMPLES, given, int(JUDGED / max(1.0, once))))


def spread(samples: Sequence[Mapping[str, Array]], count: int) -> Sequence[Mapping[str, Array]]:
    """So many of the samples, from all over them."""
    return samples[:: len(samples) // count][:count]


def blocks(groups: Sequence[Group], graph: LiteGraph) -> list[Group]:
    """The groups, neighbors joined until one sample through each is within the work allowed."""
    once = sum(unit_work(graph).values())
    count = max(1, min(len(groups), int(WORK / max(1.0, once))))
    bounds = [round(i * len(groups) / count) for i in range(count + 1)]
    joined = []
    for low, high in pairwise(bounds):
        block = groups[low]
        for group in groups[low + 1 : high]:
            block = block.merged(group)
        joined.append(block)
    return joined
