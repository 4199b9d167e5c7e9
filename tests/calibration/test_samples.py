"""How samples are spread and divided between calibration and verification."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.calibration import Samples, divide
from splitter.calibration.samples import spread
from splitter.graph import Value

X = Value("x", (1, 2), "float32")


def numbered(count: int) -> Samples:
    return Samples({"x": np.repeat(np.arange(count, dtype=np.float32), 2).reshape(count, 2)})


def rows_of(samples: Samples) -> set[int]:
    return {int(row[0]) for row in samples.arrays["x"]}


@given(st.integers(1, 200), st.integers(0, 250))
def test_a_spread_is_ascending_without_repeats_and_within_the_set(count: int, limit: int) -> None:
    chosen = spread(count, limit)
    assert len(chosen) == (min(count, limit) or count)
    assert (np.diff(chosen) > 0).all() and chosen[0] == 0 and chosen[-1] < count


@given(st.integers(8, 120), st.integers(1, 64), st.integers(1, 64))
def test_verification_never_sees_a_calibration_sample_when_there_are_enough(
    count: int, calibration: int, validation: int
) -> None:
    division = divide(numbered(count), [X], calibration=calibration, validation=validation)
    assert not division.shared
    assert not rows_of(division.calibration) & rows_of(division.validation)
    assert rows_of(division.calibration) and rows_of(division.validation)
    if count >= calibration + validation:
        assert len(division.calibration) == calibration
        assert len(division.validation) == validation


@pytest.mark.parametrize("count", [1, 4, 7])
def test_few_samples_serve_both_and_the_division_says_so(count: int) -> None:
    division = divide(numbered(count), [X], calibration=32, validation=16)
    assert division.shared
    assert rows_of(division.calibration) == rows_of(division.validation) == set(range(count))


def test_pictures_and_labels_go_with_their_samples() -> None:
    samples = Samples(
        {"x": np.arange(20, dtype=np.float32).reshape(10, 2)},
        images=np.arange(10, dtype=np.uint8).reshape(10, 1, 1, 1),
        annotations={"labels": np.arange(10), "class_names": np.array(["a", "b"])},
    )
    division = divide(samples, [X], calibration=6, validation=4)
    assert division.validation.images is not None
    assert division.validation.images.reshape(-1).tolist() == (
        division.validation.annotations["labels"].tolist()
    )
    assert division.validation.annotations["class_names"].tolist() == ["a", "b"]
