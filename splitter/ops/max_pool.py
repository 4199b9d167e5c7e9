"""MaxPool of any padding, stride, dilation and rounding.

The padded copy that a window reads outside the data repeats the edge (which lies in every window
that leaves the data), or holds the least value of the data: then no calibrated range widens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.conv import pad_spatial
from splitter.ops.elementwise import two
from splitter.ops.reduce import reduce
from splitter.ops.registry import Emitter, Lowering, Op
from splitter.ops.shape import repeat_edge, strided
from splitter.ops.window import (
    AxisPool,
    Window,
    activate,
    along,
    axis_windows,
    by_axis,
    dilated,
    image_windows,
    not_an_image,
    padding_of,
    pads_of,
    pool,
)


def _pool(e: Emitter, unit: Unit, x: str, over: tuple[Window, ...], *, padding: str) -> None:
    """MAX_POOL_2D as the unit's last operator; integers are pooled as floats."""
    if e.dtype(e.value(unit.inputs[0])) != "float32":
        e.finish("CAST", unit, [pool(e, "MAX_POOL_2D", x, over, padding=padding)])
        return
    activation = unit.attrs.get("activation", "")
    pool(e, "MAX_POOL_2D", x, over, padding=padding, out=unit.outputs[0], activation=activation)


def _floats(e: Emitter, unit: Unit) -> str:
    x = e.value(unit.inputs[0])
    return x if e.dtype(x) == "float32" else e.op("CAST", [x], e.shape(x), hint="float")


def _emit_max(pad: AxisPool) -> Callable[[Emitter, Unit], None]:
    def emit(e: Emitter, unit: Unit) -> None:
        over = image_windows(e.graph, unit)
        _pool(e, unit, pad(e, _floats(e, unit), over), over, padding="VALID")

    return emit


def emit_max_pool(e: Emitter, unit: Unit) -> None:
    over = image_windows(e.graph, unit)
    _pool(e, unit, _floats(e, unit), over, padding=padding_of(over))


def _zeros(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    return pad_spatial(e, x, pads_of(over))


def _mirror(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    table = [[0, 0], *([w.before, w.after] for w in over), [0, 0]]
    shape = [n + sum(p) for n, p in zip(e.shape(x), table, strict=True)]
    paddings = e.const(table, "paddings", dtype="int32")
    return e.op("MIRROR_PAD", [x, paddings], shape, hint="mirrored", mode="SYMMETRIC")


def _edges(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    for axis, w in enumerate(over, start=1):
        x = repeat_edge(e, x, axis, w.before, w.after)
    return x


def pad_lowest(e: Emitter, x: str, table: list[list[int]]) -> str:
    """x padded with its own least value, which no maximum notices and no range widens for."""
    shape = [n + sum(p) for n, p in zip(e.shape(x), table, strict=True)]
    paddings = e.const(table, "paddings", dtype="int32")
    low = reduce(e, "REDUCE_MIN", x, tuple(range(len(shape))), False)
    return e.op("PADV2", [x, paddings, low], shape, dtype=e.dtype(x), hint="padded")


def emit_max_dilated(e: Emitter, unit: Unit) -> None:
    """MAXIMUM over the taps, rows first, then columns."""
    over = image_windows(e.graph, unit)
    x = e.value(unit.inputs[0])
    if any(pads_of(over)):
        x = pad_lowest(e, x, [[0, 0], *([w.before, w.after] for w in over), [0, 0]])
    for axis, w in enumerate(over, start=1):
        taps = [strided(e, x, axis, k * w.dilation, w.out, w.stride) for k in range(w.kernel)]
        x = taps[0]
        for tap in taps[1:]:
            x = two(e, "MAXIMUM", x, tap)
    activate(e, x, unit)


def _plain(graph: Graph, unit: Unit) -> str | None:
    if reason := dilated(graph, unit):
        return reason
    return None if padding_of(image_windows(graph, unit)) else "TFLite has no such padding"


def _not_negative(graph: Graph, unit: Unit) -> str | None:
    if reason := dilated(graph, unit):
        return reason
    return None if not_negative(graph, unit.inputs[0]) else "the data may be negative"


MONOTONE = {
    "MaxPool",
    "AveragePool",
    "Reshape",
    "Transpose",
    "Concat",
    "Slice",
    "Identity",
    "Resize",
}
"""Operators whose output is not negative when no input is (Resize: not cubic)."""


def not_negative(graph: Graph, name: str) -> bool:
    """Whether a value is known to be >= 0 from how it is made."""
    unit = graph.producers.get(name)
    if unit is None:
        data = graph.constants.get(name)
        return data is not None and bool(np.all(data >= 0))
    if unit.op in ("Relu", "Sigmoid", "HardSigmoid", "Softmax", "Exp", "Abs"):
        return True
    if unit.attrs.get("activation") in ("RELU", "RELU6"):
        return True
    passes = unit.op in MONOTONE and unit.attrs.get("mode") != "cubic"
    return passes and all(not_negative(graph, source) for source in unit.inputs if source)


def _mirrors(graph: Graph, unit: Unit) -> str | None:
    """The mirrored element of a pad must lie in every window that reads the pad."""
    if reason := dilated(graph, unit):
        return reason
    for w in image_windows(graph, unit):
        if 2 * max(w.before, w.after) > w.kernel or max(w.before, w.after) > w.size:
            return "the pad is over half the kernel"
    return None


def _edge_in_window(graph: Graph, unit: Unit) -> str | None:
    if reason := dilated(graph, unit):
        return reason
    over = image_windows(graph, unit)
    lost = any(max(w.before, w.after) >= w.kernel for w in over)
    return "a window lies in the pad altogether" if lost else None


def _max_axis(e: Emitter, x: str, over: tuple[Window, ...]) -> str:
    high = over[0]
    if any(pads_of(over)):
        x = pad_lowest(e, x, [[0, 0], [high.before, high.after], [0, 0], [0, 0]])
    if high.dilation == 1:
        return pool(e, "MAX_POOL_2D", x, over)
    taps = [strided(e, x, 1, k * high.dilation, high.out, high.stride) for k in range(high.kernel)]
    y = taps[0]
    for tap in taps[1:]:
        y = two(e, "MAXIMUM", y, tap)
    return y


def emit_max_by_axis(e: Emitter, unit: Unit) -> None:
    x, over, _ = axis_windows(e, unit)
    for axis, window in enumerate(over, start=2):
        x = along(e, x, axis, window, _max_axis)
    activate(e, x, unit)


OPS = (
    Op(
        "MaxPool",
        (
            Lowering("max_pool_2d", emit_max_pool, applies=_plain),
            Lowering("pad_zeros", _emit_max(_zeros), applies=_not_negative),
            Lowering("mirror_pad", _emit_max(_mirror), applies=_mirrors),
            Lowering("repeat_edge", _emit_max(_edges), applies=_edge_in_window),
            Lowering("maximum_of_taps", emit_max_dilated, applies=not_an_image),
            Lowering("by_axis", emit_max_by_axis, applies=by_axis),
        ),
        commute="channels_last",
    ),
)
