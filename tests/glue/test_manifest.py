"""What a bundle's manifest says, and that no file from anywhere is trusted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.diagnostics import SplitterError
from splitter.glue import check_files, from_json, read_manifest
from splitter.glue.entries import FromInput, FromPart
from splitter.glue.manifest import RANDOM_WARNING


def test_a_manifest_is_read_back_as_it_was_written(bundle: Any) -> None:
    text = bundle.manifest.to_json()
    assert from_json(text) == bundle.manifest == read_manifest(bundle.folder)
    assert from_json(text).to_json() == text


def test_shapes_stand_on_one_line(bundle: Any) -> None:
    assert '"shape": [2, 3, 4],' in bundle.manifest.to_json()


def test_every_value_says_where_it_comes_from(bundle: Any) -> None:
    npu, cpu = bundle.manifest.parts
    assert [i.origin for i in npu.inputs] == [FromInput(model_input="image")]
    assert {i.name: i.origin for i in cpu.inputs} == {
        "ids": FromInput(model_input="ids"),
        "turned": FromPart(part=0, output="turned"),
    }
    origins = {o.name: o.origin for o in bundle.manifest.outputs}
    assert origins["scores"] == FromPart(part=1, output="scores")
    assert origins["sum"] == FromPart(part=0, output="sum")
    assert origins["ids"] == FromInput(model_input="ids")


def test_scales_are_the_single_precision_numbers_of_the_file(bundle: Any) -> None:
    (image, ids) = bundle.manifest.inputs
    assert (image.scale, image.zero_point) == (float(np.float32(0.05)), 3)
    assert (ids.scale, ids.zero_point, ids.type, ids.dtype) == (None, None, "int32", "int64")


def test_options_say_nothing_of_the_machine(bundle: Any) -> None:
    assert bundle.manifest.options["model"] == "small.onnx"
    assert not {"out", "threads"} & set(bundle.manifest.options)


def test_random_calibration_is_loud(make_bundle: Callable[..., Any], tmp_path: Any) -> None:
    calibration = make_bundle(tmp_path / "r", random=True).manifest.calibration
    assert (calibration.kind, calibration.random) == ("random", True)
    assert calibration.warning == RANDOM_WARNING


def change(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return apply


WRONG = {
    "a path with dots": (change("parts", 0, "file", to="../x.tflite"), "inside the bundle"),
    "an absolute path": (change("unsplit", "file", to="/etc/passwd"), "inside the bundle"),
    "a Windows path": (change("unsplit", "file", to="a\\..\\b"), "inside the bundle"),
    "a short hash": (change("source", "sha256", to="abc"), "source.sha256"),
    "a negative length": (change("inputs", 0, "shape", to=[-1, 2]), "inputs.0.shape.0"),
    "a scale of zero": (change("inputs", 0, "scale", to=0.0), "inputs.0.scale"),
    "a scale without zero point": (change("inputs", 0, "zero_point", to=None), "go together"),
    "a zero point beyond int8": (change("inputs", 0, "zero_point", to=300), "beyond int8"),
    "a bool with a scale": (change("inputs", 0, "type", to="bool"), "bool has no scale"),
    "a number in quotes": (change("inputs", 0, "scale", to="0.1"), "inputs.0.scale"),
    "an unknown type": (change("inputs", 0, "type", to="int4"), "inputs.0.type"),
    "an unknown dtype": (change("inputs", 0, "dtype", to="object"), "numpy number type"),
    "an unknown device": (change("parts", 0, "device", to="gpu"), "parts.0.device"),
    "an unknown key": (change("more", to=1), "more"),
    "another schema": (change("schema_version", to=2), "schema_version"),
    "a hidden random calibration": (change("calibration", "random", to=True), "contradict"),
    "a part from later": (
        change("parts", 0, "inputs", 0, "from", to={"part": 1, "output": "scores"}),
        "no {'part': 1",
    ),
    "an input that is not there": (
        change("parts", 0, "inputs", 0, "from", to={"model_input": "imagf"}),
        "imagf",
    ),
    "two scales for one value": (change("parts", 1, "inputs", 1, "scale", to=0.5), "turned"),
    "two inputs of one name": (change("inputs", 1, "name", to="image"), "more than once"),
    "one file twice": (change("unsplit", "file", to="parts/0-npu.tflite"), "more than once"),
    "a constant that is too short": (
        change("outputs", 1, "from", to={"constant": {"type": "int32", "shape": [2], "data": ""}}),
        "data has 0 bytes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_manifest_is_refused_with_the_place(name: str, bundle: Any) -> None:
    apply, message = WRONG[name]
    document = json.loads(bundle.manifest.to_json())
    apply(document)
    with pytest.raises(SplitterError) as caught:
        from_json(json.dumps(document), where="m.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.json: ")


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", '{"format": NaN}', "[" * 5000])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(SplitterError):
        from_json(text)


def test_several_mistakes_are_told_at_once(bundle: Any) -> None:
    document = json.loads(bundle.manifest.to_json())
    del document["source"], document["unsplit"]
    with pytest.raises(SplitterError, match=r"source.*unsplit"):
        from_json(json.dumps(document))


def leaves(node: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, child in items:
        found.append((*place, key))
        if isinstance(child, dict | list):
            found += leaves(child, (*place, key))
    return found


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]),
    st.just({}), st.just([[]]),
)  # fmt: skip


@pytest.fixture(scope="module")
def document(
    make_bundle: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    text = make_bundle(tmp_path_factory.mktemp("m") / "out").manifest.to_json()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@given(st.data())
def test_junk_anywhere_is_refused_or_harmless(
    document: dict[str, Any], data: st.DataObject
) -> None:
    changed = copy.deepcopy(document)
    place = data.draw(st.sampled_from(leaves(changed)))
    change(*place, to=data.draw(JUNK))(changed)
    try:
        manifest = from_json(json.dumps(changed))
    except SplitterError:
        return
    assert from_json(manifest.to_json()).to_json() == manifest.to_json()  # NaN is not itself


def test_a_changed_a_missing_and_a_linked_file_are_named(bundle: Any, tmp_path: Any) -> None:
    check_files(bundle.manifest, bundle.folder)
    (bundle.folder / "parts" / "0-npu.tflite").write_bytes(b"other")
    (bundle.folder / "parts" / "1-cpu.tflite").unlink()
    outside = tmp_path / "outside.tflite"
    outside.write_bytes(bundle.artifacts.unsplit)
    (bundle.folder / "unsplit.tflite").unlink()
    (bundle.folder / "unsplit.tflite").symlink_to(outside)
    with pytest.raises(SplitterError) as caught:
        check_files(bundle.manifest, bundle.folder)
    assert "0-npu.tflite was changed" in str(caught.value)
    assert "1-cpu.tflite is missing" in str(caught.value)
    assert "unsplit.tflite leaves the folder" in str(caught.value)
