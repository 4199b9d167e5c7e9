"""Values outside the NPU in 16 bits, and their weights in two pieces: which ones, found by
measuring, and a trial of 16 bits for all of them.

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
from splitter.widen.damage import Damage
from splitter.widen.rounding import Group, group_units
from splitter.widen.search import (
    Bench,
    Rated,
    Requantize,
    Step,
    blocks,
    gains,
    rate,
    samples_for,
    samples_to_judge,
    settle,
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
    fine = frozenset(judge.weighted(everything.tensors))
    best = judge.of_integers(everything.tensors, fine)
    gain = gains(judge.of_integers(frozenset()), best)
    if not gain:
        return Widening(samples=many)
    bench = judge
    if many > count:
        bench = Bench(floats, requantize, plan, spread(samples, count), task)
    rated = rate(bench, bench.of_group, groups, gain, threads=threads, step=step)

    def of_tensors(chosen: Sequence[Rated]) -> Damage:
        return judge.of_integers(_tensors(chosen), fine)

    chosen = settle(rated, of_tensors, gain, best)
    found = replace(everything, samples=many)
    if len(chosen) < len(rated):
        left = max(0.0, share(of_tensors(chosen), gain) - share(best, gain))
        found = Widening(_tensors(chosen), _units(chosen), samples=many, left=left)
    return replace(found, fine=_fine(judge, bench, found.tensors, threads=threads, step=step))


def _fine(
    judge: Bench, bench: Bench, wide: frozenset[str], *, threads: int, step: Step
) -> tuple[str, ...]:
    """The units whose weights are to take two pieces beside values of 16 bits."""
    units = judge.weighted(wide)
    best = judge.of_integers(wide, frozenset(units))
    gain = gains(judge.of_integers(wide), best)
    if not gain:
        return ()
    single = [Group((unit,), frozenset(), frozenset()) for unit in units]
    groups = blocks(single, bench.floats)
    rated = rate(bench, bench.of_weights, groups, gain, threads=threads, step=step)

    def of_units(chosen: Sequence[Rated]) -> Damage:
        return judge.of_integers(wide, frozenset(_units(chosen)))

    return _units(settle(rated, of_units, gain, best))


def _tensors(chosen: Sequence[Rated]) -> frozenset[str]:
    return frozenset(name for one in chosen for name in one.group.tensors)


def _units(chosen: Sequence[Rated]) -> tuple[str, ...]:
    return tuple(unit for one in chosen for unit in one.group.units)


def _all(floats: LiteGraph, plan: Plan) -> Widening:
    names = off_the_npu(floats, plan)
    units = dict.fromkeys(op.unit for op in floats.operators if names.intersection(op.outputs))
    return Widening(names, tuple(units), everything=True)
