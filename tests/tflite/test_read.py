"""The reader: what it recovers, and that no file makes it do anything but refuse."""

from __future__ import annotations

import contextlib

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.diagnostics import SplitterError
from splitter.tflite.read import header, read
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

WEIGHTS = np.arange(-12, 12, dtype=np.int8).reshape(3, 8)
GRAPH = LiteGraph(
    ("x",),
    ("y",),
    {
        "x": Tensor("x", (2, 8), "int8", None, Quantization((0.5,), (-3,))),
        "w": Tensor("w", (3, 8), "int8", WEIGHTS, Quantization((0.25, 0.5, 1.0), (0, 0, 0), 0)),
        "fc": Tensor("fc", (2, 3), "int8", None, Quantization((2.0,), (5,))),
        "y": Tensor("y", (2, 3), "int8", None, Quantization((2.0,), (5,))),
    },
    (
        Operator("FULLY_CONNECTED", ("x", "w", ""), ("fc",), {"keep_num_dims": True}),
        Operator("RELU", ("fc",), ("y",)),
    ),
)
MODEL = write(GRAPH, description="test")


def test_names_shapes_types_and_parameters_come_back() -> None:
    graph = read(MODEL)
    assert (graph.inputs, graph.outputs) == (GRAPH.inputs, GRAPH.outputs)
    assert list(graph.tensors) == list(GRAPH.tensors)
    for name, tensor in GRAPH.tensors.items():
        found = graph.tensors[name]
        assert (found.shape, found.dtype, found.quantization) == (
            tensor.shape,
            tensor.dtype,
            tensor.quantization,
        )
    data = graph.tensors["w"].data
    assert data is not None
    np.testing.assert_array_equal(data, WEIGHTS)


def test_options_come_back_by_name_and_absent_inputs_as_empty() -> None:
    linear = read(MODEL).operators[0]
    assert linear.inputs == ("x", "w", "")
    assert linear.options["keep_num_dims"] is True
    assert linear.options["fused_activation_function"] == "NONE"


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\x08\x00\x00\x00ONNX" * 4, bytes(100)])
def test_a_file_of_another_kind_is_named_as_such(data: bytes) -> None:
    with pytest.raises(SplitterError, match="not a TFLite file") as caught:
        read(data, where="a.tflite")
    assert caught.value.where == "a.tflite"


def test_a_file_cut_short_anywhere_is_refused_or_read_whole() -> None:
    for size in range(len(MODEL)):
        try:
            graph = read(MODEL[:size])
        except SplitterError:
            continue
        assert write(graph, description="test") == MODEL


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 255)), min_size=1, max_size=6)
)
def test_changed_bytes_are_refused_or_read(changes: list[tuple[int, int]]) -> None:
    data = bytearray(MODEL)
    for place, value in changes:
        data[place] = value
    for look in (read, header):
        with contextlib.suppress(SplitterError):
            look(bytes(data))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(8, (len(MODEL) - 4) // 4).map(lambda word: 4 * word),
    st.sampled_from([0, 1, 4, 2**16, 2**31 - 1, 2**31, 2**32 - 1, len(MODEL), len(MODEL) - 4]),
)
def test_a_changed_offset_or_length_is_refused_or_read(place: int, value: int) -> None:
    data = bytearray(MODEL)
    data[place : place + 4] = value.to_bytes(4, "little")
    for look in (read, header):
        with contextlib.suppress(SplitterError):
            look(bytes(data))


def foreign(change: str) -> bytes:
    """The test model as another writer might have it."""
    model = schema.ModelT.InitFromPackedBuf(MODEL)
    tensors = model.subgraphs[0].tensors
    if change == "equal names":
        tensors[2].name = tensors[3].name = b"same"
    if change == "no names":
        tensors[2].name = tensors[3].name = None
    if change == "two subgraphs":
        model.subgraphs.append(model.subgraphs[0])
    if change == "int4":
        tensors[1].type = schema.TensorType.INT4
        model.buffers[tensors[1].buffer].data = np.array([0x21, 0xF8] * 6, np.uint8)
    if change == "one zero point":
        tensors[1].quantization.zeroPoint = np.array([0], np.int64)
    if change == "unknown operator":
        model.operatorCodes[1].builtinCode = 5000
    if change == "no such tensor":
        model.subgraphs[0].operators[1].inputs = np.array([99], np.int32)
    if change == "no such buffer":
        tensors[1].buffer = 77
    if change == "wrong size":
        tensors[1].shape = np.array([3, 9], np.int32)
    if change == "huge shape":
        tensors[1].shape = np.array([2**31 - 1] * 4, np.int32)
    if change == "other version":
        model.version = 2
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def test_tensors_of_equal_or_no_name_are_told_apart() -> None:
    assert list(read(foreign("equal names")).tensors) == ["x", "w", "same", "same#3"]
    graph = read(foreign("no names"))
    assert list(graph.tensors) == ["x", "w", "#2", "#3"]
    assert graph.operators[0].outputs == ("#2",)


def test_the_main_subgraph_is_read_and_the_others_are_counted() -> None:
    model = foreign("two subgraphs")
    assert len(read(model).operators) == 2
    assert header(model).subgraphs == 2


def test_packed_int4_constants_are_given_as_numbers() -> None:
    weights = read(foreign("int4")).tensors["w"]
    assert weights.dtype == "int4"
    assert weights.data is not None
    assert weights.data.reshape(-1)[:4].tolist() == [1, 2, -8, -1]


def test_one_zero_point_for_all_channels_is_spread() -> None:
    quantization = read(foreign("one zero point")).tensors["w"].quantization
    assert quantization is not None
    assert quantization.zero_point == (0, 0, 0)


def test_an_operator_newer_than_the_schema_is_read_by_number() -> None:
    assert read(foreign("unknown operator")).operators[1].code == "UNKNOWN_5000"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no such tensor", "no tensor 99"),
        ("no such buffer", "buffer 77"),
        ("wrong size", "holds 24 bytes"),
        ("huge shape", "holds 24 bytes"),
        ("other version", "schema version 2"),
    ],
)
def test_a_reference_that_leads_nowhere_is_damage(change: str, message: str) -> None:
    with pytest.raises(SplitterError, match=message):
        read(foreign(change))
