"""Raw graphs of PyTorch's exporters: heads, tails and blocks of the networks that people bring."""

from __future__ import annotations

import pytest

from tests.patterns.exported import FOLDER, Pattern

IMAGE = {"in0": (1, 3, 64, 64)}
PATTERNS = [
    Pattern("yolo8_head-ts16", 0.02),
    Pattern("yolo5_inplace-ts16", 0.02),
    Pattern("yolo5_inplace-dy18", 0.02),
    Pattern("yolo_pose_inplace-ts13-dynAll", 0.03, shapes=IMAGE),
    Pattern("yolo_e2e-ts13-dynAll", 0.03, shapes=IMAGE, ranked=True),
    Pattern("centernet-ts13-dynAll", 0.02, shapes=IMAGE, ranked=True),
    Pattern("ssd_decode-ts12-nofold", 0.02),
    Pattern("blazeface-ts13-dynAll", 0.04, shapes=IMAGE),
    Pattern("detr_post-ts17", 0.2, ranked=True),
    Pattern("fdr_dfine-ts16", 0.04),
    Pattern("nms_sorted_matrix-ts14", 0.25, ranked=True),
    Pattern("ms_deform_attn-dy20", 0.2),
    Pattern("shift_window-dy18", 0.04),
    Pattern("rope_interleaved-dy21-dynB", 0.06, shapes={"in0": (1, 16, 32)}),
    Pattern("axial_rope-dy20", 0.03),
    Pattern("transformerxl_relshift-ts17", 0.05),
    Pattern("ultra_attn_c2psa-dy20", 0.05),
    Pattern("kv_cache_static-ts17", 0.06, fixed={"in3": 5}),
    Pattern(
        "silero-ts15-dynAll",
        0.05,
        shapes={"in0": (1, 256), "in1": (2, 1, 16)},
        fixed={"in2": 16000},
    ),
    Pattern("script_if_shape-ts14", 0.04),
    Pattern("script_loop-ts12-nofold", 0.01),
    Pattern("dbnet-ts11", 0.02),
    Pattern("crnn-ts16", 0.02),
    Pattern("attn_ocr-ts12-nofold", 0.2),
    Pattern("superres_ycbcr-ts15-dynAll", 0.02, shapes={"in0": (1, 16, 20, 3)}, top={"in0": 256}),
    Pattern("carafe-ts17", 0.08),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_it_computes_what_onnx_runtime_computes_and_its_integers_stay_close(
    pattern: Pattern,
) -> None:
    lowered = pattern.lowered()
    assert lowered.float_error() <= 1e-4
    assert pattern.integer_error(lowered) <= pattern.bound


def test_every_graph_of_the_folder_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {pattern.name for pattern in PATTERNS}
