"""Facts of operators as a compiler sees them that takes every shape for [N, H, W, C].

Shapes are aligned to the right: [A, B, C] is H = A, W = B; what is left of four axes is N. Vela
5.2 prints its reasons in these terms ("W * H = 90000" for a SOFTMAX of 300x300x5), and so does the
list of operators it takes.
"""

from __future__ import annotations

from math import prod

from splitter.tflite.fact import Fact, Family, Value
from splitter.tflite.view import UNKNOWN, View

Shape = tuple[int, ...]


def aligned(shape: Shape) -> tuple[int, int, int, int]:
    """The shape as N, H, W, C."""
    padded = (1,) * max(4 - len(shape), 0) + tuple(shape)
    return prod(padded[:-3]), padded[-3], padded[-2], padded[-1]


def moving_axes(view: View) -> Shape | None:
    """The permutation of a TRANSPOSE, None when it is not constant."""
    return view.constant(1)


def _plane(view: View) -> Value:
    _, height, width, _ = aligned(view.shape)
    return height * width


def _leading(view: View) -> Value:
    return aligned(view.shape)[0]


def _reduced_axes(view: View) -> Shape | None:
    axes = view.constant(1)
    rank = len(view.shape)
    return None if axes is None else tuple(sorted(axis % rank for axis in axes))


def _reduces_depth(view: View) -> Value:
    axes = _reduced_axes(view)
    return UNKNOWN if axes is None else len(view.shape) - 1 in axes


def _largest_reduced(view: View) -> Value:
    axes = _reduced_axes(view)
    return UNKNOWN if axes is None else max((view.shape[axis] for axis in axes), default=1)


def _smallest_side(view: View) -> Value:
    return min(aligned(view.shape)[1:])


def _reduces_leading(view: View) -> Value:
    axes = _reduced_axes(view)
    return UNKNOWN if axes is None else any(axis < len(view.shape) - 3 for axis in axes)


def _last_axis(view: View) -> Value:
    axis = view.constant(1)
    return UNKNOWN if axis is None else axis[0] % len(view.shape) == len(view.shape) - 1


REDUCED: Family = {
    "leading": Fact(_leading, "product of all dimensions before the last three"),
    "largest_reduced": Fact(_largest_reduced, "the longest reduced axis"),
    "reduces_depth": Fact(_reduces_depth, "the last axis is reduced"),
    "reduces_leading": Fact(_reduces_leading, "an axis before the last three is reduced"),
    "smallest_side": Fact(_smallest_side, "the shortest of the last three dimensions"),
    "last_axis": Fact(_last_axis, "the (first) axis is the last one"),
}

PLANE: Family = {"plane": Fact(_plane, "product of the two dimensions before the last")}


def _moves_within(view: View) -> Value:
    """Whether only the last three axes move, and all others have length 1."""
    perm = moving_axes(view)
    if perm is None:
        return UNKNOWN
    if perm == tuple(range(len(perm))):
        return True
    lead = max(len(perm) - 3, 0)
    alone = all(length == 1 for length in view.shape[:lead])
    return alone and perm[:lead] == tuple(range(lead))


def _outer_product(view: View) -> Value:
    """The largest product of all axes but two."""
    shape = sorted(view.shape)
    return prod(shape[2:])


def _identity(view: View) -> Value:
    perm = moving_axes(view)
    return UNKNOWN if perm is None else perm == tuple(range(len(perm)))


_SWAPS = {(1, 0, 2): "HW", (0, 2, 1): "WC", (2, 1, 0): "HC", (0, 1, 2): "none"}


def _swap(view: View) -> Value:
    """Which of H, W, C change places; "_flat" when the third axis has length 1."""
    perm = moving_axes(view)
    if perm is None:
        return UNKNOWN
    more = max(3 - len(perm), 0)
    whole = (*range(more), *(axis + more for axis in perm))
    lead = len(whole) - 3
    if whole[:lead] != tuple(range(lead)):
        return "other"
    swap = _SWAPS.get(tuple(axis - lead for axis in whole[lead:]), "other")
    _, height, width, _ = aligned(view.shape)
    flat = (swap == "WC" and height == 1) or (swap == "HC" and width == 1)
    return f"{swap}_flat" if flat else swap


MOVED: Family = {
    "swap": Fact(
        _swap,
        'which of H, W, C change places: none, HW, WC, HC ("_flat": the third is 1 long), other',
    ),
    "identity": Fact(_identity, "no axis moves"),
    "within_plane": Fact(_moves_within, "only the last three axes move, all others are 1"),
    "outer_product": Fact(_outer_product, "the largest product of all dimensions but two"),
}


def _steps_in_plane(view: View) -> Value:
    """Whether steps over 1 are on the two axes before the last only."""
    steps = view.constant(3)
    if steps is None:
        return UNKNOWN
    outside = (*steps[:-3], *steps[-1:])
    return all(step == 1 for step in outside)


def _positive_steps(view: View) -> Value:
    steps = view.constant(3)
    return UNKNOWN if steps is None else all(step > 0 for step in steps)


STEPS: Family = {
    "steps_in_plane": Fact(_steps_in_plane, "steps only on the two axes before the last"),
    "positive_steps": Fact(_positive_steps, "every step is over 0"),
}


def _same_factor(view: View) -> Value:
    """Whether height and width grow by one factor, or one of them is 1 and stays so."""
    if len(view.shape) != 4:
        return UNKNOWN
    (_, h, w, _), (_, out_h, out_w, _) = view.shape, view.out_shape
    if (out_h == 1 and h == 1) or (out_w == 1 and w == 1):
        return True
    less = 1 if view.op.options.get("align_corners", False) else 0
    return (out_h - less) * (w - less) == (out_w - less) * (h - less)


def _trivial(view: View) -> Value:
    """Whether the input is one pixel, or nothing is resized."""
    return view.shape[1:3] == (1, 1) or view.shape == view.out_shape


def _larger_factor(view: View) -> Value:
    """The factor of the axis that is resized; the larger one when both are."""
    if len(view.shape) != 4:
        return UNKNOWN
    less = 1 if view.op.options.get("align_corners", False) else 0
    pairs = [(view.shape[axis] - less, view.out_shape[axis] - less) for axis in (1, 2)]
    factors = [after / before if before > 0 else 1 for before, after in pairs]
    largest = max(factors)
    return int(largest) if largest == int(largest) else largest


RESIZED: Family = {
    "same_factor": Fact(_same_factor, "height and width have one factor, or one of them stays 1"),
    "trivial": Fact(_trivial, "the input is one pixel, or has the output's shape"),
    "factor": Fact(_larger_factor, "output / input along the axis that grows more"),
}


def _axis_is_batch(view: View) -> Value:
    rank = len(view.shape)
    axis = int(view.op.options.get("axis", 0)) % max(rank, 1)
    return axis == int(view.op.options.get("batch_dims", 0))


GATHERED: Family = {"axis_is_batch_dims": Fact(_axis_is_batch, "axis equals batch_dims")}


def _index_channels(view: View) -> Value:
    return view.shape[-1] if view.shape else UNKNOWN


def _index_constant(view: View) -> Value:
    return bool(view.data) and view.data[0].data is not None


def _index_unique(view: View) -> Value:
    if not view.data or view.data[0].data is None:
        return UNKNOWN
    rows = view.data[0].data.reshape(-1, view.shape[-1])
    return len({tuple(row) for row in rows.tolist()}) == len(rows)


SCATTERED: Family = {
    "indices_constant": Fact(_index_constant, "the indices are constant"),
    "index_channels": Fact(_index_channels, "length of one index"),
    "indices_unique": Fact(_index_unique, "no index comes twice"),
}


def _strides(view: View) -> tuple[int, int]:
    return (int(view.op.options.get("stride_h", 1)), int(view.op.options.get("stride_w", 1)))


def _upscales(view: View) -> Value:
    """ "HxW" strides; with "_flat" when the axis of stride 1 has input and kernel of length 1."""
    strides = _strides(view)
    name = f"{strides[0]}x{strides[1]}"
    if strides in ((1, 2), (2, 1)) and len(view.shape) == 4:
        axis = strides.index(1)
        if view.shape[1 + axis] == 1 and view.kernel(axis) == 1:
            return f"{name}_flat"
    return name


def _whole_output(view: View) -> Value:
    """Whether the output is as large as the padding scheme makes it."""
    if len(view.shape) != 4 or len(view.out_shape) != 4:
        return UNKNOWN
    for axis, stride in enumerate(_strides(view)):
        kernel = view.kernel(axis)
        if isinstance(kernel, str):
            return UNKNOWN
        same = view.op.options.get("padding") == "SAME"
        more = 0 if same else max(kernel - stride, 0)
        if view.out_shape[1 + axis] != view.shape[1 + axis] * stride + more:
            return False
    return True


UPSCALED: Family = {
    "strides": Fact(_upscales, 'strides, like "2x2"; "2x1_flat" when the other axis is 1 long'),
    "whole_output": Fact(_whole_output, "the output has the size that padding and stride give"),
}
