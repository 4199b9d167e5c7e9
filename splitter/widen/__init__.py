"""Values outside the NPU in 16 bits: which ones, found by measuring, and a trial of all of them.

search    units rated one by one, and chosen: `--int16 auto`
rounding  float graphs in which some units compute as in 8 bits
damage    how much worse outputs are than others
trial     what 16 bits would gain in a run that did not ask for them
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from splitter.graph import Array
from splitter.plan import Plan
from splitter.tail import halves
from splitter.tflite.types import LiteGraph
from splitter.verify import Task
from splitter.widen.rounding import group_units
from splitter.widen.search import (
    LEFT,
    Bench,
    Rated,
    Requantize,
    Step,
    blocks,
    choose,
    gains,
    rate,
    samples_for,
    samples_to_judge,
    share,
    spread,
)
from splitter.widen.trial import prepare_trial
from splitter.width import AUTO, Widening, free_inputs, off_the_npu, units_on

__all__ = ["choose_widths", "prepare_trial", "widen"]


def choose_widths(
    asked: Sequence[str],
    named: Mapping[str, Collection[str]],
    floats: LiteGraph,
    requantize: Requantize,
    plan: Plan,
    samples: Sequence[Mapping[str, Array]],
    *,
    task: Task,
    threads: int,
    step: Step,
) -> Widening:
    """What `--int16` asks for. named: the tensors of each name among it (`width.find_tensors`)."""
    tensors = frozenset(name for names in named.values() for name in names)
    if AUTO not in asked:
        return Widening(tensors, tuple(named))
    found = widen(floats, requantize, plan, samples, task=task, threads=threads, step=step)
    return replace(found, tensors=found.tensors | tensors, units=(*named, *found.units))


def widen(
    floats: LiteGraph,
    requantize: Requantize,
    plan: Plan,
    samples: Sequence[Mapping[str, Array]],
    *,
    task: Task,
    threads: int = 2,
    step: Step = lambda done, total: None,
) -> Widening:
    """The tensors that take 16 bits by `--int16 auto`, measured on `samples`.

    floats: the float graph that the integers stand for (`quantize.rearranged`). requantize: tensors
    of 16 bits -> the integer graph. The same samples always give the same choice.
    """
    everything = _all(floats, plan)
    tail, integer = halves(floats, plan)[1], halves(requantize(frozenset()), plan)[1]
    if not set(tail.inputs) <= set(integer.inputs):
        return everything
    single = group_units(tail, integer, units_on(plan, "cpu"), free_inputs(floats, plan))
    if not single:
        return Widening()
    groups = blocks(single, tail)
    count = samples_for(tail, len(groups), len(samples))
    many = samples_to_judge(tail, count, len(samples))
    judge = Bench(floats, requantize, plan, spread(samples, many), task)
    best = judge.of_integers(everything.tensors)
    gain = gains(judge.of_integers(frozenset()), best)
    if not gain:
        return Widening(samples=many)
    bench = judge
    if many > count:
        bench = Bench(floats, requantize, plan, spread(samples, count), task)
    rated = rate(bench, groups, gain, threads=threads, step=step)
    return _settle(judge, rated, gain, best=share(best, gain)) or everything


def _settle(
    bench: Bench, rated: Sequence[Rated], gain: Mapping[str, float], *, best: float
) -> Widening | None:
    """The least choice whose integers hold what the rating promised; None when that is all."""
    promised, least = LEFT, 0
    while len(chosen := choose(rated, promised, least=least)) < len(rated):
        names = frozenset(name for one in chosen for name in one.group.tensors)
        left = share(bench.of_integers(names), gain) - best
        if left <= LEFT:
            units = tuple(unit for one in chosen for unit in one.group.units)
            return Widening(names, units, samples=len(bench.samples), left=max(0.0, left))
        promised, least = promised / 2, 2 * len(chosen) + 1  # few judgments, whatever the ratings
    return None


def _all(floats: LiteGraph, plan: Plan) -> Widening:
    names = off_the_npu(floats, plan)
    units = dict.fromkeys(op.unit for op in floats.operators if names.intersection(op.outputs))
    return Widening(names, tuple(units), everything=True)
