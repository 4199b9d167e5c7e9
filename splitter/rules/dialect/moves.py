"""Facts of ONNX operators that move, pick, pad and resize."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from splitter.rules.dialect.table import Fact, Family, Value
from splitter.rules.dialect.view import UNKNOWN, NodeView, aligned


def _permutation(view: NodeView) -> Value:
    """The permutation of the aligned shape; of all axes where the rank is over 4."""
    rank = len(view.shape())
    perm = [int(axis) for axis in view.node.attrs.get("perm", ())] or list(range(rank))[::-1]
    more = max(4 - rank, 0)
    return str([*range(more), *(axis + more for axis in perm)])


def _sides(*axes: int) -> Callable[[NodeView], Value]:
    def read(view: NodeView) -> Value:
        shape = aligned(view.shape())
        return prod(shape[axis] for axis in axes)

    return read


def _moves_last(view: NodeView) -> Value:
    """Where the last axis goes, counted from the front."""
    rank = len(view.shape())
    perm = [int(axis) for axis in view.node.attrs.get("perm", ())] or list(range(rank))[::-1]
    return perm.index(rank - 1)


N, C, H, W = range(4)
TRANSPOSE: Family = {
    "permutation": Fact(_permutation, 'of the shape as n, c, h, w, like "[0, 2, 3, 1]"'),
    "last_goes_to": Fact(_moves_last, "where the last axis goes"),
    "n": Fact(_sides(N), "n"),
    "c": Fact(_sides(C), "c"),
    "h": Fact(_sides(H), "h"),
    "w": Fact(_sides(W), "w"),
    "hw": Fact(_sides(H, W), "h * w"),
    "wc": Fact(_sides(W, C), "w * c"),
    "hc": Fact(_sides(H, C), "h * c"),
    "nc": Fact(_sides(N, C), "n * c"),
    "nh": Fact(_sides(N, H), "n * h"),
    "nw": Fact(_sides(N, W), "n * w"),
    "chw": Fact(_sides(C, H, W), "c * h * w"),
}


def _sliced(view: NodeView) -> tuple[int, ...] | None:
    axes = view.ints(3)
    starts = view.ints(1)
    if starts is None:
        return None
    rank = len(view.shape())
    return tuple(a % rank for a in axes) if axes else tuple(range(len(starts)))


def _unit_steps(view: NodeView) -> Value:
    if not view.name(4):
        return True
    steps = view.ints(4)
    return UNKNOWN if steps is None else all(step == 1 for step in steps)


def _slices_batch(view: NodeView) -> Value:
    axes = _sliced(view)
    return UNKNOWN if axes is None else any(axis == 0 for axis in axes)


def _parameters_constant(view: NodeView) -> Value:
    return all(view.is_constant(i) for i in range(1, len(view.node.inputs)) if view.name(i))


SLICE: Family = {
    "unit_steps": Fact(_unit_steps, "every step is 1"),
    "slices_first_axis": Fact(_slices_batch, "the first axis is sliced"),
    "parameters_constant": Fact(_parameters_constant, "all inputs but the data are constant"),
}
SPLIT: Family = {
    "parts": Fact(lambda v: len(v.node.outputs), "number of outputs"),
    "splits_first_axis": Fact(lambda v: v.axis(0) == 0, "the first axis is split"),
}


def _pads(view: NodeView) -> list[tuple[int, int]] | None:
    pads, rank = view.ints(1), len(view.shape())
    if pads is None:
        return None
    axes = view.ints(3) or tuple(range(rank))
    full = [(0, 0)] * rank
    for index, axis in enumerate(axes):
        full[axis % rank] = (pads[index], pads[index + len(axes)])
    return full


def _pads_plane_only(view: NodeView) -> Value:
    pads = _pads(view)
    return UNKNOWN if pads is None else not any(sum(pair) for pair in pads[:-2])


def _pad_value(view: NodeView) -> Value:
    if not view.name(2):
        return 0
    data = view.constant(2)
    return UNKNOWN if data is None or data.size != 1 else float(data.reshape(-1)[0])


PAD: Family = {
    "mode": Fact(lambda v: str(v.node.attrs.get("mode", "constant")), "constant, reflect, edge"),
    "value": Fact(_pad_value, "what is padded with"),
    "plane_only": Fact(_pads_plane_only, "only the last two axes are padded"),
    "parameters_constant": SLICE["parameters_constant"],
    "c": TRANSPOSE["c"],
    "h": TRANSPOSE["h"],
    "w": TRANSPOSE["w"],
}


def _gather_axis(view: NodeView) -> int:
    return view.axis(0)


def _leading(view: NodeView) -> Value:
    return prod(view.shape()[: _gather_axis(view)])


GATHER: Family = {
    "axis": Fact(lambda v: 4 + _gather_axis(v) - len(v.shape()), "axis of the aligned shape"),
    "indices_rank": Fact(lambda v: len(v.shape(1)), "rank of the indices"),
    "indices_constant": Fact(lambda v: v.is_constant(1), "the indices are constant"),
    "leading": Fact(_leading, "product of the dimensions before the axis"),
}


def _factor(axis: int) -> Callable[[NodeView], Value]:
    def read(view: NodeView) -> Value:
        before, after = view.shape(), view.out
        if len(before) != 4 or len(after) != 4:
            return UNKNOWN
        return (
            after[axis] // before[axis]
            if after[axis] % before[axis] == 0
            else (after[axis] / before[axis])
        )

    return read


def _plane_resized(view: NodeView) -> Value:
    return len(view.shape()) == 4 and view.shape()[:2] == view.out[:2]


RESIZE: Family = {
    "factor_h": Fact(_factor(2), "output / input height"),
    "factor_w": Fact(_factor(3), "output / input width"),
    "same_factor": Fact(lambda v: _factor(2)(v) == _factor(3)(v), "one factor for both"),
    "plane_only": Fact(_plane_resized, "only height and width change"),
    "mode": Fact(lambda v: str(v.node.attrs.get("mode", "nearest")), "nearest, linear, cubic"),
    "coordinates": Fact(
        lambda v: str(v.node.attrs.get("coordinate_transformation_mode", "half_pixel")),
        "coordinate transformation mode",
    ),
    "nearest_mode": Fact(
        lambda v: str(v.node.attrs.get("nearest_mode", "round_prefer_floor")), "rounding"
    ),
}
