"""Windows that lie where the data says: DeformConv and RoiAlign, as GridSample and what follows.

Both read their input at computed places, linearly between its elements. RoiAlign with a number of
samples that hangs on the size of each box (sampling_ratio 0), or with maxima, stays as it is.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.writer import Writer


def deform_conv(draft: Draft, node: Node) -> None:
    """x [N, C, H, W], weight, offset [N, groups K 2, h, w], bias, mask [N, groups K, h, w]."""
    x, weight, offset = (draft.shape(node.inputs[i]) for i in (0, 1, 2))
    if x is None or weight is None or offset is None or len(x) != 4:
        return
    kernel, sizes, count = weight[2:], offset[2:], weight[2] * weight[3]
    groups = int(node.attrs.get("offset_group", 1))
    dilations = node.attrs.get("dilations") or [1, 1]
    strides, pads = node.attrs.get("strides") or [1, 1], node.attrs.get("pads") or [0] * 4
    base = np.empty((1, count, 2, *sizes))
    rows = np.arange(sizes[0])[:, None] * strides[0] - pads[0]
    columns = np.arange(sizes[1])[None] * strides[1] - pads[1]
    for k, (i, j) in enumerate(np.ndindex(*kernel)):
        base[0, k, 0] = (2 * (rows + i * dilations[0]) + 1) / x[2] - 1
        base[0, k, 1] = (2 * (columns + j * dilations[1]) + 1) / x[3] - 1
    w = Writer(draft, node)
    scale = np.asarray([2 / x[2], 2 / x[3]]).reshape(1, 1, 2, 1, 1)
    moved = w.add("Reshape", [node.inputs[2], w.const([x[0] * groups, count, 2, *sizes])])
    moved = w.add("Mul", [moved, w.const(scale, "float32")])
    places = w.add("Add", [moved, w.const(base, "float32")])
    turned = w.add("Gather", [places, w.const([1, 0])], axis=2)
    grid = w.add("Transpose", [turned], perm=[0, 1, 3, 4, 2])
    grid = w.add("Reshape", [grid, w.const([x[0] * groups, count * sizes[0], sizes[1], 2])])
    data = w.add("Reshape", [node.inputs[0], w.const([x[0] * groups, x[1] // groups, *x[2:]])])
    read = w.add("GridSample", [data, grid], mode="linear", padding_mode="zeros", align_corners=0)
    if node.input(4):
        shape = w.const([x[0] * groups, 1, count * sizes[0], sizes[1]])
        read = w.add("Mul", [read, w.add("Reshape", [node.inputs[4], shape])])
    columns_of = w.add("Reshape", [read, w.const([x[0], x[1], count, sizes[0] * sizes[1]])])
    filters = w.add("Reshape", [node.inputs[1], w.const([*weight[:2], count, 1])])
    operands = [columns_of, filters, *([node.inputs[3]] if node.input(3) else [])]
    y = w.add("Conv", operands, group=int(node.attrs.get("group", 1)), kernel_shape=[count, 1])
    w.add("Reshape", [y, w.const([x[0], weight[0], *sizes])], out=w.out)


def roi_align(draft: Draft, node: Node) -> None:
    """x [1, C, H, W], boxes [R, 4] (x1, y1, x2, y2), batch numbers [R] -> [R, C, h, w]."""
    x, boxes = draft.shape(node.inputs[0]), draft.shape(node.inputs[1])
    ratio = int(node.attrs.get("sampling_ratio", 0))
    if (
        x is None
        or boxes is None
        or x[0] != 1
        or not ratio
        or node.attrs.get("mode", "avg") != "avg"
    ):
        return
    aligned = node.attrs.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    sizes = [int(node.attrs.get(f"output_{side}", 1)) for side in ("height", "width")]
    w = Writer(draft, node)
    scale = w.const(float(node.attrs.get("spatial_scale", 1.0)), "float32")
    corners = w.add("Mul", [node.inputs[1], scale])
    if aligned:
        corners = w.add("Sub", [corners, w.const(0.5, "float32")])
    grids, masks = [], []
    for side, (first, count) in enumerate(((1, sizes[0]), (0, sizes[1]))):
        length = x[2 + side]
        start, end = (w.add("Slice", [corners, w.const([c]), w.const([c + 1]), w.const([1])])
                      for c in (first, first + 2))  # fmt: skip
        extent = w.add("Sub", [end, start])
        if not aligned:
            extent = w.add("Max", [extent, w.const(1.0, "float32")])
        steps = (np.arange(count * ratio) + 0.5) / (count * ratio)
        lie = w.add("Add", [start, w.add("Mul", [extent, w.const(steps[None], "float32")])])
        low = w.add("Not", [w.add("Less", [lie, w.const(-1.0, "float32")])])
        high = w.add("Not", [w.add("Greater", [lie, w.const(float(length), "float32")])])
        masks.append(w.add("Cast", [w.add("And", [low, high])], to=1))
        scaled = w.add("Mul", [lie, w.const(2 / length, "float32")])
        grids.append(w.add("Add", [scaled, w.const(1 / length - 1, "float32")]))
    rows, columns = (size * ratio for size in sizes)
    shape = w.const([boxes[0], rows, columns, 1])
    spread = [
        w.add("Expand", [w.add("Reshape", [value, w.const(to)]), shape])
        for value, to in ((grids[1], [boxes[0], 1, columns, 1]), (grids[0], [boxes[0], rows, 1, 1]))
    ]
    grid = w.add("Reshape", [w.add("Concat", spread, axis=3), w.const([1, -1, columns, 2])])
    read = w.add("GridSample", [node.inputs[0], grid], mode="linear", padding_mode="border",
                 align_corners=0)  # fmt: skip
    across = w.add("Reshape", [masks[1], w.const([boxes[0], 1, columns])])
    down = w.add("Reshape", [masks[0], w.const([boxes[0], rows, 1])])
    inside = w.add("Mul", [down, across])
    flat = w.add("Reshape", [inside, w.const([1, 1, boxes[0] * rows, columns])])
    kept = w.add("Mul", [read, flat])
    side_by_side = [ratio, ratio]
    mean = w.add("AveragePool", [kept], kernel_shape=side_by_side, strides=side_by_side)
    apart = w.add("Reshape", [mean, w.const([x[1], boxes[0], *sizes])])
    w.add("Transpose", [apart], out=w.out, perm=[1, 0, 2, 3])
