"""Specimens of operators along an axis: reductions, softmax, arg max."""

from __future__ import annotations

from splitter.specimens.bench import Bench, divisor
from splitter.tflite.types import LiteGraph


def reduce(bench: Bench) -> LiteGraph:
    rank = bench.number("input_rank", 3 if "max_dimension" in bench.want else 4)
    axes = _axes(bench, rank)
    shape = list(((1,) * rank + (2, 2, 16))[-rank:])
    if rank == 4:
        shape[0] = bench.lead
    shape[-1] = bench.number("channels", 16)
    if "max_dimension" in bench.want or "largest_reduced" in bench.want:
        shape[axes[0]] = bench.number("max_dimension", bench.number("largest_reduced", 2))
    if "reduced_elements" in bench.want and len(axes) == 2:
        count = bench.number("reduced_elements", 4)
        shape[axes[0]] = divisor(count, 4096)
        shape[axes[1]] = count // shape[axes[0]]
    keep = bench.flag("keep_dims", True)
    out = tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes
    )
    if bench.code in ("REDUCE_ALL", "REDUCE_ANY"):
        bench.dtype = "bool"
    where = bench.parameter("axes", axes, constant=bench.flag("axes_constant", True))
    return bench.finish((bench.data("x", tuple(shape)), where), out, keep_dims=keep)


def _axes(bench: Bench, rank: int) -> list[int]:
    if "axes" in bench.want:
        text = str(bench.want["axes"]).strip("[]")
        return [int(part) % rank for part in text.split(",")]
    if bench.flag("reduces_depth", False) or bench.flag("last_axis", False):
        return [rank - 1]
    if bench.flag("reduces_leading", False):
        return [0]
    single = "max_dimension" in bench.want or "largest_reduced" in bench.want
    return [1] if single or rank < 3 or "last_axis" in bench.want else [rank - 3, rank - 2]


def arg(bench: Bench) -> LiteGraph:
    shape = (bench.lead, 2, 2, bench.number("channels", 16))
    last = bench.flag("last_axis", True)
    axis = bench.parameter("axis", 3 if last else 1, constant=bench.flag("axes_constant", True))
    out = shape[:3] if last else (shape[0], 2, shape[3])
    kept = bench.dtype
    result = kept if kept in ("int32", "int64") else "int32"
    plain = "int8" if kept in ("int32", "int64") else kept
    bench.dtype = str(bench.get("input_dtype", plain))
    x = bench.data("x", shape)
    return bench.finish((x, axis), out, out_dtype=result, output_type=result.upper())


def softmax(bench: Bench) -> LiteGraph:
    if "plane" in bench.want:
        shape: tuple[int, ...] = (1, 1, bench.number("plane", 1), 4)
    else:
        elements = bench.number("elements", 16)
        channels = bench.number("channels", divisor(elements, 2040))
        one = max(elements // channels, 1) if "elements" in bench.want else 1
        shape = (bench.number("rows", one), channels)
        if "leading" in bench.want or "rank" in bench.want:
            shape = (*(1,) * (bench.number("rank", 4) - 4), bench.number("leading", 1), 1, *shape)
    return bench.finish((bench.data("x", shape),), shape, beta=float(bench.get("beta", 1.0)))
