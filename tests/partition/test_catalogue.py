"""Plans worth comparing: different, whole, and had again with the options that they name."""

from __future__ import annotations

import numpy as np

from splitter.graph import Graph, Unit, Value
from splitter.partition import plan
from splitter.partition.borders import block_borders
from splitter.partition.catalogue import EVERYTHING, FIRST_REFUSED, Catalogue, catalogue
from splitter.partition.mincut import Passage, Problem, ancestors
from splitter.rules.support import judge
from splitter.rules.targets import load_target


def residual(blocks: int) -> Graph:
    """Blocks of two products with an addition around, a sine after the last, and one more."""
    rng = np.random.default_rng(0)
    values = {"x": Value("x", (1, 64, 64), "float32"), "w": Value("w", (64, 64), "float32")}
    units = []

    def add(op: str, inputs: tuple[str, ...], output: str) -> str:
        values[output] = Value(output, (1, 64, 64), "float32")
        units.append(Unit(output, op, inputs, (output,), {"axis": -1}, (f"/{output}",)))
        return output

    at = add("FullyConnected", ("x", "w"), "stem")
    for block in range(blocks):
        inner = add("FullyConnected", (at, "w"), f"a{block}")
        inner = add("FullyConnected", (inner, "w"), f"b{block}")
        at = add("Add", (inner, at), f"sum{block}")
    last = add("FullyConnected", (add("Sin", (at,), "sine"), "w"), "y")
    weight = rng.normal(size=(64, 64)).astype(np.float32)
    return Graph(("x",), (last,), values, {"w": weight}, tuple(units))


NETWORK = residual(6)
IMX95 = load_target("imx95")
SUPPORT = judge(NETWORK, IMX95, trust="proxy")


def listed(**wishes: object) -> Catalogue:
    return catalogue(NETWORK, SUPPORT, IMX95, **wishes)  # type: ignore[arg-type]


def test_every_entry_is_another_placement_of_every_unit() -> None:
    entries = listed().entries
    assert len({entry.plan.segments for entry in entries}) == len(entries)
    for entry in entries:
        placed = [unit for segment in entry.plan.segments for unit in segment.units]
        assert sorted(placed) == sorted(unit.name for unit in NETWORK.units)


def test_the_first_entry_is_the_plan_that_is_carried_out() -> None:
    assert listed().entries[0].plan == plan(NETWORK, SUPPORT, IMX95, max_segments=2)[0]
    three = listed(max_segments=3).entries[0].plan
    assert three == plan(NETWORK, SUPPORT, IMX95, max_segments=3)[0]


def test_cuts_between_blocks_hand_over_one_tensor_and_can_be_asked_for() -> None:
    blocks = [entry for entry in listed(count=9).entries if entry.kind == "block"]
    assert len(blocks) >= 3
    for entry in blocks:
        option, names = entry.options
        assert option == "--cut" and names.startswith(("stem", "sum"))
        again = plan(NETWORK, SUPPORT, IMX95, cut=names.split(","))[0]
        assert again.segments == entry.plan.segments


def test_what_is_usually_done_is_among_them() -> None:
    named = {name: e.plan for e in listed().entries for name in (e.plan.name, *e.also)}
    assert "all on the CPU" in named
    greedy = named[EVERYTHING]
    assert [segment.device for segment in greedy.segments] == ["npu", "cpu", "npu"]
    late = listed(cpu=("b2",)).entries
    first = next(e.plan for e in late if FIRST_REFUSED in (e.plan.name, *e.also))
    assert first.segments[0].units == ("stem", "a0", "b0", "sum0", "a1", "b1", "sum1", "a2")


def test_a_cut_of_the_user_is_an_entry_with_its_option() -> None:
    asked = [entry for entry in listed(cuts=(("a3",), ("sum1",))).entries if entry.kind == "cut"]
    assert [entry.options for entry in asked] == [("--cut", "a3"), ("--cut", "sum1")]
    assert asked[0].plan.segments[0].units[-1] == "a3"


def test_pins_hold_in_every_entry() -> None:
    for entry in listed(cpu=("b2",), count=8).entries:
        assert entry.plan.device("b2") == "cpu"


def test_a_target_without_npu_has_one_entry() -> None:
    cpu = load_target("cpu")
    found = catalogue(NETWORK, judge(NETWORK, cpu, trust="proxy"), cpu)
    assert [entry.plan.name for entry in found.entries] == ["all on the CPU"]


def test_borders_are_closed_and_spread_over_the_work() -> None:
    chain = Problem(
        tuple(1.0 for _ in range(30)),
        tuple(float(1 + unit % 3) for unit in range(30)),
        tuple(Passage(unit, (unit + 1,), 1.0 + unit % 5) for unit in range(29)),
    )
    borders = block_borders(chain, 6)
    assert 4 <= len(borders) <= 6
    for border in borders:
        assert ancestors(chain, border.units) == set(border.units)
        assert border.tensors == 1
    assert all(border.ms == 1.0 for border in borders[1:-1])
