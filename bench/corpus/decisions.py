"""What the trained models decide, and whether the integer model decides the same.

A question is answered run by run on both sides; agreement is counted over all answers. The answers
of the float model are the reference, right or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bench.corpus.cases import Arrays, Case, Record
from bench.corpus.kinds import more
from splitter.graph import Array
from splitter.verify.rows import RowsMeter

Agreement = tuple[int, int]
Outputs = Sequence[Arrays]
SET_LIMIT = 0.05
"""Largest difference of a value between two rows that count as the same, over the output's RMS."""

Question = Callable[[Outputs, Outputs], Agreement]


def samples(
    case: Case, stored: Sequence[Record], many: int, few: int
) -> tuple[list[Arrays], list[Record]]:
    """Inputs to calibrate on, runs to verify on (the recorded ones first)."""
    made = more(case, stored, many + few)
    calibration = [*(r.inputs for r in stored), *made[few:]][:many]
    return calibration, [*stored, *map(Record, made[:few])][:few]


def compare(name: str, expected: Outputs, actual: Outputs) -> dict[str, Agreement]:
    """(agree, total) by question; empty where nothing is known of the model."""
    for part, questions in QUESTIONS.items():
        if part in name:
            return {text: ask(expected, actual) for text, ask in questions.items()}
    return {}


def as_sets(expected: Outputs, actual: Outputs) -> dict[str, Agreement]:
    """Rows of what a TopK sorted, in any order: (rows found again, rows) by output.

    Only outputs [batch, rows, values] whose rows all lie within SET_LIMIT of one of the other
    side's, each used once, are worth the name.
    """
    found: dict[str, Agreement] = {}
    for a, b in _pairs(expected, actual):
        for name, rows in a.items():
            if rows.ndim == 3 and rows.dtype.kind == "f" and rows.shape[1] > 1:
                agree, total = found.get(name, (0, 0))
                matched = sum(_matched(x, y) for x, y in zip(rows, b[name], strict=True))
                found[name] = (agree + matched, total + rows.shape[0] * rows.shape[1])
    return found


def as_rows(expected: Outputs, actual: Outputs) -> dict[str, Agreement]:
    """(rows found again, rows on either side) of outputs with as many as the data decides."""
    lengths = {n: {np.shape(r[n]) for r in expected} for n in (expected[0] if expected else {})}
    found: dict[str, Agreement] = {}
    for name in (name for name, shapes in lengths.items() if len(shapes) > 1):
        meter = RowsMeter()
        for a, b in _pairs(expected, actual):
            meter.add(np.asarray(a[name]), np.asarray(b[name]))
        rows = meter.result()
        found[name] = rows.found, rows.reference + rows.extra
    return found


def _matched(left: Array, right: Array) -> int:
    size = float(np.sqrt(np.mean(np.square(left)))) or 1.0
    apart = np.abs(left[:, None] - right[None]).max(-1) / size
    used: set[int] = set()
    for row in apart:
        best = min((j for j in range(len(row)) if j not in used), key=row.__getitem__)
        if row[best] <= SET_LIMIT:
            used.add(best)
    return len(used)


def first(outputs: Arrays) -> Array:
    return next(iter(outputs.values()))


def classes(expected: Outputs, actual: Outputs) -> Agreement:
    """The largest score of each row of the only output."""
    return _equal([(first(a).argmax(-1), first(b).argmax(-1)) for a, b in _pairs(expected, actual)])


def _pairs(expected: Outputs, actual: Outputs) -> list[tuple[Arrays, Arrays]]:
    return list(zip(expected, actual, strict=True))


def _equal(answers: Sequence[tuple[Array, Array]]) -> Agreement:
    return sum(int((a == b).sum()) for a, b in answers), sum(a.size for a, _ in answers)


def text(scores: Array) -> tuple[int, ...]:
    """CTC, greedy: the best symbol of each step, repeats merged, blanks (0) left out."""
    best = scores.argmax(-1).ravel()
    kept = best[np.insert(best[1:] != best[:-1], 0, True)]
    return tuple(int(symbol) for symbol in kept if symbol)


def lines(expected: Outputs, actual: Outputs) -> Agreement:
    same = [text(first(a)) == text(first(b)) for a, b in _pairs(expected, actual)]
    return sum(same), len(same)


def over(output: str, threshold: float, index: int | None = None) -> Question:
    """Of all values over the threshold on either side, those that are on both."""

    def ask(expected: Outputs, actual: Outputs) -> Agreement:
        both = either = 0
        for a, b in _pairs(expected, actual):
            x, y = a[output], b[output]
            if index is not None:
                x, y = x[:, index], y[:, index]
            both += int(((x > threshold) & (y > threshold)).sum())
            either += int(((x > threshold) | (y > threshold)).sum())
        return both, either

    return ask


def score(output: str, threshold: float) -> Question:
    """Whether the score is over the threshold."""

    def ask(expected: Outputs, actual: Outputs) -> Agreement:
        pairs = _pairs(expected, actual)
        return _equal([(a[output] > threshold, b[output] > threshold) for a, b in pairs])

    return ask


def bins(expected: Outputs, actual: Outputs) -> Agreement:
    """The pitch bin (20 cents) of frames that have one, to two bins."""
    agree = total = 0
    for a, b in _pairs(expected, actual):
        voiced = a["prob"].max(1) > 0.5
        apart = np.abs(a["prob"].argmax(1) - b["prob"].argmax(1))[voiced]
        agree, total = agree + int((apart <= 2).sum()), total + int(voiced.sum())
    return agree, total


def pitch(expected: Outputs, actual: Outputs) -> Agreement:
    """Frames that both or neither call voiced (confidence over 0.9), within 50 cents."""
    agree = total = 0
    for a, b in _pairs(expected, actual):
        one, other = a["confidence"] > 0.9, b["confidence"] > 0.9
        cents = 1200 * np.abs(np.log2(np.maximum(b["pitch"], 1) / np.maximum(a["pitch"], 1)))
        agree += int(((one == other) & (~one | (cents < 50))).sum())
        total += one.size
    return agree, total


def neighbors(expected: Outputs, actual: Outputs) -> Agreement:
    """The nearest other sample by cosine."""

    def nearest(outputs: Outputs) -> Array:
        rows = np.stack([first(o).ravel() for o in outputs]).astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12
        likeness = rows @ rows.T
        np.fill_diagonal(likeness, -2)
        return np.asarray(likeness.argmax(1))

    a, b = nearest(expected), nearest(actual)
    return int((a == b).sum()), a.size


def itself(expected: Outputs, actual: Outputs) -> Agreement:
    """Each integer embedding lies nearest to the float one of the same sample."""

    def rows(outputs: Outputs) -> Array:
        made = np.stack([first(o).ravel() for o in outputs]).astype(np.float64)
        return np.asarray(made / (np.linalg.norm(made, axis=1, keepdims=True) + 1e-12))

    found = (rows(actual) @ rows(expected).T).argmax(1)
    return int((found == np.arange(len(found))).sum()), len(found)


RANKING = {"nearest to itself": itself, "nearest other": neighbors}
NOTES = {
    text: over(f"StatefulPartitionedCall:{i}", 0.5)
    for text, i in (("onsets", 2), ("notes", 1), ("contours", 0))
}
QUESTIONS: Mapping[str, Mapping[str, Question]] = {
    "ppocrv4-rec": {"lines": lines, "symbols": classes},
    "ppocr-cls": {"upright": classes},
    "magika": {"file type": classes},
    "mtcnn-pnet": {"face cells": over("prob", 0.6, 1)},
    "mtcnn-rnet": {"faces": score("prob", 0.5)},
    "silero": {"speech": score("output", 0.5)},
    "crepe": {"pitch": bins},
    "swift_f0": {"pitch": pitch},
    "basic_pitch": NOTES,
    "resemblyzer": RANKING,
    "oww-embedding": RANKING,
}
