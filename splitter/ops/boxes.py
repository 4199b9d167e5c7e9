"""Non-maximum suppression with as many picks as there can be, and rows picked by a mask.

All batches and classes at once, one pick after the other: the best score left (ARG_MAX), its
overlap with every box, and what overlaps too much leaves. What is left over are picks of -1. The
same steps hold in float and in 32-bit integers (`splitter.quantize.picks`), since the quotient of
two areas knows neither scale nor zero point. Order, ties and limits are those of ONNX Runtime
(onnxruntime/core/providers/cpu/object_detection/non_max_suppression.cc).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from splitter.graph import Graph, Unit
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter, Lowering, Op

PICKS = "PICKS"
"""Code of the whole: boxes [B, N, 4] and scores [B, C, N] -> picks [B * C, K], -1 for none."""

LOWEST = float(np.finfo(np.float32).min)
LARGEST = 1 << 27
"""Boxes times classes times picks up to which the picks are written one by one."""
MOST_PICKS = 1 << 10

Overlaps = Callable[[str, str], str]
"""Areas shared by two boxes, and the sum of their areas -> whether they overlap too much."""


@dataclass(frozen=True, slots=True)
class Field:
    """What is picked from, each in the type that is calculated in. F is batches times classes.

    low, high: corners [F, 2, N]. scores: [F, N], `lowest` where a box cannot be picked.
    """

    low: str
    high: str
    scores: str
    lowest: float


def emit_picks(e: Emitter, unit: Unit) -> None:
    """rows [F * K, 3] of batch, class and box, and which of them there are [F * K].

    Inputs: boxes, scores, the mask of the boxes there are; where boxes were moved apart by class,
    also what they were before and their classes, which only the integer form reads.
    """
    boxes, scores = e.value(unit.inputs[0]), e.value(unit.inputs[1])
    given = [e.value(name) if name else "" for name in unit.inputs[2:]]
    mask, apart = given[0] if given else "", tuple(given[1:])
    batch, classes, _ = e.shape(scores)
    count, attrs = int(unit.attrs["picks"]), unit.attrs
    center, iou = bool(attrs["center"]), float(attrs["iou"])
    score = None if attrs["score"] == "" else float(attrs["score"])
    step = None if attrs["step"] == "" else float(attrs["step"])
    kinds = {"picks": count, "center": center, "score": score, "iou": iou, "step": step}
    with e.whole(PICKS, reads=(boxes, scores, mask, *apart), **kinds):
        low, high = corners(e, boxes, center=center, half=two_halves, classes=classes)
        flat = e.reshape(scores, (batch * classes, e.shape(scores)[2]))
        least = None if score is None else _number(e, float(score), "float32")
        lowest = _number(e, LOWEST, "float32")
        flat = left_out(e, flat, least=least, mask=mask, lowest=lowest)

        def overlaps(shared: str, total: str) -> str:
            quotient = two(e, "DIV", shared, two(e, "SUB", total, shared))
            return _two(e, "GREATER", quotient, _number(e, iou, "float32"), "bool")

        picks = pick(e, Field(low, high, flat, LOWEST), count, overlaps)
    _write_rows(e, unit, picks, (batch, classes, count))


def left_out(e: Emitter, scores: str, *, least: str | None, mask: str, lowest: str) -> str:
    """Scores [F, N] with the lowest number where they are not above `least` or the mask [N] says
    that there is no box."""
    conditions = [] if least is None else [_two(e, "GREATER", scores, least, "bool")]
    if mask:
        conditions.append(e.reshape(mask, (1, *e.shape(mask))))
    for condition in conditions:
        scores = _select(e, condition, scores, lowest)
    return scores


def _write_rows(e: Emitter, unit: Unit, picks: str, sizes: tuple[int, int, int]) -> None:
    total = int(np.prod(sizes))
    picks = e.reshape(picks, (total, 1))
    zero = _number(e, 0, "int32")
    if len(unit.outputs) > 1 and unit.outputs[1]:
        there = _two(e, "GREATER_EQUAL", picks, zero, "bool")
        e.reshape(there, (total,), out=unit.outputs[1])
    places = np.indices(sizes).reshape(3, total)[:2].T
    box = two(e, "MAXIMUM", picks, zero)
    e.concat([e.const(places, "places", dtype="int32"), box], 1, out=unit.outputs[0])


def corners(
    e: Emitter, boxes: str, *, center: bool, half: Callable[[Emitter, str], str], classes: int
) -> tuple[str, str]:
    """Lower and upper corners [B * classes, 2, N] of boxes [B, N, 4] in either form.

    half: what a width is to the distance from the center, in the type that is calculated in.
    """
    batch, count, _ = e.shape(boxes)
    turned = e.transpose(boxes, (0, 2, 1))
    first = e.slice(turned, (0, 0, 0), (batch, 2, count))
    second = e.slice(turned, (0, 2, 0), (batch, 2, count))
    if center:
        away = half(e, second)
        first, second = two(e, "SUB", first, away), two(e, "ADD", first, away)
    low, high = two(e, "MINIMUM", first, second), two(e, "MAXIMUM", first, second)
    return _each(e, low, classes), _each(e, high, classes)


def two_halves(e: Emitter, sizes: str) -> str:
    return two(e, "MUL", sizes, _number(e, 0.5, e.dtype(sizes)))


def _each(e: Emitter, corner: str, classes: int) -> str:
    """The corners once for every class."""
    batch, axes, count = e.shape(corner)
    if classes == 1:
        return corner
    shape = (batch, classes, axes, count)
    target = e.const(shape, "shape", dtype="int32")
    alone = e.reshape(corner, (batch, 1, axes, count))
    every = e.op("BROADCAST_TO", [alone, target], shape, dtype=e.dtype(corner), hint="every")
    return e.reshape(every, (batch * classes, axes, count))


def pick(e: Emitter, field: Field, count: int, overlaps: Overlaps) -> str:
    """Picks [F, count] in the order of their scores, the first of equal ones first."""
    fields, _, boxes = e.shape(field.low)
    dtype = e.dtype(field.low)
    sizes = two(e, "SUB", field.high, field.low)
    areas = _product(e, sizes)
    numbers = e.const(np.arange(boxes).reshape(1, boxes), "numbers", dtype="int32")
    lowest = _number(e, field.lowest, e.dtype(field.scores))
    none, zero = _number(e, -1, "int32"), _number(e, 0, dtype)
    scores, picked = field.scores, []
    for turn in range(count):
        axis = e.const(1, "axis", dtype="int32")
        best = e.op("ARG_MAX", [scores, axis], (fields,), dtype="int32", hint="best",
                    output_type="INT32")  # fmt: skip
        best = e.reshape(best, (fields, 1))
        score = _gather(e, scores, best, (fields, 1), 1)
        left = _two(e, "GREATER", score, lowest, "bool")
        picked.append(_select(e, left, best, none))
        if turn + 1 == count:
            break
        low = _gather(e, field.low, best, (fields, 2, 1), 2)
        high = _gather(e, field.high, best, (fields, 2, 1), 2)
        low, high = two(e, "MAXIMUM", field.low, low), two(e, "MINIMUM", field.high, high)
        sides = two(e, "MAXIMUM", two(e, "SUB", high, low), zero)
        area = _gather(e, areas, best, (fields, 1), 1)
        over = overlaps(_product(e, sides), two(e, "ADD", area, areas))
        gone = _two(e, "LOGICAL_OR", over, _two(e, "EQUAL", numbers, best, "bool"), "bool")
        scores = _select(e, gone, lowest, scores)
    return e.concat(picked, 1) if count > 1 else picked[0]


def _product(e: Emitter, sides: str) -> str:
    """Areas [F, N] of sides [F, 2, N]."""
    fields, _, boxes = e.shape(sides)
    axis = e.const([1], "axis", dtype="int32")
    return e.op("REDUCE_PROD", [sides, axis], (fields, boxes), dtype=e.dtype(sides),
                hint="product", keep_dims=False)  # fmt: skip


def _gather(e: Emitter, data: str, best: str, shape: tuple[int, ...], axis: int) -> str:
    return e.op("GATHER", [data, best], shape, dtype=e.dtype(data), hint="of_best", axis=axis,
                batch_dims=1)  # fmt: skip


def _two(e: Emitter, code: str, a: str, b: str, dtype: str) -> str:
    shape = np.broadcast_shapes(e.shape(a), e.shape(b))
    return e.op(code, [a, b], shape, dtype=dtype, hint=code.lower())


def _select(e: Emitter, condition: str, a: str, b: str) -> str:
    shape = np.broadcast_shapes(e.shape(condition), e.shape(a), e.shape(b))
    kind = e.dtype(a)
    return e.op("SELECT_V2", [condition, a, b], shape, dtype=kind, hint="select")


def _number(e: Emitter, value: float, dtype: str) -> str:
    return e.const(value, "number", dtype=dtype)


def too_many(fields: int, boxes: int, picks: int) -> str | None:
    """Why so many picks are not written out, None when they are. fields: batches times classes."""
    work = fields * boxes * picks
    if picks <= MOST_PICKS and work <= LARGEST:
        return None
    return (
        f"{picks} picks from {boxes} boxes in {fields} classes are too many to be written one by "
        f"one (at most {MOST_PICKS} picks and {LARGEST} overlaps, here {work})"
    )


def _fits(graph: Graph, unit: Unit) -> str | None:
    batch, classes, boxes = graph.shape(unit.inputs[1])
    return too_many(batch * classes, boxes, int(unit.attrs["picks"]))


# -- rows -------------------------------------------------------------------------------------


def emit_compress(e: Emitter, unit: Unit) -> None:
    """The rows of a mask, as many as it has: the first axis is as long as data decides."""
    x, mask = (e.value(name) for name in unit.inputs)
    shape = e.shape(x)
    places = e.op("WHERE", [mask], (shape[0], 1), dtype="int64", hint="places")
    out = e.op("GATHER_ND", [x, places], shape, dtype=e.dtype(x), out=unit.outputs[0])
    for name in (places, out):
        e.tensors[name] = replace(e.tensors[name], open=True)


OPS = (
    Op("BoundedNonMaxSuppression", (Lowering("picks", emit_picks, applies=_fits),)),
    Op("CompressRows", (Lowering("where_gather_nd", emit_compress),)),
)
