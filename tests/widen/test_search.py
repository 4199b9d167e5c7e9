"""`--int16 auto`: the units that matter are found, on a real graph in the real runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from splitter.plan import Cost, Plan, Segment
from splitter.quantize import calibrate, quantize, rearranged
from splitter.quantize.precision import precision
from splitter.tail import Lead, halves, real, run_float
from splitter.tflite.types import Array, LiteGraph, Operator, Tensor
from splitter.verify import Task
from splitter.widen import choose_widths, prepare_trial, widen
from splitter.widen.damage import Damage
from splitter.widen.rounding import Group, group_units, rounded
from splitter.widen.search import Rated, blocks, choose, settle
from splitter.width import Widening

NONE = Task("none", "")
PLAN = Plan(
    "",
    (Segment("npu", ("lead",)), Segment("cpu", ("coarse", "big", "fine", "spare", "free"))),
    {},
    Cost(0, 0, 0, 0),
)
RNG = np.random.default_rng(3)


def model() -> LiteGraph:
    """A small number under a large constant loses much in 8 bits; `little` matters to nobody."""
    tensors = {
        name: Tensor(name, (1, 32), "float32")
        for name in ("x", "features", "sum", "back", "fine_sum", "little", "free_out")
    }
    data = {
        "weights": RNG.normal(0, 0.2, (32, 32)),
        "bias": np.zeros(32),
        "hundred": np.full((1, 32), 100.0),
        "minus": np.full((1, 32), -100.0),
        "thousandth": RNG.uniform(0.001, 0.002, (1, 32)),
        "factors": RNG.uniform(0.3, 0.9, (1, 32)),
    }
    tensors |= {n: Tensor(n, d.shape, "float32", d.astype(np.float32)) for n, d in data.items()}
    plain = {"fused_activation_function": "NONE"}
    operators = (
        Operator("FULLY_CONNECTED", ("x", "weights", "bias"), ("features",), plain, "lead"),
        Operator("ADD", ("features", "hundred"), ("sum",), plain, "big"),
        Operator("ADD", ("sum", "minus"), ("back",), plain, "coarse"),
        Operator("MUL", ("features", "factors"), ("fine_sum",), plain, "fine"),
        Operator("MUL", ("features", "thousandth"), ("little",), plain, "spare"),
        Operator("ADD", ("fine_sum", "little"), ("free_out",), plain, "free"),
    )
    return LiteGraph(("x",), ("back", "free_out"), tensors, operators)


SAMPLES = [{"x": RNG.normal(0, 1, (1, 32)).astype(np.float32)} for _ in range(6)]


class Case:
    """The model with its ranges, and integer graphs of it by width."""

    def __init__(self) -> None:
        self.lite = model()
        self.ranges = calibrate(self.lite, SAMPLES, threads=1)
        self.floats = rearranged(self.lite, self.ranges)
        self.integer = cache(self._integer)

    def _integer(self, wide: frozenset[str], fine: frozenset[str] = frozenset()) -> LiteGraph:
        return quantize(self.lite, self.ranges, npu={"lead"}, int16=wide, fine=fine)

    def widen(self, *, threads: int = 1) -> Widening:
        return widen(self.floats, self.integer, PLAN, SAMPLES, task=NONE, threads=threads)


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_the_units_that_lose_most_take_sixteen_bits(case: Case) -> None:
    found = case.widen()
    assert {"big", "coarse"} <= set(found.units)
    assert {"sum", "back"} <= found.tensors
    assert "spare" not in found.units
    assert "features" not in found.tensors
    assert 0.0 <= found.left <= 0.01
    assert found.samples == 6


def test_the_choice_does_not_depend_on_threads(case: Case) -> None:
    assert case.widen(threads=1) == case.widen(threads=3)


def test_named_tensors_are_kept_beside_the_chosen_ones(case: Case) -> None:
    def chosen(*asked: str) -> Widening:
        named = {"free": frozenset(["free_out"])}
        return choose_widths(
            asked,
            named,
            case.floats,
            case.integer,
            PLAN,
            SAMPLES,
            task=NONE,
            threads=1,
            step=lambda done, total: None,
        )

    assert chosen("free") == Widening(frozenset(["free_out"]), ("free",))
    assert {"free_out", "sum"} <= chosen("auto", "free").tensors


def test_what_is_chosen_has_sixteen_bits_in_the_integer_graph_and_the_lead_is_unchanged(
    case: Case,
) -> None:
    wide = case.integer(case.widen().tensors)
    assert precision(wide).bits["sum"] == 16
    assert precision(wide).bits["features"] == 8
    eight = case.integer(frozenset())
    assert wide.tensors["features"] == eight.tensors["features"]


def test_a_trial_takes_what_the_int8_part_hands_on_and_is_closer_to_float(case: Case) -> None:
    eight = case.integer(frozenset())
    trial = prepare_trial(case.floats, eight, case.integer, PLAN, runs=3)
    assert trial.tail is not None and trial.runs == 3
    graph = trial.tail.graph
    assert graph.inputs == halves(eight, PLAN)[1].inputs
    assert {t.dtype for n, t in graph.tensors.items() if n in ("sum", "back")} == {"int16"}


def test_no_trial_where_sixteen_bits_were_asked_for(case: Case) -> None:
    eight = case.integer(frozenset())
    asked = prepare_trial(case.floats, eight, case.integer, PLAN, runs=3, asked=("auto",))
    assert asked.tail is None and not asked.why


def test_a_group_is_a_unit_with_its_values_and_what_it_reads_from_others(case: Case) -> None:
    tail, integer = (halves(g, PLAN)[1] for g in (case.floats, case.integer(frozenset())))
    groups = {g.units[0]: g for g in group_units(tail, integer, {"big", "coarse", "fine", "free"})}
    assert groups["big"].tensors == {"sum"}
    codes = [(tail.operators[i].outputs[0], p) for i, p in groups["coarse"].edges]
    assert codes == [("back", 0)]


def test_rounding_a_group_alone_is_what_the_integers_do_there(case: Case) -> None:
    eight = case.integer(frozenset())
    lead, integer = halves(eight, PLAN)
    tail = halves(case.floats, PLAN)[1]
    (group,) = (g for g in group_units(tail, integer, {"fine"}))
    border = real(integer, Lead(lead, integer).run(SAMPLES[0]))
    exact, coarse = (run_float(g, [border])[0] for g in (tail, rounded(tail, integer, group)))
    q = integer.tensors["fine_sum"].quantization
    assert q is not None
    steps: Array = (coarse["free_out"] - exact["free_out"]) / q.scale[0]
    assert 0.1 < np.abs(steps).max() < 0.51
    np.testing.assert_array_equal(exact["back"], coarse["back"])


def test_most_error_for_the_work_goes_first_until_little_is_left(case: Case) -> None:
    tail, integer = (halves(g, PLAN)[1] for g in (case.floats, case.integer(frozenset())))
    one, two, three, *_ = group_units(tail, integer, {"big", "coarse", "fine", "free"})
    rated = [Rated(one, 0.05, 10.0), Rated(two, 0.5, 1e9), Rated(three, 0.45, 10.0)]
    assert [r.group for r in choose(rated, 0.1)] == [three, one, two]
    assert [r.group for r in choose(rated, 0.6)] == [three]
    assert choose(rated, 1.0) == []


def test_blocks_hold_every_unit_once_in_order(case: Case) -> None:
    tail, integer = (halves(g, PLAN)[1] for g in (case.floats, case.integer(frozenset())))
    groups = group_units(tail, integer, {"big", "coarse", "fine", "free"})
    joined = blocks(groups, tail)
    assert [u for g in joined for u in g.units] == [u for g in groups for u in g.units]


def test_units_that_were_rated_harmless_are_still_taken_in_when_more_are_wanted() -> None:
    """A few samples may show no changed answer for any unit alone."""
    rated = [Rated(Group((name,), frozenset([name]), frozenset()), 0.0, 1.0) for name in "abcd"]
    assert choose(rated, 0.1) == []
    assert [one.group.units[0] for one in choose(rated, 0.1, least=3)] == ["a", "b", "c"]


def test_what_stays_at_eight_bits_costs_at_most_a_tenth_of_the_error() -> None:
    rated = [
        Rated(Group((name,), frozenset(), frozenset()), share, 0.0)
        for name, share in (("much", 0.9), ("some", 0.06), ("little", 0.035), ("least", 0.005))
    ]

    def judged(chosen: Sequence[Rated]) -> Damage:
        return {"y": 1.0 - sum(one.share for one in chosen)}

    chosen = settle(rated, judged, {"y": 1.0}, {"y": 0.0})
    assert [one.group.units for one in chosen] == [("much",), ("some",), ("little",)]
