"""What 16 bits outside the NPU would gain in a run that did not ask for them: measured beside it.

Decides whether that is cheap enough, and on how many runs. `verify` weighs what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitter.diagnostics import SplitterError
from splitter.plan import Plan
from splitter.tail import NO_TRIAL, IntegerTail, Trial, halves, same_border
from splitter.tflite.facts import macs
from splitter.tflite.runtime import KernelError
from splitter.tflite.types import LiteGraph
from splitter.widen.search import Requantize
from splitter.width import off_the_npu

WORK = 5e9
"""Multiply-accumulates in 16 bits that the trial may run: about ten seconds on one core, where the
kernels of LiteRT do 0.6 billion a second (RF-DETR Nano, CPU part)."""

FEWEST = 4
"""Fewer runs than this say nothing."""


def prepare_trial(
    floats: LiteGraph,
    whole: LiteGraph,
    requantize: Requantize,
    plan: Plan,
    *,
    runs: int,
    asked: Sequence[str] = (),
) -> Trial:
    """What to run beside the int8 model; nothing when 16 bits were asked for.

    floats: the float graph. whole: the integer graph. runs: how many there will be.
    """
    if asked:
        return NO_TRIAL
    everything = off_the_npu(floats, plan)
    tail = halves(whole, plan)[1]
    if not everything or not tail.operators:
        return NO_TRIAL
    once = sum(macs(tail, op) for op in tail.operators)
    possible = min(runs, int(WORK / max(1, once)))
    if possible < min(FEWEST, runs):
        return Trial(why="what they would gain was not tried, the part there is too large for it")
    try:
        wide = halves(requantize(everything), plan)[1]
        if same_border(wide, tail):
            return Trial(IntegerTail(wide), possible)
    except (SplitterError, KernelError):
        return Trial(why="not every operator there has a form in 16 bits")
    return NO_TRIAL
