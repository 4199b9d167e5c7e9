"""The windows of a pool: which elements each one reads, and what that asks of padding.

TFLite pools know SAME and VALID only; `max_pool` and `average_pool` decide what a padded copy of
the data holds where windows leave it by other amounts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.conv import same_padding
from splitter.ops.registry import Emitter

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial axis of a pool, in elements. `after` is what the last window needs, not what the
    file says: less where the stride leaves a rest, more under ceil_mode."""

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    declared: int

    @property
    def extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @property
    def same(self) -> bool:
        pads = same_padding(self.size, self.extent, self.stride, 1)
        return (self.before, self.after) == pads and self.out == -(-self.size // self.stride)

    def counts(self, *, include: bool) -> Array:
        """Elements that each window averages: those in the data, or in data and declared pads."""
        low, high = (-self.before, self.size + self.declared) if include else (0, self.size)
        start = np.arange(self.out)[:, None] * self.stride - self.before
        taps = start + np.arange(self.kernel) * self.dilation
        counts: Array = ((taps >= low) & (taps < high)).sum(axis=1)
        return counts


AxisPool = Callable[[Emitter, str, tuple[Window, ...]], str]
"""Writes something over the windows of [N, H, W, C]."""


def windows(sizes: tuple[int, ...], outs: tuple[int, ...], unit: Unit) -> tuple[Window, ...]:
    """The windows of the spatial axes, in order."""
    rank = len(sizes)
    kernel = unit.attrs["kernel"] if "kernel" in unit.attrs else unit.attrs["kernel_shape"]
    strides = unit.attrs.get("strides") or (1,) * rank
    dilations = unit.attrs.get("dilations") or (1,) * rank
    pads = unit.attrs.get("pads") or _auto_pads(unit, sizes, outs, kernel, strides, dilations)
    made = []
    for a in range(rank):
        extent = (kernel[a] - 1) * dilations[a] + 1
        needed = (outs[a] - 1) * strides[a] + extent - sizes[a] - pads[a]
        made.append(
            Window(
                sizes[a],
                outs[a],
                kernel[a],
                strides[a],
                dilations[a],
                pads[a],
                max(needed, 0),
                pads[rank + a],
            )
        )
    return tuple(made)


def _auto_pads(
    unit: Unit,
    sizes: tuple[int, ...],
    outs: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[int, ...]:
    """Pads of a unit that still says them by ONNX auto_pad; none otherwise."""
    auto = str(unit.attrs.get("auto_pad", "NOTSET"))
    if not auto.startswith("SAME"):
        return (0,) * (2 * len(sizes))
    totals = [
        max((o - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, o, k, s, d in zip(sizes, outs, kernel, strides, dilations, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    upper = auto == "SAME_UPPER"
    return (*small, *large) if upper else (*large, *small)


def image_windows(graph: Graph, unit: Unit) -> tuple[Window, ...]:
    """The windows of a unit on [N, H, W, C]."""
    x, y = graph.shape(unit.inputs[0]), graph.shape(unit.outputs[0])
    return windows(x[1:3], y[1:3], unit)


def pool(
    e: Emitter,
    code: str,
    x: str,
    over: tuple[Window, ...],
    *,
    padding: str = "VALID",
    out: str = "",
    activation: str = "",
) -> str:
    """MAX_POOL_2D or AVERAGE_POOL_2D of [N, H, W, C]."""
    n, _, _, c = e.shape(x)
    high, wide = over
    return e.op(
        code,
        [x],
        (n, high.out, wide.out, c),
        out=out,
        hint="pool",
        padding=padding,
        filter_height=high.kernel,
        filter_width=wide.kernel,
        stride_h=high.stride,
        stride_w=wide.stride,
        fused_activation_function=activation or "NONE",
    )


def pads_of(over: tuple[Window, ...]) -> tuple[int, ...]:
    return (over[0].before, over[1].before, over[0].after, over[1].after)


def padding_of(over: tuple[Window, ...]) -> str:
    """The padding TFLite itself can do, "" when it cannot."""
    if not any(pads_of(over)):
        return "VALID"
    return "SAME" if all(w.same for w in over) else ""


def along(e: Emitter, x: str, axis: int, window: Window, apply: AxisPool) -> str:
    """A pool over one axis of x: the axis becomes the height of an image of width 1."""
    shape = e.shape(x)
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    image = e.reshape(x, (before, shape[axis], 1, after))
    y = apply(e, image, (window, Window(1, 1, 1, 1, 1, 0, 0, 0)))
    return e.reshape(y, (*shape[:axis], window.out, *shape[axis + 1 :]))


def axis_windows(e: Emitter, unit: Unit) -> tuple[str, tuple[Window, ...], tuple[int, ...]]:
    x = e.value(unit.inputs[0])
    shape, out = e.shape(x), e.graph.shape(unit.outputs[0])
    return x, windows(shape[2:], out[2:], unit), shape


def activate(e: Emitter, x: str, unit: Unit) -> None:
    """The unit's activation as an operator of its own, or the bare result under its name."""
    activation = unit.attrs.get("activation")
    if activation:
        e.finish(activation, unit, [x])
    else:
        e.bind(x, unit)


def not_an_image(graph: Graph, unit: Unit) -> str | None:
    if len(unit.outputs) > 1 and unit.outputs[1]:
        return "its indices output is used"
    rank = len(graph.shape(unit.inputs[0]))
    return None if rank == 4 else f"{rank - 2}-D pool"


def dilated(graph: Graph, unit: Unit) -> str | None:
    if reason := not_an_image(graph, unit):
        return reason
    return "it is dilated" if any(w.dilation > 1 for w in image_windows(graph, unit)) else None


def indices_used(graph: Graph, unit: Unit) -> str | None:
    used = len(unit.outputs) > 1 and unit.outputs[1]
    return "its indices output is used" if used else None


def by_axis(graph: Graph, unit: Unit) -> str | None:
    if len(graph.shape(unit.inputs[0])) == 4:
        return "it is an image"
    return indices_used(graph, unit)
