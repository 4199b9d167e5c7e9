"""Cut one LiteGraph into parts at segment borders.

Decides nothing of the numbers: every tensor keeps its name, type, scale and zero point, so parts
run one after another compute what the whole computes, bit for bit. A part's inputs are the tensors
that earlier parts made and the model's own inputs; its outputs are what later parts read and the
model's own outputs. Constants are copied into each part that reads them and are never a boundary.
Leaves where to cut to `partition`, and how values get from part to part to the glue: by name.

A model output that is also a model input is in no part: it is there before any part runs. A model
output that is a constant is an output of the last part.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from splitter.diagnostics import nearest
from splitter.plan import Device, Plan
from splitter.tflite.options import INTERMEDIATES
from splitter.tflite.types import LiteGraph, Operator


@dataclass(frozen=True)
class Part:
    """What runs on one device in one go. Parts run in order."""

    device: Device
    graph: LiteGraph


def carve(graph: LiteGraph, plan: Plan) -> tuple[Part, ...]:
    """The parts of a plan, in order; a segment whose units emitted no operator makes none.

    ValueError (a bug of the caller) for an operator whose unit is in no segment, or a segment that
    reads a later one.
    """
    place = {unit: i for i, segment in enumerate(plan.segments) for unit in segment.units}
    groups: list[list[int]] = [[] for _ in plan.segments]
    for index, op in enumerate(graph.operators):
        if op.unit not in place:
            raise ValueError(f"{_label(op)} is of unit {op.unit!r}; {nearest(op.unit, place)}")
        groups[place[op.unit]].append(index)
    filled = [
        (segment.device, group)
        for segment, group in zip(plan.segments, groups, strict=True)
        if group
    ]
    graphs = cut(graph, [group for _, group in filled])
    return tuple(Part(device, part) for (device, _), part in zip(filled, graphs, strict=True))


def cut(graph: LiteGraph, groups: Sequence[Collection[int]]) -> tuple[LiteGraph, ...]:
    """One LiteGraph for each group of operator indices; operators keep their order in a group.

    ValueError (a bug of the caller) when the groups do not hold every operator once, when one is
    empty, or when one reads a tensor that a later one makes.
    """
    _check_cover(graph, groups)
    home = {index: number for number, group in enumerate(groups) for index in group}
    maker, readers = _makers(graph, home), _readers(graph, home)
    _check_order(graph, home, maker)
    return tuple(
        _part(graph, number, sorted(group), maker, readers, last=number == len(groups) - 1)
        for number, group in enumerate(groups)
    )


def without(graph: LiteGraph, gone: Collection[int]) -> LiteGraph:
    """The graph less these operators: what they read becomes an output, what they make an input."""
    home = {index: int(index in gone) for index in range(len(graph.operators))}
    kept = [index for index, number in home.items() if not number]
    return _part(graph, 0, kept, _makers(graph, home), _readers(graph, home), last=False)


def prefix_positions(graph: LiteGraph) -> tuple[int, ...]:
    """Every k such that operators [0, k) and the rest can be two parts.

    Operators are in execution order, so that is every k from 1 to their number less one, save where
    state that an operator keeps from run to run would be torn apart.
    """
    torn: set[int] = set()
    for positions in _shared_state(graph):
        torn.update(range(min(positions) + 1, max(positions) + 1))
    return tuple(k for k in range(1, len(graph.operators)) if k not in torn)


def unit_positions(graph: LiteGraph) -> tuple[int, ...]:
    """The prefix positions that tear no unit apart."""
    last: dict[str, int] = {}
    for index, op in enumerate(graph.operators):
        last[op.unit] = index
    open_until = 0
    borders = set()
    for index, op in enumerate(graph.operators):
        if index >= open_until:
            borders.add(index)
        open_until = max(open_until, last[op.unit] + 1)
    return tuple(k for k in prefix_positions(graph) if k in borders)


def _check_cover(graph: LiteGraph, groups: Sequence[Collection[int]]) -> None:
    listed = [index for group in groups for index in group]
    if sorted(listed) != list(range(len(graph.operators))):
        raise ValueError(
            f"the groups must hold each of the {len(graph.operators)} operators once; "
            f"they hold {len(listed)} indices, {len(set(listed))} different ones"
        )
    for number, group in enumerate(groups):
        if not group:
            raise ValueError(f"group {number} holds no operator")


def _check_order(graph: LiteGraph, home: dict[int, int], maker: dict[str, int]) -> None:
    for index, op in enumerate(graph.operators):
        for name in op.inputs:
            if maker.get(name, 0) > home[index]:
                raise ValueError(
                    f"part {home[index]} would read {name} ({_label(op)}), "
                    f"which the later part {maker[name]} makes"
                )
    for positions in _shared_state(graph):
        if len({home[index] for index in positions}) > 1:
            names = ", ".join(_label(graph.operators[index]) for index in positions)
            raise ValueError(f"operators of one state must be in one part: {names}")


def _shared_state(graph: LiteGraph) -> list[list[int]]:
    """Operator indices by tensor that nothing makes or gives: state, kept from run to run."""
    given = set(graph.inputs) | set(graph.producers)
    users: dict[str, list[int]] = {}
    for index, op in enumerate(graph.operators):
        for name in dict.fromkeys(op.inputs):
            if name and name not in given and not graph.is_constant(name):
                users.setdefault(name, []).append(index)
    return list(users.values())


def _makers(graph: LiteGraph, home: dict[int, int]) -> dict[str, int]:
    operators = enumerate(graph.operators)
    return {name: home[index] for index, op in operators for name in op.outputs if name}


def _readers(graph: LiteGraph, home: dict[int, int]) -> dict[str, set[int]]:
    readers: dict[str, set[int]] = {}
    for index, op in enumerate(graph.operators):
        for name in op.inputs:
            readers.setdefault(name, set()).add(home[index])
    return readers


def _part(
    graph: LiteGraph,
    number: int,
    indices: Sequence[int],
    maker: dict[str, int],
    readers: dict[str, set[int]],
    *,
    last: bool,
) -> LiteGraph:
    operators = tuple(graph.operators[index] for index in indices)
    used = {name for op in operators for name in _names(op)}
    made = [name for op in operators for name in op.outputs if name]
    # In the order the values come to be: model inputs first, as the whole model has them.
    order = dict.fromkeys(
        [*graph.inputs, *(name for op in graph.operators for name in op.outputs if name)]
    )
    inputs = tuple(
        name
        for name in order
        if name in used and maker.get(name, -1) != number and not graph.is_constant(name)
    )
    own = set(made)
    results = [
        name
        for name in graph.outputs
        if name in own or (last and graph.is_constant(name) and name not in maker)
    ]
    boundary = [name for name in made if any(r > number for r in readers.get(name, ()))]
    outputs = tuple(dict.fromkeys([*results, *boundary]))
    held = used.union(outputs)
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in held}
    return LiteGraph(inputs, outputs, tensors, operators)


def _names(op: Operator) -> tuple[str, ...]:
    inner = op.options.get(INTERMEDIATES, ())
    return tuple(name for name in (*op.inputs, *op.outputs, *inner) if name)


def _label(op: Operator) -> str:
    return f"{op.code} writing {', '.join(op.outputs)}"
