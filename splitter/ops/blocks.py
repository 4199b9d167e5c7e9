"""DepthToSpace and SpaceToDepth on channels-last data."""

from __future__ import annotations

from splitter.graph import Graph, Unit
from splitter.ops.registry import Emitter, Lowering, Op


def emit_depth_to_space(e: Emitter, unit: Unit) -> None:
    """DEPTH_TO_SPACE reads the channels as DCR; CRD channels are put in that order first."""
    x = e.value(unit.inputs[0])
    block = int(unit.attrs["blocksize"])
    if unit.attrs.get("mode", "DCR") == "CRD":
        n, h, w, c = e.shape(x)
        split = e.reshape(x, (n * h * w, c // block**2, block**2))
        x = e.reshape(e.transpose(split, (0, 2, 1)), (n, h, w, c))
    e.finish("DEPTH_TO_SPACE", unit, [x], block_size=block)


def emit_by_transpose(e: Emitter, unit: Unit) -> None:
    """The block's rows and columns by TRANSPOSE of rank 5 and 4, each moving one of them."""
    x = e.value(unit.inputs[0])
    n, h, w, c = e.shape(x)
    block = int(unit.attrs["blocksize"])
    depth = c // block**2
    if unit.attrs.get("mode", "DCR") == "CRD":
        split = e.reshape(x, (n * h * w, depth, block**2))
        x = e.transpose(split, (0, 2, 1))
    rows = e.reshape(x, (n * h, w, block, block * depth))
    e.bind(e.transpose(rows, (0, 2, 1, 3)), unit)


def emit_space_to_depth(e: Emitter, unit: Unit) -> None:
    block = int(unit.attrs["blocksize"])
    e.finish("SPACE_TO_DEPTH", unit, [e.value(unit.inputs[0])], block_size=block)


def emit_space_by_transpose(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    n, h, w, c = e.shape(x)
    block = int(unit.attrs["blocksize"])
    rows = e.reshape(x, (n * h // block, block, w // block, block * c))
    e.bind(e.transpose(rows, (0, 2, 1, 3)), unit)


def _image(graph: Graph, unit: Unit) -> str | None:
    rank = len(graph.shape(unit.inputs[0]))
    return None if rank == 4 else f"rank {rank}"


OPS = (
    Op(
        "DepthToSpace",
        (
            Lowering("depth_to_space", emit_depth_to_space, applies=_image),
            Lowering("transpose", emit_by_transpose, applies=_image),
        ),
        commute="channels_last",
    ),
    Op(
        "SpaceToDepth",
        (
            Lowering("space_to_depth", emit_space_to_depth, applies=_image),
            Lowering("transpose", emit_space_by_transpose, applies=_image),
        ),
        commute="channels_last",
    ),
)
