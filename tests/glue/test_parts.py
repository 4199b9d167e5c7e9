"""Any number of parts on either device, run by the bundle, gives the whole model's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitter.carve import Part, cut
from splitter.glue import Artifacts, check_files, from_json, read_manifest
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.graph import Array, Value
from splitter.plan import Device
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write

DEVICES: tuple[Device, ...] = ("npu", "cpu")


def bundle_of(bundle: Any, groups: Sequence[Sequence[int]], describe: Callable[..., Any]) -> Path:
    """The fixture's model cut another way, over the files of its bundle."""
    graphs = cut(bundle.whole, groups)
    parts = tuple(Part(DEVICES[i % 2], graph) for i, graph in enumerate(graphs))
    artifacts = Artifacts(tuple(write(part.graph) for part in parts), write(bundle.whole))
    manifest = describe(parts, bundle.whole, artifacts)
    assert from_json(manifest.to_json()) == manifest
    for name, data in artifacts.files([part.device for part in parts]).items():
        (bundle.folder / name).write_bytes(data)
    (bundle.folder / "manifest.json").write_text(manifest.to_json())
    check_files(manifest, bundle.folder)
    folder: Path = bundle.folder
    return folder


CUTS = [
    [range(a, b) for a, b in itertools.pairwise((0, *borders, 5))]
    for count in range(5)
    for borders in itertools.combinations(range(1, 5), count)
]


@pytest.mark.parametrize("groups", CUTS, ids=lambda groups: "|".join(str(len(g)) for g in groups))
def test_every_cut_gives_the_whole_models_integers(
    groups: list[range], bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    folder = bundle_of(bundle, groups, describe)
    parts = Runner(Bundle(folder), Settings()).run(feeds, keep_raw=True)
    whole = Runner(Bundle(folder, unsplit=True), Settings()).run(feeds, keep_raw=True)
    assert list(parts.outputs) == list(whole.outputs) == ["scores", "more", "big", "sum", "ids"]
    for name in whole.raw:
        np.testing.assert_array_equal(parts.raw[name], whole.raw[name])
    for name in whole.outputs:
        np.testing.assert_array_equal(parts.outputs[name], whole.outputs[name])


def test_an_input_that_nothing_reads_need_not_be_given(
    bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    inputs = (*bundle.model.inputs, Value("mask", (1, 9), "float64"))
    model = replace(bundle.model, inputs=inputs)
    folder = bundle_of(bundle, [[0, 1], [2, 3, 4]], partial(describe, model=model))
    assert [entry.name for entry in read_manifest(folder).inputs] == ["image", "ids", "mask"]
    assert Runner(Bundle(folder), Settings()).run(feeds).outputs["scores"].shape == (6, 4, 3)


def test_an_output_that_is_a_constant_is_given(
    bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    whole = replace(bundle.whole, outputs=(*bundle.whole.outputs, "bias"))
    outputs = (*bundle.model.outputs, Value("bias", (4,), "float32"))
    describe = partial(describe, model=replace(bundle.model, outputs=outputs))
    folder = bundle_of(replace(bundle, whole=whole), [[0, 1], [2, 3, 4]], describe)
    for unsplit in (False, True):
        made = Runner(Bundle(folder, unsplit=unsplit), Settings()).run(
            {name: array[:2] for name, array in feeds.items()}
        )
        np.testing.assert_allclose(made.outputs["bias"], [-1.18, -0.08, 0.42, 1.82], rtol=1e-6)


def test_a_model_without_operators_passes_its_inputs_on(
    bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    tensors = {name: bundle.whole.tensors[name] for name in ("image", "bias")}
    whole = LiteGraph(("image",), ("image", "bias"), tensors, ())
    model = replace(
        bundle.model,
        inputs=bundle.model.inputs[:1],
        outputs=(bundle.model.inputs[0], Value("bias", (4,), "float32")),
    )
    manifest = describe((), whole, Artifacts((), bundle.artifacts.unsplit), model=model)
    assert manifest.outputs[1].origin.constant.shape == (4,)
    (bundle.folder / "manifest.json").write_text(manifest.to_json())
    made = Runner(Bundle(bundle.folder), Settings()).run({"image": feeds["image"]})
    assert np.abs(made.outputs["image"] - feeds["image"]).max() <= 0.026
    np.testing.assert_allclose(made.outputs["bias"][:4], [-1.18, -0.08, 0.42, 1.82], rtol=1e-6)


def test_parts_may_be_in_another_order_where_nothing_depends(
    bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    folder = bundle_of(bundle, [[3], [0, 1], [2, 4]], describe)
    parts = Runner(Bundle(folder), Settings()).run(feeds)
    whole = Runner(Bundle(folder, unsplit=True), Settings()).run(feeds)
    for name in whole.outputs:
        np.testing.assert_array_equal(parts.outputs[name], whole.outputs[name])
