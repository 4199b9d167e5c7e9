"""Where every unit sits: which segments, on which device, in which order.

Decides the candidates and their order, the one to carry out first. Verdicts are `support`'s, times
`latency`'s, the search itself `segments`'. A plan with more segments must save enough to be worth
its further files and calls, unless the user says how many there may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitter.graph import Graph
from splitter.partition.mincut import ancestors, possible
from splitter.partition.planner import Planner, prefixed, problem_of, title_of
from splitter.partition.segments import Placement, Shape
from splitter.partition.stages import pinned
from splitter.partition.wishes import NO_MAKERS, Wishes, read_wishes, refuse_impossible
from splitter.plan import Plan, Segment, Support
from splitter.rules.schema import Target

SEGMENTS = 5
"""Segments that are tried unless the user says otherwise: two islands on the CPU."""

ALL_CPU = "all on the CPU"
LARGEST = "as much as possible on the NPU, two segments"


def plan(
    graph: Graph,
    support: Support,
    target: Target,
    *,
    npu: Sequence[str] = (),
    cpu: Sequence[str] = (),
    cut: Sequence[str] = (),
    max_segments: int | None = None,
    npu_segments: int | None = 1,
    look: int = SEGMENTS,
    makers: Mapping[str, str] = NO_MAKERS,
) -> tuple[Plan, ...]:
    """The candidates: the one to carry out, then the others, best first, more segments among them.

    npu, cpu: names of what must sit there. cut: names of what the first segment, on the NPU, ends
    at; two segments are made unless more are allowed. makers, names: as in `read_wishes`.
    max_segments: at most so many, the quickest plan; None: more than two where that pays off, and
    at most npu_segments of them on the NPU (None: any number), CPU segments before and behind.
    look: other candidates have up to so many segments; fewer are found sooner.
    Raises SplitterError for names that do not exist and wishes that cannot be.
    """
    at_all = SEGMENTS if npu_segments is None else 2 * npu_segments + 1
    most = max_segments or (2 if cut else at_all)
    wishes = read_wishes(graph, npu=npu, cpu=cpu, cut=cut, makers=makers)
    free = problem_of(graph, support, target)
    problem = pinned(free, npu=wishes.npu, cpu=wishes.cpu)
    prefix = ancestors(problem, wishes.cut)
    must = wishes.npu | prefix if most > 2 else ancestors(problem, wishes.npu | wishes.cut)
    refuse_impossible(graph, support, free, wishes, must)
    planner = Planner(graph, support, target, problem)
    if not target.has_npu:
        return (planner.plan(ALL_CPU, (1,) * len(graph.units)),)
    found = planner.best(max(most, look))
    if cut:
        first = planner.cut(prefix, most, title=wishes.title(cut))
    else:
        calls = None if max_segments else npu_segments
        first = planner.chosen(found, most, calls=calls, thrifty=max_segments is None)
    return _ranked(planner, first, found, wishes)


def _ranked(
    planner: Planner, first: Plan, found: Mapping[Shape, Placement], wishes: Wishes
) -> tuple[Plan, ...]:
    """The chosen plan, then the best of every number of segments and the plain ones, by time."""
    others = [planner.plan(title_of(one.levels), one.levels) for one in found.values()]
    largest = possible(planner.problem)
    if largest and not wishes.npu - largest:
        others.append(planner.plan(LARGEST, prefixed(planner.problem, largest)))
    if not wishes.npu:
        others.append(planner.plan(ALL_CPU, (1,) * len(planner.problem.outside)))
    unlike: dict[tuple[Segment, ...], Plan] = {first.segments: first}
    for other in sorted(others, key=lambda one: one.cost.total_ms):
        unlike.setdefault(other.segments, other)
    return tuple(unlike.values())
