"""What the outputs of a model with an ONNX part decide: detections, classes, texts, or nothing.

Such outputs are what a detector's own last steps give: boxes, scores and classes of as many objects
as the data decides, none among them. Decides which outputs these are, by names, types, shapes and
values of the runs; how sets agree is `detections`', flips of answers `classification`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.graph import Array, Value
from splitter.verify.classification import answers_of, compare_answers
from splitter.verify.decisions import Decisions, DetectionDecisions
from splitter.verify.detections import Detections, agree, corners, decode_detr
from splitter.verify.statistics import share_of
from splitter.verify.tasks import Task, find_task

Outputs = Mapping[str, Array]
Decode = Callable[[Outputs], list[Detections]]

KEPT = 1 << 20
"""Elements of an output that is kept for this; decisions are fewer (masks of objects are more)."""
SCORES, CLASSES = ("score", "conf", "prob"), ("label", "class", "categor", "cls", "ids")
ANSWERS = ("label", "class", "pred", "token", "text", "answer")
"""What outputs of class numbers are called."""


@dataclass(frozen=True)
class Reading:
    """How outputs are read: what of them, in words, and the decisions of two sides."""

    why: str
    compare: Callable[[Sequence[Outputs], Sequence[Outputs]], Decisions]


class SetJudge:
    """Collects the outputs of both sides. asked: a task, "" to find it."""

    def __init__(self, asked: str = "") -> None:
        self._kind = asked
        self._fixed: Collection[str] = ()
        self._sides: tuple[list[Outputs], list[Outputs]] = ([], [])

    def add(self, reference: Outputs, candidate: Outputs, *, fixed: Collection[str] = ()) -> None:
        """One run. fixed: outputs whose shape does not depend on data."""
        self._fixed = fixed
        if self._kind != "none":
            for side, outputs in zip(self._sides, (reference, candidate), strict=True):
                side.append({n: a for n, a in outputs.items() if a.size <= KEPT})

    def result(self) -> tuple[Decisions, str] | None:
        """The decisions, and how they were read; None where none are known.

        SplitterError when they are not what was asked for.
        """
        if not self._sides[0]:
            return None
        reading = next(self._readings(*self._sides), None)
        if reading is not None:
            return reading.compare(*self._sides), reading.why
        if self._kind:
            shapes = ", ".join(f"{n} {list(a.shape)}" for n, a in self._sides[0][0].items())
            raise SplitterError(
                f"the outputs {shapes} are no {self._kind}",
                where="--task",
                hint="detection is boxes [K, 4], scores [K] and classes [K], or rows [K, 6]; "
                "--task none compares tensors only",
            )
        return None

    def _readings(self, left: Sequence[Outputs], right: Sequence[Outputs]) -> Iterator[Reading]:
        """What they may be, the likeliest first."""
        first = {n: a for n, a in left[0].items() if all(n in run for run in (*left, *right))}
        if self._kind in ("", "detection", "detr"):
            yield from _sets(first)
            yield from _rows(first, left)
        if self._kind in ("", "classification", "classify"):
            yield from _texts(first)
        values = [Value(n, a.shape, a.dtype.name) for n, a in first.items() if n in self._fixed]
        found = find_task(values, asked="") if values else Task("none", "")
        if found.kind == "detection" and self._kind in ("", "detection", "detr"):
            yield Reading(found.why, _detections(lambda run: _queries(run, found)))
        if found.kind == "classification" and self._kind in ("", "classification", "classify"):
            yield Reading(found.why, _answers(lambda run: answers_of(run[found.scores])))
        if self._kind in ("", "classification", "classify"):
            yield from _numbers(first, self._fixed)


def _sets(first: Outputs) -> Iterator[Reading]:
    """Boxes [K, 4] or [N, K, 4] with scores and classes of the same rows."""
    for boxes, array in first.items():
        if array.dtype.kind != "f" or array.ndim not in (2, 3) or array.shape[-1] != 4:
            continue
        beside = {n: a for n, a in first.items() if a.shape == array.shape[:-1]}
        scores = _best([n for n, a in beside.items() if a.dtype.kind == "f"], SCORES, CLASSES)
        classes = _best([n for n in beside if n != scores], CLASSES, SCORES)
        if scores:
            why = f"{boxes}, {scores} and {classes or 'no classes'} are detections"
            yield Reading(why, _detections(_decoder(boxes, scores, classes)))


def _best(names: Sequence[str], words: Sequence[str], not_these: Sequence[str]) -> str:
    """The name with one of the words, else the first that has none of the others; "" for none."""

    def rank(name: str) -> int:
        low = name.lower()
        return any(w in low for w in words) * 2 - any(w in low for w in not_these)

    good = [name for name in names if rank(name) >= 0]
    return max(good, key=rank, default="")


def _decoder(boxes: str, scores: str, classes: str) -> Decode:
    def decode(run: Outputs) -> list[Detections]:
        sets = run[boxes].shape[0] if run[boxes].ndim == 3 else 1
        shape = (sets, -1) if run[scores].size else (sets, 0)
        numbers = run[classes] if classes else np.zeros(run[scores].shape, np.int64)
        rows = zip(
            run[boxes].reshape((*shape, 4)),
            run[scores].reshape(shape),
            numbers.reshape(shape),
            strict=True,
        )
        return [_sorted(*row) for row in rows]

    return decode


def _rows(first: Outputs, runs: Sequence[Outputs]) -> Iterator[Reading]:
    """One output [K, 6], [N, K, 6] or [K, 7] of corners, score and class; 7: the picture first."""
    for name, array in first.items():
        width = array.shape[-1] if array.ndim in (2, 3) else 0
        if array.dtype.kind != "f" or width not in (6, 7):
            continue
        every = np.concatenate([run[name].reshape(-1, width) for run in runs])
        columns = _columns(every)
        if columns is not None:
            at, score, label = columns
            why = f"rows of {name} are detections: score in column {score}, class in {label}"
            yield Reading(why, _detections(_row_decoder(name, width, at, score, label)))


def _columns(rows: Array) -> tuple[int, int, int] | None:
    """Where the corners begin, the score, and the class; None where the values say nothing."""
    first = rows.shape[1] - 6
    if not len(rows) or (first and not _whole(rows[:, 0])):
        return None
    for score, label in ((first + 4, first + 5), (first + 5, first + 4)):
        share = rows[:, score]
        if _whole(rows[:, label]) and not _whole(share) and share.min() >= 0 and share.max() <= 1:
            return first, score, label
    return None


def _whole(values: Array) -> bool:
    return bool((values == np.rint(values)).all())


def _row_decoder(name: str, width: int, at: int, score: int, label: int) -> Decode:
    def decode(run: Outputs) -> list[Detections]:
        array = run[name]
        sets = array if array.ndim == 3 else array.reshape(1, -1, width)
        return [_sorted(rows[:, at : at + 4], rows[:, score], rows[:, label]) for rows in sets]

    return decode


def _sorted(boxes: Array, scores: Array, classes: Array) -> Detections:
    """One set, best score first. Boxes as corners; where most of them would be inside out they are
    centers and lengths."""
    real = boxes.astype(np.float64)
    if len(real) and (real[:, 2:] < real[:, :2]).any(axis=1).mean() > 0.5:
        real = corners(real)
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    return Detections(
        real[order], scores[order].astype(np.float64), classes[order].astype(np.int64)
    )


def _detections(decode: Decode) -> Callable[[Sequence[Outputs], Sequence[Outputs]], Decisions]:
    def compare(left: Sequence[Outputs], right: Sequence[Outputs]) -> Decisions:
        sides = ([one for run in side for one in decode(run)] for side in (left, right))
        same = replace(agree(*sides), rows=0)
        return DetectionDecisions(same, share_of(same.found, same.reference))

    return compare


def _queries(run: Outputs, task: Task) -> list[Detections]:
    pairs = zip(run[task.boxes], run[task.scores], strict=True)
    return [decode_detr(boxes, scores) for boxes, scores in pairs]


def _texts(first: Outputs) -> Iterator[Reading]:
    """Outputs of strings: each is an answer."""
    names = [n for n, a in first.items() if a.dtype.kind in "OUS"]
    if names:
        yield Reading(f"the texts of {', '.join(names)} are answers", _compared(names))


def _numbers(first: Outputs, fixed: Collection[str]) -> Iterator[Reading]:
    """Class numbers by their names."""
    names = [
        n
        for n, a in first.items()
        if a.dtype.kind in "iu" and n in fixed and any(word in n.lower() for word in ANSWERS)
    ]
    if names:
        yield Reading(f"the numbers of {', '.join(names)} are answers", _compared(names))


def _compared(names: Sequence[str]) -> Callable[[Sequence[Outputs], Sequence[Outputs]], Decisions]:
    """Element by element; where one side has more, what it has too many is changed."""

    def compare(left: Sequence[Outputs], right: Sequence[Outputs]) -> Decisions:
        numbers: dict[str, int] = {}
        sides: tuple[list[Array], list[Array]] = ([], [])
        for runs in zip(left, right, strict=True):
            for name in names:
                most = max(run[name].size for run in runs)
                for side, run in zip(sides, runs, strict=True):
                    words = [str(word) for word in run[name].reshape(-1)]
                    found = [numbers.setdefault(word, len(numbers)) for word in words]
                    side.append(np.asarray(found + [-1] * (most - len(found)), np.int64))
        return compare_answers(*sides)

    return compare


def _answers(
    read: Callable[[Outputs], Array],
) -> Callable[[Sequence[Outputs], Sequence[Outputs]], Decisions]:
    def compare(left: Sequence[Outputs], right: Sequence[Outputs]) -> Decisions:
        return compare_answers([read(run) for run in left], [read(run) for run in right])

    return compare


__all__ = ["SetJudge"]
