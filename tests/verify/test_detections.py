"""Detections as sets: order never counts, classes and overlap do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.graph import Array
from splitter.verify.detections import (
    Detections,
    agree,
    choose_examples,
    decode_detr,
    match,
    overlaps,
    pair_queries,
)


def detector_outputs(seed: int, *, queries: int = 12, classes: int = 4) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    centers, sizes = rng.uniform(0.2, 0.8, (queries, 2)), rng.uniform(0.05, 0.3, (queries, 2))
    logits = rng.normal(-2, 3, (queries, classes))
    return np.concatenate([centers, sizes], axis=1).astype(np.float32), logits.astype(np.float32)


def boxes_of(*rows: tuple[float, ...]) -> Array:
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def detections(boxes: Array, scores: list[float], classes: list[int]) -> Detections:
    return Detections(boxes, np.array(scores), np.array(classes))


def test_decoding_takes_the_best_pairs_of_query_and_class() -> None:
    boxes = np.float32([[0.5, 0.5, 0.2, 0.4], [0.25, 0.75, 0.1, 0.1]])
    logits = np.float32([[2.0, 3.0, 9.0], [-1.0, 2.5, 9.0]])
    found = decode_detr(boxes, logits, classes=2, size=(100, 200))
    assert found.classes.tolist() == [1, 1]
    np.testing.assert_allclose(found.boxes, [[40, 60, 60, 140], [20, 140, 30, 160]], atol=1e-4)
    np.testing.assert_allclose(found.scores, 1 / (1 + np.exp([-3.0, -2.5])))


def test_extreme_logits_do_not_overflow() -> None:
    logits = np.float32([[1e4, -1e4]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        found = decode_detr(np.zeros((1, 4), np.float32), logits, limit=2)
    assert found.scores.tolist() == [1.0, 0.0]


def test_overlap_is_intersection_over_union() -> None:
    left = boxes_of((0, 0, 10, 10))
    right = boxes_of((5, 0, 15, 10), (20, 20, 30, 30), (0, 0, 10, 10), (3, 3, 3, 3))
    np.testing.assert_allclose(overlaps(left, right), [[1 / 3, 0, 1, 0]])


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_a_permuted_detector_is_the_same_detector(seed: int) -> None:
    boxes, logits = detector_outputs(seed)
    order = np.random.default_rng(seed).permutation(len(boxes))
    same = agree(
        [decode_detr(boxes, logits)], [decode_detr(boxes[order], logits[order])], score=0.3
    )
    assert same.found_share == 1.0 and same.extra == 0 and same.score_rms == 0.0


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_pairing_queries_undoes_a_permutation(seed: int) -> None:
    boxes, logits = detector_outputs(seed)
    order = np.random.default_rng(seed).permutation(len(boxes))
    back = pair_queries(boxes, logits, boxes[order], logits[order])
    np.testing.assert_array_equal(boxes[order][back], boxes)
    np.testing.assert_array_equal(logits[order][back], logits)


def test_pairing_queries_ends_with_ties_and_nan() -> None:
    boxes, logits = np.ones((5, 4), np.float32), np.zeros((5, 2), np.float32)
    broken = boxes.copy()
    broken[2] = np.nan
    assert sorted(pair_queries(boxes, logits, broken, logits)) == list(range(5))


def test_another_class_at_the_same_place_is_lost_and_extra() -> None:
    here = boxes_of((0, 0, 10, 10))
    same = agree([detections(here, [0.9], [1])], [detections(here, [0.9], [2])])
    assert (same.found, same.extra) == (0, 1)


def test_each_detection_is_found_once() -> None:
    two = boxes_of((0, 0, 10, 10), (1, 0, 11, 10))
    one = boxes_of((0, 0, 10, 10))
    assert len(match(detections(two, [0.9, 0.8], [0, 0]), detections(one, [0.9], [0]))) == 1


def test_the_closest_pairs_are_taken_first() -> None:
    left = detections(boxes_of((0, 0, 10, 10), (2, 0, 12, 10)), [0.9, 0.8], [0, 0])
    right = detections(boxes_of((2, 0, 12, 10), (0, 0, 10, 10)), [0.9, 0.8], [0, 0])
    assert [(p.left, p.right, p.overlap) for p in match(left, right)] == [(0, 1, 1.0), (1, 0, 1.0)]


def test_a_score_that_fell_below_the_line_is_told_from_an_object_not_seen() -> None:
    boxes = boxes_of((0, 0, 10, 10), (50, 50, 70, 70))
    reference = [detections(boxes, [0.9, 0.6], [0, 1])]
    same = agree(reference, [detections(boxes, [0.9, 0.4], [0, 1])])
    assert (same.reference, same.found, same.weakened, same.extra) == (2, 1, 1, 0)
    moved_boxes = boxes + np.array([[0], [30]])
    moved = agree(reference, [detections(moved_boxes, [0.9, 0.4], [0, 1])])
    assert (moved.found, moved.weakened) == (1, 0)


def test_no_detections_on_either_side_agree() -> None:
    none = detections(np.zeros((0, 4)), [], [])
    same = agree([none], [none])
    assert same.found_share == 1.0 and same.extra_share == 0.0


def test_examples_hold_the_worst_images_and_are_in_order() -> None:
    box = boxes_of((0, 0, 10, 10))
    good, none = detections(box, [0.9], [0]), detections(np.zeros((0, 4)), [], [])
    reference = [good] * 10
    candidate = [good] * 7 + [none] + [good] * 2
    chosen = choose_examples(reference, candidate, count=4)
    indices = [example.index for example in chosen]
    assert 7 in indices and indices == sorted(indices) and len(indices) == 4
    assert choose_examples([], []) == ()


def test_score_differences_are_candidate_minus_reference() -> None:
    box = boxes_of((0, 0, 10, 10))
    same = agree([detections(box, [0.9], [0])], [detections(box, [0.8], [0])])
    assert same.score_bias == pytest.approx(-0.1)
