"""What the outputs decide, gathered run by run, and how the two sides' decisions agree.

Decides how outputs are read for each task. Leaves the arithmetic to `detections`, `coco` and
`classification`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.graph import Array
from splitter.verify.classification import Answers, answers_of, compare_answers
from splitter.verify.coco import Precision, Truth, average_precision
from splitter.verify.detections import (
    Detections,
    Example,
    SetAgreement,
    agree,
    choose_examples,
    decode_detr,
)
from splitter.verify.statistics import Share, share_of
from splitter.verify.tasks import Task

Outputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class DetectionDecisions:
    """Detections as sets; with annotated images also COCO's precision of each side."""

    agreement: SetAgreement
    found: Share
    reference: Precision | None = None
    candidate: Precision | None = None

    @property
    def annotated(self) -> bool:
        """Whether the annotated objects are ones that the float model finds at all."""
        return self.reference is not None and self.reference.ap50 >= LEAST


LEAST = 0.01
"""Precision of the float model under which the annotations are not about this model."""

Decisions = DetectionDecisions | Answers


class Judge:
    """Collects the decisions of both sides."""

    def __init__(self, task: Task, annotations: Mapping[str, Array], sizes: Array | None) -> None:
        self._task = task
        self._annotations = annotations
        self._sizes = sizes
        self._reference: list[Detections] = []
        self._candidate: list[Detections] = []
        self._answers: tuple[list[Array], list[Array]] = ([], [])

    def add(self, reference: Outputs, candidate: Outputs) -> None:
        if self._task.kind == "classification":
            for answers, outputs in zip(self._answers, (reference, candidate), strict=True):
                scores = outputs[self._task.scores]
                answers.append(answers_of(scores, classes=self._task.classes))
        if self._task.kind == "detection":
            self._add_detections(reference, candidate)

    def _add_detections(self, reference: Outputs, candidate: Outputs) -> None:
        boxes, scores = self._task.boxes, self._task.scores
        for row in range(len(reference[boxes])):
            size = self._size(len(self._reference))
            for sets, outputs in ((self._reference, reference), (self._candidate, candidate)):
                sets.append(
                    decode_detr(
                        outputs[boxes][row],
                        outputs[scores][row],
                        classes=self._task.classes,
                        size=size,
                    )
                )

    def _size(self, index: int) -> tuple[float, float]:
        if self._sizes is None or index >= len(self._sizes):
            return (1.0, 1.0)
        width, height = self._sizes[index]
        return float(width), float(height)

    def result(self) -> Decisions | None:
        if self._task.kind == "classification":
            return compare_answers(*self._answers, labels=self._labels())
        if self._task.kind == "none" or not self._reference:
            return None
        agreement = agree(self._reference, self._candidate)
        found = share_of(agreement.found, agreement.reference)
        truth = self._truth()
        if not truth:
            return DetectionDecisions(agreement, found)
        count = len(truth)
        return DetectionDecisions(
            agreement,
            found,
            average_precision(self._reference[:count], truth),
            average_precision(self._candidate[:count], truth),
        )

    def examples(self) -> tuple[Example, ...]:
        return choose_examples(self._reference, self._candidate)

    def _labels(self) -> Array | None:
        labels = self._annotations.get("labels")
        if labels is None or "boxes" in self._annotations:
            return None
        answers = sum(len(run) for run in self._answers[0])
        if labels.size < answers:
            raise SplitterError(
                f"{labels.size} labels for {answers} answers",
                where="labels of the validation data",
                hint="one label for each row of classes",
            )
        return np.asarray(labels.reshape(-1)[:answers])

    def _truth(self) -> list[Truth]:
        """The annotated objects of the images that were run; [] when there are none at all."""
        notes = self._annotations
        if "boxes" not in notes:
            return []
        rows = range(min(len(self._reference), len(notes["counts"])))
        counts = [int(notes["counts"][row]) for row in rows]
        if not sum(counts):
            return []
        return [
            Truth(notes["boxes"][row][:count], notes["labels"][row][:count])
            for row, count in zip(rows, counts, strict=True)
        ]
