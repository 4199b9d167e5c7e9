"""What a model's outputs decide: detections, classes, or nothing this tool can read.

Decides the task from names and shapes of the outputs unless the user says it. Leaves the figures
to `detections` and `classification`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.graph import Value

Kind = Literal["detection", "classification", "none"]
KINDS: tuple[Kind, ...] = ("detection", "classification", "none")
_ALIASES: dict[str, Kind] = {"detr": "detection", "classify": "classification"}
_BOX_NAMES = ("box", "det", "bbox")
_SCORE_NAMES = ("logit", "label", "score", "class", "prob")


@dataclass(frozen=True, slots=True)
class Task:
    """boxes, scores: names of the outputs; `scores` are logits. `why` says how it was found.

    detection: boxes [N, Q, 4] (center x, center y, width, height, 0..1) and scores [N, Q, C].
    classification: scores [..., C], the last axis is the classes.
    classes: how many columns of the scores count, 0 for all.
    """

    kind: Kind
    why: str
    boxes: str = ""
    scores: str = ""
    classes: int = 0


def find_task(outputs: Sequence[Value], *, asked: str = "", classes: int = 0) -> Task:
    """The task `asked` for ("" finds it): detection, classification or none.

    `classes`: number of class names, where they are known; one column more is a background slot.
    Raises SplitterError for an unknown task, or one the outputs cannot be.
    """
    kind = _ALIASES.get(asked, asked)
    if kind and kind not in KINDS:
        raise SplitterError(
            f"{asked!r} is no task", where="--task", hint="valid: " + ", ".join(KINDS)
        )
    if kind == "none":
        return Task("none", "asked for")
    detection = _detection(outputs) if kind != "classification" else None
    classification = _classification(outputs, any_rank=bool(kind)) if kind != "detection" else None
    found = detection or classification
    if found:
        width = next(v for v in outputs if v.name == found.scores).shape[-1]
        return replace(found, classes=classes if classes == width - 1 else 0)
    shapes = ", ".join(f"{v.name} {list(v.shape)}" for v in outputs)
    if kind:
        raise SplitterError(
            f"the outputs {shapes} are no {kind}",
            where="--task",
            hint="detection is boxes [N, Q, 4] and logits [N, Q, C]; classification is [N, C]; "
            "--task none compares tensors only",
        )
    if not outputs:
        return Task("none", "of outputs with as many rows as the data decides none is known")
    return Task("none", f"outputs {shapes} fit no task that is known")


def _floats(outputs: Sequence[Value], rank: int) -> list[Value]:
    return [v for v in outputs if len(v.shape) == rank and np.dtype(v.dtype).kind == "f"]


def _named(value: Value, words: Sequence[str]) -> bool:
    return any(word in value.name.lower() for word in words)


def _detection(outputs: Sequence[Value]) -> Task | None:
    """The pair of float outputs [N, Q, 4] and [N, Q, C] of equal N and Q; names settle doubt."""
    ranked = _floats(outputs, 3)
    pairs = [
        (boxes, scores)
        for boxes in ranked
        for scores in ranked
        if boxes is not scores and boxes.shape[2] == 4 and boxes.shape[:2] == scores.shape[:2]
    ]
    if not pairs:
        return None
    boxes, scores = max(
        pairs, key=lambda pair: _named(pair[0], _BOX_NAMES) + _named(pair[1], _SCORE_NAMES)
    )
    shapes = f"{boxes.name} {list(boxes.shape)} and {scores.name} {list(scores.shape)}"
    return Task("detection", f"{shapes} are boxes and logits", boxes.name, scores.name)


def _classification(outputs: Sequence[Value], *, any_rank: bool) -> Task | None:
    candidates = [v for v in _floats(outputs, 2) if v.shape[1] > 1]
    if not candidates and any_rank:
        candidates = [v for v in outputs if v.shape and v.shape[-1] > 1]
    if not candidates or (len(outputs) > 1 and len(candidates) > 1 and not any_rank):
        return None
    scores = max(candidates, key=lambda value: _named(value, _SCORE_NAMES))
    return Task(
        "classification",
        f"{scores.name} {list(scores.shape)} is one row of classes a sample",
        scores=scores.name,
    )
