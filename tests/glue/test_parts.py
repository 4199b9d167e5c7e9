"""Any number of parts on either device, run by the bundle, gives the whole model's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitter.carve import Part, cut
from splitter.glue import Artifacts, check_files, from_json
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.runner import Runner
from splitter.graph import Array
from splitter.plan import Device
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


def test_parts_may_be_in_another_order_where_nothing_depends(
    bundle: Any, feeds: dict[str, Array], describe: Callable[..., Any]
) -> None:
    folder = bundle_of(bundle, [[3], [0, 1], [2, 4]], describe)
    parts = Runner(Bundle(folder), Settings()).run(feeds)
    whole = Runner(Bundle(folder, unsplit=True), Settings()).run(feeds)
    for name in whole.outputs:
        np.testing.assert_array_equal(parts.outputs[name], whole.outputs[name])
