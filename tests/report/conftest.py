"""A small detector split by the real stages: convolution on the NPU, a sine on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from splitter.calibration import read_calibration
from splitter.carve import carve
from splitter.glue import Artifacts, build_manifest, glue_files
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.options import Options
from splitter.partition import plan
from splitter.quantize import calibrate, quantize
from splitter.quantize.demands import demands_of
from splitter.rehearse import runs, unpacked
from splitter.report import ReportData, Summary, summarize
from splitter.rules.support import judge
from splitter.rules.targets import load_target
from splitter.tflite.write import write
from splitter.verify import Circumstances, find_task, verify

DETECTOR = """
<ir_version: 8, opset_import: ["" : 18]>
detector (float[1,3,16,16] input) => (float[1,6,4] dets, float[1,6,4] labels) {
    c = Conv <pads = [1,1,1,1], strides = [2,2]> (input, w_conv, b_conv)
    r = Relu (c)
    f = Reshape (r, flat)
    m = MatMul (f, w_boxes)
    s = Sigmoid (m)
    dets = Reshape (s, six_four)
    n = MatMul (f, w_labels)
    t = Sin (n)
    u = Mul (t, four)
    labels = Reshape (u, six_four)
}
"""
SCOPES = {"c": "backbone", "r": "backbone", "f": "backbone"}


def detector() -> onnx.ModelProto:
    model = onnx.parser.parse_model(DETECTOR)
    for node in model.graph.node:
        scope = SCOPES.get(node.output[0], "head")
        node.name = f"/{scope}/{node.op_type}_{node.output[0]}"
    rng = np.random.default_rng(0)
    weights = {
        "w_conv": rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32),
        "b_conv": rng.normal(0, 0.1, 8).astype(np.float32),
        "flat": np.array([1, 512], np.int64),
        "w_boxes": rng.normal(0, 0.1, (512, 24)).astype(np.float32),
        "w_labels": rng.normal(0, 0.1, (512, 24)).astype(np.float32),
        "four": np.array([4.0], np.float32),
        "six_four": np.array([1, 6, 4], np.int64),
    }
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    """The results of every stage for the small detector on imx95."""
    folder: Path = tmp_path_factory.mktemp("report")
    onnx.save(detector(), folder / "small.onnx")
    images = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    np.savez(folder / "images.npz", images=images)
    original = load(folder / "small.onnx")
    model = normalize(original)
    samples = read_calibration(folder / "images.npz", model.inputs, preprocess="imagenet")
    target = load_target("imx95")
    graph = layout(model)
    support = judge(graph, target, trust="proxy")
    candidates = plan(graph, support, target, cut=("f",))
    lite = lower(graph, candidates[0].lowerings)
    batches = samples.batches(model.inputs)
    npu = [u for s in candidates[0].segments if s.device == "npu" for u in s.units]
    whole = quantize(lite, calibrate(lite, batches), npu=npu, demands=demands_of(target))
    parts = carve(whole, candidates[0])
    artifacts = Artifacts(tuple(write(part.graph) for part in parts), write(whole))
    options = Options(folder / "small.onnx", "imx95", folder / "out", "images.npz")
    manifest = build_manifest(
        parts, whole, artifacts, model=model, target=target, samples=samples, options=options
    )
    files = artifacts.files([part.device for part in parts]) | glue_files(manifest, target)
    with unpacked(files) as bundle:
        comparison = verify(
            runs(bundle, original, model.outputs, batches, exact=lite, planned=lite, threads=1),
            [value.name for value in model.outputs],
            task=find_task(model.outputs),
            circumstances=Circumstances(shared=True),
            sizes=samples.sizes,
        )
    return ReportData(
        manifest=manifest,
        target=target,
        graph=graph,
        support=support,
        candidates=candidates,
        whole=whole,
        parts=parts,
        comparison=comparison,
        pictures=samples.images,
        sizes=samples.sizes,
        class_names=("cat", "dog", "<b>bird</b>"),
    )


@pytest.fixture(scope="session")
def summary(data: ReportData) -> Summary:
    return summarize(data)
