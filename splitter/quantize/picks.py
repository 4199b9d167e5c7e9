"""Non-maximum suppression in 32-bit integers: the integers of boxes and scores as they are.

The share of an overlap in a union knows neither scale nor zero point, as long as all coordinates
have one: shared * (p + q) > p * (area + area) for the threshold p / q, in whole numbers. Boxes of
16 bits are taken to as many bits as leave the products within 32. Scores keep their order, and the
threshold is taken to their steps. Decides the bits and the fraction; the steps are those of
`splitter.ops.boxes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from splitter.graph import Graph
from splitter.lower import drop_unused
from splitter.ops.boxes import PICKS, Field, corners, left_out, pick
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter
from splitter.tflite.types import LiteGraph, Operator, Tensor, Whole

if TYPE_CHECKING:
    from splitter.quantize.convert import Writer

BODY, READ = "body", "read"
"""Options: the float operators, and what they read by the names that it had."""
CLOSE = 1e-4
"""How near a fraction is to the threshold, if 32 bits allow."""
LIMIT = 2**31 - 1


def fold_wholes(graph: LiteGraph) -> LiteGraph:
    """Operators of one `Whole` as one operator of its code, which is not of TFLite."""
    if not any(op.whole for op in graph.operators):
        return graph
    operators: list[Operator] = []
    for whole, run in groupby(graph.operators, key=lambda op: op.whole):
        body = tuple(run)
        if whole is None:
            operators += body
            continue
        made = dict.fromkeys(name for op in body for name in op.outputs)
        boxes, scores, mask, *apart = whole.reads
        inputs = (apart[0] if apart else boxes, scores, mask, *apart[1:])
        outputs = tuple(n for n in made if _leaves(graph, n, whole))
        options = {**whole.options, BODY: body, READ: inputs}
        operators.append(Operator(whole.code, inputs, outputs, options, body[0].unit))
    return drop_unused(_with(graph, operators, graph))


def _leaves(graph: LiteGraph, name: str, whole: Whole) -> bool:
    return name in graph.outputs or any(op.whole is not whole for op in graph.consumers[name])


def unfold_wholes(graph: LiteGraph, former: LiteGraph) -> LiteGraph:
    """The float operators again. former: the graph that they were folded in."""
    if not any(op.code == PICKS for op in graph.operators):
        return graph
    operators: list[Operator] = []
    for op in graph.operators:
        if op.code != PICKS:
            operators.append(op)
            continue
        names = dict(zip(op.options[READ], op.inputs, strict=True))
        for one in op.options[BODY]:
            inputs = tuple(names.get(name, name) for name in one.inputs)
            operators.append(replace(one, inputs=inputs))
    return _with(graph, operators, former)


def _with(graph: LiteGraph, operators: list[Operator], former: LiteGraph) -> LiteGraph:
    used = {n for op in operators for n in (*op.inputs, *op.outputs) if n}
    used |= {*graph.inputs, *graph.outputs}
    known = {**former.tensors, **graph.tensors}
    tensors = {name: tensor for name, tensor in known.items() if name in used}
    return replace(graph, tensors=tensors, operators=tuple(operators))


def write_picks(writer: Writer, index: int, op: Operator) -> None:
    """The operator on the integers of its inputs."""
    boxes, scores = (_held(writer, index, place, op) for place in range(2))
    held = {boxes.name: boxes, scores.name: scores}
    others = [writer.variable(name) for name in op.inputs[2:]]
    held |= {name: writer.tensors[name] for name in others if name}
    e = Emitter(Graph((), (), {}, {}, ()))
    e.start(op.unit, held)
    mask, classes = (*others, "")[:2]
    picks = _picks(e, op, Data(boxes, scores, mask, classes))
    writer.take(e, {name: name for name in held} | {picks: op.outputs[0]})


def _held(writer: Writer, index: int, place: int, op: Operator) -> Tensor:
    name = op.inputs[place]
    if name in writer.parameters.tensors:
        return writer.tensors[writer.input(index, place, op, name)]
    return writer.tensors[writer.constant(op, place, None)]


@dataclass(frozen=True, slots=True)
class Data:
    """What is picked from; mask and classes may be ""."""

    boxes: Tensor
    scores: Tensor
    mask: str
    classes: str


def _picks(e: Emitter, op: Operator, data: Data) -> str:
    options, boxes, scores = op.options, data.boxes, data.scores
    fraction, shift = _threshold(options["iou"], boxes, center=options["center"])
    batch, classes, count = scores.shape
    place = e.reshape(_wide(e, boxes.name), (batch, count, 4))
    zero = boxes.quantization.zero_point[0] if boxes.quantization else 0
    place = two(e, "SUB", place, e.const(zero, "zero_point", dtype="int32"))
    if shift:
        place = _divided(e, place, 2**shift)
    if data.classes:
        place = _apart(e, place, data, shift, **{k: options[k] for k in ("step", "center")})
    if options["center"]:  # twice the place: half a width is whole then
        twice = e.const(np.array([2, 2, 1, 1]), "twice", dtype="int32")
        place = two(e, "MUL", place, twice)
    low, high = corners(e, place, center=options["center"], half=_itself, classes=classes)
    flat = e.reshape(_wide(e, scores.name), (batch * classes, count))
    lowest = np.iinfo(scores.dtype).min - 1
    none = e.const(lowest, "lowest", dtype="int32")
    least = None
    if options["score"] is not None:
        least = e.const(_least(options["score"], scores), "least", dtype="int32")
    flat = left_out(e, flat, least=least, mask=data.mask, lowest=none)
    one = e.const(fraction.numerator + fraction.denominator, "shares", dtype="int32")
    other = e.const(fraction.numerator, "share", dtype="int32")

    def overlaps(shared: str, total: str) -> str:
        sides = two(e, "MUL", shared, one), two(e, "MUL", total, other)
        return e.op("GREATER", sides, e.shape(sides[0]), dtype="bool", hint="over")

    return pick(e, Field(low, high, flat, lowest), options["picks"], overlaps)


def _apart(
    e: Emitter, place: str, data: Data, shift: int, *, step: float | None, center: bool
) -> str:
    """Boxes moved apart by class: in 32 bits, at the boxes' own scale."""
    boxes, count = data.boxes, e.shape(place)[1]
    far = 2 ** (8 if boxes.dtype == "int8" else 16)
    if step is not None and boxes.quantization is not None:
        far = round(step / boxes.quantization.scale[0])
    number = e.const(max(1, far >> shift), "step", dtype="int32")
    moved = two(e, "MUL", e.reshape(data.classes, (1, count, 1)), number)
    if center:  # widths stay what they are
        moved = two(e, "MUL", moved, e.const([1, 1, 0, 0], "places", dtype="int32"))
    return two(e, "ADD", place, moved)


def _itself(e: Emitter, sizes: str) -> str:
    return sizes


def _wide(e: Emitter, name: str) -> str:
    return e.op("CAST", [name], e.shape(name), dtype="int32", hint="wide")


def _divided(e: Emitter, name: str, by: int) -> str:
    number = e.const(by, "steps", dtype="int32")
    return e.op("FLOOR_DIV", [name, number], e.shape(name), dtype="int32", hint="coarse")


def _least(score: float, scores: Tensor) -> int:
    """What the integer of a score must be above, for the score to be above the threshold."""
    q = scores.quantization
    assert q is not None
    info = np.iinfo(scores.dtype)
    if np.isnan(score):
        return int(info.max)  # nothing is above it
    steps = np.floor(float(np.float32(score)) / q.scale[0]) + q.zero_point[0]
    return int(np.clip(steps, info.min - 1, info.max))


def _threshold(iou: float, boxes: Tensor, *, center: bool) -> tuple[Fraction, int]:
    """A fraction near the threshold, and by how many bits coordinates lose what has no room."""
    bits = 8 if boxes.dtype == "int8" else 16
    near = next(_fractions(iou, CLOSE))
    for shift in range(bits):
        side = 2 ** (bits - shift) * (2 if center else 1)
        if side**2 * max(near.numerator + near.denominator, 2 * near.numerator) <= LIMIT:
            return near, shift
    raise AssertionError(iou)


def _fractions(value: float, within: float) -> Iterator[Fraction]:
    """Of growing denominators, each within the distance of the value."""
    exact = Fraction(float(value))
    for most in (*range(1, 128), *(2**n for n in range(7, 14))):
        fraction = exact.limit_denominator(most)
        if abs(fraction - exact) <= within:
            yield fraction
