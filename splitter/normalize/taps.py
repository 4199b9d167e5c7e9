"""Windows that no operator of TFLite has, as slices: one for each place of the kernel.

Conv whose weights are computed at run time (dynamic filters, cross-correlation of trackers) is a
product of matrices over its windows; MaxPool with indices is the place of the largest tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.writer import Writer

MOST = 1024
"""Places of a kernel: with more, the slices are no form for anything."""


@dataclass(frozen=True)
class Window:
    """kernel, strides, dilations, pads before and after, by axis; sizes: of the result."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        return int(np.prod(self.kernel))

    @property
    def padded(self) -> bool:
        return any((*self.before, *self.after))


def window_of(node: Node, kernel: Sequence[int], lengths: Sequence[int]) -> Window | None:
    """The window of a node over an input of these lengths; None for a rounding up."""
    rank = len(kernel)
    strides = tuple(node.attrs.get("strides") or [1] * rank)
    dilations = tuple(node.attrs.get("dilations") or [1] * rank)
    pads = list(node.attrs.get("pads") or [0] * (2 * rank))
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    auto = node.attrs.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max((-(-n // s) - 1) * s + span - n, 0)
            for n, s, span in zip(lengths, strides, spans, strict=True)
        ]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = small + large if auto == "SAME_UPPER" else large + small
    elif auto == "VALID":
        pads = [0] * (2 * rank)
    if node.attrs.get("ceil_mode", 0):
        return None
    before, after = tuple(pads[:rank]), tuple(pads[rank:])
    sizes = tuple(
        (n + b + a - span) // s + 1
        for n, b, a, span, s in zip(lengths, before, after, spans, strides, strict=True)
    )
    return Window(tuple(kernel), strides, dilations, before, after, sizes)


def taps(w: Writer, x: str, window: Window, *, mode: str) -> list[str]:
    """[N, C, sizes...] for each place of the kernel, in its order. mode: of the padding."""
    if window.padded:
        pads = [0, 0, *window.before, 0, 0, *window.after]
        x = w.add("Pad", [x, w.const(pads)], mode=mode)
    axes = list(range(2, 2 + len(window.kernel)))
    found = []
    for place in np.ndindex(*window.kernel):
        starts = [p * d for p, d in zip(place, window.dilations, strict=True)]
        ends = [
            start + (n - 1) * s + 1
            for start, n, s in zip(starts, window.sizes, window.strides, strict=True)
        ]
        bounds = [w.const(values) for values in (starts, ends, axes, window.strides)]
        found.append(w.add("Slice", [x, *bounds]))
    return found


def conv_by_taps(draft: Draft, node: Node) -> None:
    """Conv with computed weights: [G, O/G, K] times [N, G, K, places], K is kernel and channels."""
    x, weight = draft.shape(node.inputs[0]), draft.shape(node.inputs[1])
    if node.inputs[1] in draft.constants or x is None or weight is None:
        return
    window = window_of(node, weight[2:], x[2:])
    if window is None or window.count > MOST:
        return
    groups, depth, filters = int(node.attrs.get("group", 1)), weight[1], weight[0]
    w = Writer(draft, node)
    places = int(np.prod(window.sizes))
    rows = w.const([x[0], groups, 1, depth, places])
    parts = [w.add("Reshape", [t, rows]) for t in taps(w, node.inputs[0], window, mode="constant")]
    stacked = w.add("Concat", parts, axis=2) if len(parts) > 1 else parts[0]
    columns = w.add("Reshape", [stacked, w.const([x[0], groups, window.count * depth, places])])
    rank = len(weight)
    turned = w.add("Transpose", [node.inputs[1]], perm=[0, *range(2, rank), 1])
    shape = [1, groups, filters // groups, window.count * depth]
    product = w.add("MatMul", [w.add("Reshape", [turned, w.const(shape)]), columns])
    bias = node.input(2)
    sizes = w.const([x[0], filters, *window.sizes])
    y = w.add("Reshape", [product, sizes], out="" if bias else w.out)
    if bias:
        spread = w.add("Reshape", [bias, w.const([1, filters, *[1] * (rank - 2)])])
        w.add("Add", [y, spread], out=w.out)


def max_pool_with_places(draft: Draft, node: Node) -> None:
    """MaxPool whose second output is read: where each maximum lies in the flat input.

    The edge is repeated where the window leaves the input: what is repeated is in the window too,
    and its place is that of the edge.
    """
    x = draft.shape(node.inputs[0])
    if len(node.outputs) < 2 or not node.outputs[1] or x is None or len(x) != 4:
        return
    window = window_of(node, node.attrs["kernel_shape"], x[2:])
    far = any(d > 1 for d in node.attrs.get("dilations") or [])
    if window is None or window.count > MOST or (far and window.padded):
        return
    places = node.outputs[1]
    w = Writer(draft, node)
    plain = {k: v for k, v in node.attrs.items() if k != "storage_order"}
    if w.out:
        w.add("MaxPool", [node.inputs[0]], out=w.out, **plain)
    shape = w.const([*x[:2], 1, *window.sizes])
    parts = [w.add("Reshape", [t, shape]) for t in taps(w, node.inputs[0], window, mode="edge")]
    largest = w.add("ArgMax", [w.add("Concat", parts, axis=2)], axis=2, keepdims=0)
    across = w.const(window.kernel[1])
    steps = [w.add("Div", [largest, across]), w.add("Mod", [largest, across])]
    place = [_coordinate(w, step, window, axis, x[2 + axis]) for axis, step in enumerate(steps)]
    if node.attrs.get("storage_order", 0):
        inner = w.add("Add", [place[0], w.add("Mul", [place[1], w.const(x[2])])])
    else:
        inner = w.add("Add", [w.add("Mul", [place[0], w.const(x[3])]), place[1]])
    start = np.arange(x[0] * x[1]).reshape(x[0], x[1], 1, 1) * (x[2] * x[3])
    w.add("Add", [inner, w.const(start)], out=places)


def _coordinate(w: Writer, step: str, window: Window, axis: int, length: int) -> str:
    """Where the tap lies along an axis of the input."""
    first = np.arange(window.sizes[axis]) * window.strides[axis] - window.before[axis]
    spread = [-1, 1] if axis == 0 else [1, -1]
    dilated = w.add("Mul", [step, w.const(window.dilations[axis])])
    place = w.add("Add", [dilated, w.const(first.reshape(spread))])
    if window.padded:
        place = w.add("Max", [w.add("Min", [place, w.const(length - 1)]), w.const(0)])
    return place


def max_unpool(draft: Draft, node: Node) -> None:
    """Zeros, and each value at its place."""
    x = draft.shape(node.inputs[0])
    if x is None:
        return
    kernel = node.attrs["kernel_shape"]
    strides = node.attrs.get("strides") or [1] * len(kernel)
    pads = node.attrs.get("pads") or [0] * (2 * len(kernel))
    rank = len(kernel)
    plain = [
        (n - 1) * s + k - pads[i] - pads[rank + i]
        for i, (n, s, k) in enumerate(zip(x[2:], strides, kernel, strict=True))
    ]
    asked = draft.ints(node.input(2)) if node.input(2) else None
    if node.input(2) and asked is None:
        return
    lengths = [*x[:2], *plain]
    more = [0] * len(lengths) if asked is None else list(np.subtract(asked, lengths))
    if min(more) < 0:
        return
    w = Writer(draft, node)
    flat = w.const([-1])
    zeros = w.const(np.zeros(int(np.prod(lengths))), draft.dtype(node.inputs[0]))
    values, places = (w.add("Reshape", [node.inputs[i], flat]) for i in (0, 1))
    filled = w.add("ScatterElements", [zeros, places, values], axis=0)
    y = w.add("Reshape", [filled, w.const(lengths)], out="" if any(more) else w.out)
    if any(more):  # places count in the plain size: what is asked for beyond it is zeros
        w.add("Pad", [y, w.const([0] * len(more) + more)], out=w.out)
