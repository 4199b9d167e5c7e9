"""What a user may give for calibration, and what he is told when it does not fit."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from splitter.calibration import read_calibration
from splitter.diagnostics import SplitterError
from splitter.graph import Value

NCHW = Value("input", (1, 3, 8, 6), "float32")
NHWC = Value("input", (1, 8, 6, 3), "float32")
IDS = Value("ids", (1, 5), "int64")
MASK = Value("mask", (1, 5), "bool")


def picture(seed: int, *, height: int = 8, width: int = 6) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def folder_of(path: Path, count: int, *, suffix: str = "png") -> Path:
    for index in range(count):
        Image.fromarray(picture(index)).save(path / f"{index:03d}.{suffix}")
    return path


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def refusal(*args: Any, **options: Any) -> SplitterError:
    with pytest.raises(SplitterError) as caught:
        read_calibration(*args, **options)
    return caught.value


def test_a_folder_of_images_fills_an_nchw_input_with_imagenet_numbers(tmp_path: Path) -> None:
    samples = read_calibration(folder_of(tmp_path, 3), [NCHW], preprocess="imagenet")
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    wanted = (picture(1).astype(np.float32) / 255 - mean) / std
    assert samples.arrays["input"].shape == (3, 3, 8, 6)
    np.testing.assert_array_equal(samples.arrays["input"][1], wanted.transpose(2, 0, 1))


def test_an_nhwc_input_is_recognized_by_its_shape(tmp_path: Path) -> None:
    samples = read_calibration(folder_of(tmp_path, 2), [NHWC], preprocess="none")
    np.testing.assert_array_equal(samples.arrays["input"][0], picture(0).astype(np.float32))


def test_own_mean_and_std_are_on_the_0_to_1_scale(tmp_path: Path) -> None:
    options = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.5, 1.0)}
    samples = read_calibration(folder_of(tmp_path, 1), [NHWC], **options)
    wanted = (picture(0) / 255 - 0.5) / np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(samples.arrays["input"][0], wanted, atol=1e-6)


def test_images_are_resized_to_the_input_and_remember_their_size(tmp_path: Path) -> None:
    flat = np.full((40, 30, 3), 90, np.uint8)
    Image.fromarray(flat).save(tmp_path / "flat.bmp")
    samples = read_calibration(tmp_path, [NHWC], preprocess="none")
    assert samples.arrays["input"].shape == (1, 8, 6, 3)
    assert (samples.arrays["input"] == 90).all()
    assert samples.sizes is not None and samples.sizes.tolist() == [[30, 40]]


def test_shrinking_averages_instead_of_picking_pixels(tmp_path: Path) -> None:
    stripes = np.zeros((64, 48, 3), np.uint8)
    stripes[:, ::2] = 255
    Image.fromarray(stripes).save(tmp_path / "stripes.png")
    samples = read_calibration(tmp_path, [NHWC], preprocess="none")
    inner = samples.arrays["input"][0, :, 1:-1]
    assert abs(inner - 127.5).max() < 10


def test_gray_and_alpha_images_become_rgb(tmp_path: Path) -> None:
    Image.fromarray(picture(0)[..., 0]).save(tmp_path / "a.png")
    Image.fromarray(picture(1)).convert("RGBA").save(tmp_path / "b.webp", lossless=True)
    samples = read_calibration(tmp_path, [NHWC], preprocess="none")
    assert samples.arrays["input"].shape == (2, 8, 6, 3)
    np.testing.assert_array_equal(samples.arrays["input"][1], picture(1))


def test_images_of_sixteen_bits_keep_their_shades(tmp_path: Path) -> None:
    deep = (np.arange(48, dtype=np.uint16) * 1300).reshape(8, 6)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    samples = read_calibration(tmp_path, [NHWC], preprocess="none")
    np.testing.assert_array_equal(samples.arrays["input"][0, ..., 0], deep // 257)


def test_a_name_that_is_too_long_is_no_file(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / ("x" * 300), [NCHW]).what


def test_files_are_taken_in_name_order_and_the_limit_spreads_over_them(tmp_path: Path) -> None:
    samples = read_calibration(folder_of(tmp_path, 10), [NHWC], preprocess="none", limit=5)
    wanted = np.stack([picture(index) for index in (0, 2, 4, 6, 8)]).astype(np.float32)
    np.testing.assert_array_equal(samples.arrays["input"], wanted)


def test_subfolders_count_and_hidden_files_do_not(tmp_path: Path) -> None:
    (tmp_path / "cats").mkdir()
    folder_of(tmp_path / "cats", 2)
    (tmp_path / "cats" / "._000.png").write_bytes(b"resource fork")
    assert len(read_calibration(tmp_path, [NHWC], preprocess="0-1")) == 2


def test_every_unreadable_image_is_named(tmp_path: Path) -> None:
    folder_of(tmp_path, 2)
    (tmp_path / "bad.png").write_bytes(b"no image")
    whole = (tmp_path / "000.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    error = refusal(tmp_path, [NCHW], preprocess="imagenet")
    assert "2 of 4" in error.what and "bad.png" in error.what and "cut.png" in error.what


def test_a_folder_without_images_says_which_files_count(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert ".png" in refusal(tmp_path, [NCHW], preprocess="imagenet").hint


def test_images_without_a_way_to_preprocess_are_refused(tmp_path: Path) -> None:
    assert "--preprocess imagenet" in refusal(folder_of(tmp_path, 1), [NCHW]).hint


def test_preprocess_and_mean_exclude_each_other(tmp_path: Path) -> None:
    given = {"preprocess": "imagenet", "mean": (0.5,) * 3, "std": (0.5,) * 3}
    assert "exclude" in refusal(folder_of(tmp_path, 1), [NCHW], **given).what


def test_mean_and_std_of_the_0_to_255_scale_are_refused(tmp_path: Path) -> None:
    given = {"mean": (123.7, 116.3, 103.5), "std": (58.4, 57.1, 57.4)}
    assert "0..1" in refusal(folder_of(tmp_path, 1), [NCHW], **given).what


def test_mean_alone_is_refused(tmp_path: Path) -> None:
    assert "--std" in refusal(folder_of(tmp_path, 1), [NCHW], mean=(0.5, 0.5, 0.5)).what


def test_an_npz_of_images_fills_the_input_and_carries_its_labels(tmp_path: Path) -> None:
    images = np.stack([picture(i) for i in range(6)])
    path = save(tmp_path / "v.npz", images=images, labels=np.arange(6))
    samples = read_calibration(path, [NCHW], preprocess="none", limit=3)
    np.testing.assert_array_equal(samples.arrays["input"], images[::2].transpose(0, 3, 1, 2))
    assert samples.annotations["labels"].tolist() == [0, 2, 4]


def test_boxes_that_do_not_fit_their_labels_are_refused(tmp_path: Path) -> None:
    images = np.stack([picture(i) for i in range(2)])
    labels = np.zeros((2, 3), int)
    path = save(
        tmp_path / "v.npz", images=images, boxes=np.zeros((2, 4, 4)), labels=labels, counts=[1, 1]
    )
    assert "labels is [2, 3]" in refusal(path, [NCHW], preprocess="none").what


def test_channels_first_images_are_named_as_such(tmp_path: Path) -> None:
    path = save(tmp_path / "v.npz", images=np.zeros((2, 3, 8, 6), np.uint8))
    assert "transpose(0, 2, 3, 1)" in refusal(path, [NCHW], preprocess="none").what


def test_float_images_point_to_the_inputs_name(tmp_path: Path) -> None:
    path = save(tmp_path / "v.npz", images=np.zeros((2, 8, 6, 3), np.float32))
    error = refusal(path, [NCHW], preprocess="none")
    assert "uint8" in error.what and "input" in error.hint


def test_an_input_that_is_itself_named_images_takes_its_own_array(tmp_path: Path) -> None:
    value = Value("images", (1, 3, 8, 6), "float32")
    array = np.random.default_rng(0).standard_normal((4, 3, 8, 6)).astype(np.float32)
    samples = read_calibration(save(tmp_path / "v.npz", images=array), [value])
    np.testing.assert_array_equal(samples.arrays["images"], array)


def test_pictures_for_an_input_that_is_itself_named_images_are_still_pictures(
    tmp_path: Path,
) -> None:
    value = Value("images", (1, 3, 8, 6), "float32")
    path = save(tmp_path / "v.npz", images=np.stack([picture(0)]))
    samples = read_calibration(path, [value], preprocess="0-1")
    assert samples.arrays["images"].max() <= 1


def test_arrays_by_name_fill_every_input(tmp_path: Path) -> None:
    ids = np.arange(20).reshape(4, 5)
    mask = ids % 2 == 0
    samples = read_calibration(save(tmp_path / "c.npz", ids=ids, mask=mask), [IDS, MASK])
    batches = samples.batches([IDS, MASK])
    assert len(batches) == 4
    np.testing.assert_array_equal(batches[2]["ids"], ids[2:3])
    assert batches[0]["mask"].dtype == bool


def test_stacked_runs_are_taken_as_joined_ones(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((3, 1, 3, 8, 6))
    samples = read_calibration(save(tmp_path / "c.npz", input=array), [NCHW])
    assert samples.arrays["input"].shape == (3, 3, 8, 6)
    assert samples.arrays["input"].dtype == np.float32


def test_a_scalar_input_takes_one_number_a_sample(tmp_path: Path) -> None:
    scalar = Value("step", (), "float32")
    samples = read_calibration(save(tmp_path / "c.npz", step=np.arange(3.0)), [scalar])
    assert [b["step"].shape for b in samples.batches([scalar])] == [()] * 3


def test_a_batch_of_two_takes_two_rows_a_run(tmp_path: Path) -> None:
    value = Value("x", (2, 3), "float32")
    array = np.arange(21, dtype=np.float32).reshape(7, 3)
    batches = read_calibration(save(tmp_path / "c.npz", x=array), [value]).batches([value])
    assert len(batches) == 3
    np.testing.assert_array_equal(batches[1]["x"], array[2:4])


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", idz=np.zeros((2, 5), int), mask=np.zeros((2, 4)))
    error = refusal(path, [IDS, MASK])
    assert "no array for input ids" in error.what
    assert "idz" in error.what
    assert "mask is [2, 4]" in error.what
    assert "float64; the model takes bool" in error.what


def test_a_name_too_many_offers_the_nearest(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", ids=np.zeros((2, 5), int), id=np.zeros(2))
    assert "did you mean ids?" in refusal(path, [IDS]).what


def test_many_names_too_many_are_counted(tmp_path: Path) -> None:
    runs = {f"in{i}/ids": np.zeros((2, 5), int) for i in range(12)}
    error = refusal(save(tmp_path / "c.npz", **runs), [IDS])
    assert "no array for input ids" in error.what
    assert "in0/ids, in1/ids, in2/ids and 9 more are no inputs of the model" in error.what


def test_floats_for_an_integer_input_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", ids=np.zeros((2, 5)))
    assert "float64; the model takes int64" in refusal(path, [IDS]).what


def test_raw_pixels_under_a_float_inputs_name_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", input=np.zeros((2, 3, 8, 6), np.uint8))
    assert "uint8; the model takes float32" in refusal(path, [NCHW]).what


def test_integers_beyond_the_inputs_type_are_refused(tmp_path: Path) -> None:
    small = Value("ids", (1, 5), "int32")
    path = save(tmp_path / "c.npz", ids=np.full((2, 5), 2**40))
    assert "int32 cannot hold" in refusal(path, [small]).what


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_numbers_that_are_not_finite_in_the_inputs_type_are_refused(
    tmp_path: Path, bad: float
) -> None:
    array = np.zeros((3, 3, 8, 6))
    array[2, 1, 0, 0] = bad
    error = refusal(save(tmp_path / "c.npz", input=array), [NCHW])
    assert "NaN or infinite" in error.what and "sample 2" in error.what


def test_unequal_counts_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", ids=np.zeros((2, 5), int), mask=np.zeros((3, 5), bool))
    assert "ids 2, mask 3" in refusal(path, [IDS, MASK]).what


def test_an_empty_array_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", ids=np.zeros((0, 5), int))
    assert "empty" in refusal(path, [IDS]).what


def test_fewer_samples_than_a_batch_are_refused(tmp_path: Path) -> None:
    value = Value("x", (4, 3), "float32")
    path = save(tmp_path / "c.npz", x=np.zeros((3, 3)))
    assert "one run of the model takes 4" in refusal(path, [value]).what


def test_fewer_images_than_a_batch_are_refused(tmp_path: Path) -> None:
    value = Value("x", (4, 8, 6, 3), "float32")
    folder_of(tmp_path, 3)
    assert "one run of the model takes 4" in refusal(tmp_path, [value], preprocess="none").what


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = save(tmp_path / "c.npz", ids=np.array([{"a": 1}], dtype=object))
    assert "pickled" in refusal(path, [IDS]).what


def test_something_that_is_no_archive_is_named_so(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_bytes(b"hello")
    assert "not a whole .npz archive" in refusal(tmp_path / "c.npz", [IDS]).what


def test_a_single_npy_array_is_named_so(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.zeros(3))
    assert "single .npy array" in refusal(tmp_path / "c.npy", [IDS]).what


def test_a_zip_of_other_things_is_named_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("readme.txt", "x")
    assert "no array" in refusal(tmp_path / "c.npz", [IDS]).what


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    whole = save(tmp_path / "c.npz", ids=np.zeros((2, 5), int)).read_bytes()
    (tmp_path / "c.npz").write_bytes(whole[:-40])
    assert "not a whole" in refusal(tmp_path / "c.npz", [IDS]).what


def test_a_header_that_promises_more_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": (1000, 5)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("ids.npy", stream.getvalue() + b"\0" * 80)
    assert "ends before" in refusal(tmp_path / "c.npz", [IDS]).what


def test_an_archive_that_would_fill_the_memory_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 3, 8, 6)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("input.npy", stream.getvalue() + b"\0" * 1000)
    assert "GB of memory" in refusal(tmp_path / "c.npz", [NCHW]).what


def test_a_large_archive_is_read_only_where_needed(tmp_path: Path) -> None:
    array = np.arange(1000 * 5).reshape(1000, 5)
    np.savez_compressed(tmp_path / "c.npz", ids=np.asfortranarray(array))
    samples = read_calibration(tmp_path / "c.npz", [IDS], limit=4)
    np.testing.assert_array_equal(samples.arrays["ids"], array[[0, 250, 500, 750]])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.npz" in refusal(tmp_path / "nowhere.npz", [IDS]).where


def test_no_calibration_is_refused_with_how_to_give_it() -> None:
    error = refusal(None, [NCHW])
    assert "--calibration FOLDER" in error.hint and "input float32[1, 3, 8, 6]" in error.hint


def test_random_numbers_are_marked_and_the_same_each_time() -> None:
    first = read_calibration("random", [NCHW, IDS, MASK])
    again = read_calibration("random", [NCHW, IDS, MASK])
    assert first.random and len(first.batches([NCHW, IDS, MASK])) == 8
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, again.arrays[name])


def test_images_for_a_model_of_two_inputs_are_refused(tmp_path: Path) -> None:
    error = refusal(folder_of(tmp_path, 1), [NCHW, IDS], preprocess="imagenet")
    assert "the model has 2" in error.what and "ids int64[1, 5]" in error.hint


def test_images_for_an_input_that_is_none_are_refused(tmp_path: Path) -> None:
    assert "is no image" in refusal(folder_of(tmp_path, 1), [IDS], preprocess="none").what


def test_a_uint8_input_takes_the_pixels_as_they_are(tmp_path: Path) -> None:
    value = Value("input", (1, 8, 6, 3), "uint8")
    samples = read_calibration(folder_of(tmp_path, 1), [value])
    np.testing.assert_array_equal(samples.arrays["input"][0], picture(0))
