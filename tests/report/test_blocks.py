"""How units are gathered into blocks for the picture."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.plan import Device
from splitter.report.blocks import LARGEST, group_blocks
from splitter.report.placement import Placement


def unit(name: str, op: str = "Add", device: Device = "npu") -> Placement:
    return Placement(name, op, (), device, 0, "", (), 0, 0.0, 0)


def layers(count: int, ops: tuple[str, ...]) -> list[Placement]:
    return [
        unit(f"/net/encoder/layer.{index}/mlp/{op}_{n}", op)
        for index in range(count)
        for n, op in enumerate(ops)
    ]


def test_layers_become_blocks_and_equal_ones_are_marked() -> None:
    blocks = group_blocks([layers(4, ("MatMul", "Gelu", "MatMul", "Add") * 6)])
    assert [block.title for block in blocks] == [f"encoder › layer.{i}" for i in range(4)]
    assert [block.repeats for block in blocks] == [-1, 0, 0, 0]


def test_a_block_never_crosses_from_part_to_part() -> None:
    every = layers(1, ("Add",) * 20)
    blocks = group_blocks([every[:7], every[7:]])
    assert [len(block.units) for block in blocks] == [7, 13]
    assert [block.segment for block in blocks] == [0, 1]


def test_names_without_scopes_are_cut_into_blocks_that_can_be_drawn() -> None:
    blocks = group_blocks([[unit(f"node_{index}") for index in range(3 * LARGEST)]])
    assert len(blocks) == 3
    assert blocks[0].title == "top of the model"


def test_a_single_unit_of_another_scope_joins_its_neighbor() -> None:
    run = layers(1, ("Add",) * 5)
    blocks = group_blocks([[*run[:3], unit("transpose/1"), *run[3:]]])
    assert len(blocks) == 1


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "layer.0", "layer.1"]), max_size=3), max_size=200),
    st.integers(0, 200),
)
def test_every_unit_is_in_one_block_and_the_order_is_kept(
    paths: list[list[str]], border: int
) -> None:
    units = [unit("/".join([*path, f"n{index}"])) for index, path in enumerate(paths)]
    segments = [part for part in (units[:border], units[border:]) if part]
    blocks = group_blocks(segments)
    assert [u.unit for block in blocks for u in block.units] == [u.unit for u in units]
    assert all(len(block.units) <= LARGEST for block in blocks)
