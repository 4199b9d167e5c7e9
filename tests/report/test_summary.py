"""What is counted, and that it adds up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from splitter.plan import Cost, Plan, Segment
from splitter.report import ReportData, Summary
from splitter.report.placement import BEHIND, CHEAPER, place_units


def test_every_unit_is_placed_once(data: ReportData, summary: Summary) -> None:
    placed = [placement.unit for placement in summary.placements]
    assert sorted(placed) == sorted(unit.name for unit in data.graph.units)


def test_shares_of_the_multiply_accumulates_add_up(summary: Summary) -> None:
    assert sum(part.mac_share for part in summary.parts) == pytest.approx(1.0)
    conv = 8 * 8 * 8 * 27
    assert sum(part.macs for part in summary.parts) == conv + 2 * 512 * 24


def test_the_boundary_is_what_one_part_writes_and_a_later_one_reads(
    data: ReportData, summary: Summary
) -> None:
    assert [row.bytes for row in summary.boundary] == [512]
    row = summary.boundary[0]
    assert (row.source, row.readers, row.dtype) == (0, (1,), "int8")
    tensor = data.whole.tensors[row.name]
    assert tensor.quantization is not None
    assert row.scale == tensor.quantization.scale[0]


def test_a_refused_unit_has_the_rule_and_its_followers_say_they_follow(summary: Summary) -> None:
    by_op = {group.op: group for group in summary.cpu_groups if group.grounds}
    assert "SIN" in by_op["Sin"].grounds[0].rule
    after = next(p for p in summary.placements if p.op == "Mul" and p.device == "cpu")
    assert after.why == BEHIND or after.reasons


@pytest.mark.parametrize("option", ["cut", "cpu"])
def test_what_was_asked_for_is_not_called_quicker(data: ReportData, option: str) -> None:
    alone = Plan("all on the CPU", (Segment("cpu", tuple(data.graph.unit)),), {}, Cost(0, 1, 0, 0))
    free = replace(data, candidates=(alone,))
    options = {**data.manifest.options, option: ("c",)}
    asked = replace(free, manifest=data.manifest.model_copy(update={"options": options}))
    assert CHEAPER in {row.why for row in place_units(free)}
    said = {row.why for row in place_units(asked)}
    assert CHEAPER not in said
    assert any(f"keeps to --{option} as given" in why for why in said)


def test_groups_hold_every_unit_of_the_cpu_and_the_dearest_is_first(summary: Summary) -> None:
    grouped = sorted(unit for group in summary.cpu_groups for unit in group.units)
    assert grouped == sorted(p.unit for p in summary.placements if p.device == "cpu")
    times = [group.ms for group in summary.cpu_groups]
    assert times == sorted(times, reverse=True)


def test_an_int8_model_has_eight_bits_a_value_and_no_float(summary: Summary) -> None:
    assert summary.precision.average == 8.0
    assert summary.float_tensors == 0


def test_operators_of_the_parts_are_those_of_the_whole(data: ReportData, summary: Summary) -> None:
    assert sum(part.operators for part in summary.parts) == len(data.whole.operators)


def test_every_figure_of_the_latency_model_names_its_source(summary: Summary) -> None:
    assert all(row.source and row.confidence and row.unit for row in summary.figures)
