"""The outlier variant is the same function in float, with far wider ranges."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from models import build_outliers


@pytest.fixture(scope="module")
def tiny() -> onnx.ModelProto:
    return onnx.load(build_outliers.TINY)


@pytest.fixture(scope="module")
def images() -> build_outliers.Array:
    file = np.load(build_outliers.HERE / "calib_images.npz", allow_pickle=False)
    return np.asarray(file["images"][:2])


@pytest.mark.parametrize("strength", [4.0, 40.0])
def test_the_variant_computes_what_the_original_computes(
    tiny: onnx.ModelProto, images: build_outliers.Array, strength: float
) -> None:
    made, changed = build_outliers.add_outliers(tiny, strength=strength, seed=0)
    assert changed > 100
    before, after = build_outliers.run(tiny, images), build_outliers.run(made, images)
    for name, values in before.items():
        np.testing.assert_allclose(after[name], values, rtol=0, atol=1e-4, err_msg=name)


def test_ranges_grow_with_the_strength(tiny: onnx.ModelProto, images: build_outliers.Array) -> None:
    value = "/backbone/backbone.0/encoder/encoder/encoder/layer.3/norm1/LayerNormalization_output_0"
    widths = []
    for strength in (4.0, 40.0):
        made, _ = build_outliers.add_outliers(tiny, strength=strength, seed=0)
        widths.append(np.ptp(build_outliers.run(made, images, [value])[value]))
    assert widths[1] > 5 * widths[0] > 0


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tiny: onnx.ModelProto) -> None:
    first, second, other = (
        build_outliers.add_outliers(tiny, strength=20.0, seed=seed)[0].SerializeToString(
            deterministic=True
        )
        for seed in (0, 0, 1)
    )
    assert first == second
    assert first != other
