"""The writer: layout of the file, numbers of the weighted operators, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.tflite.read import header, read
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

RANDOM = np.random.default_rng(7)


def constant(name: str, data: Any, quantization: Quantization | None = None) -> Tensor:
    array = np.asarray(data)
    return Tensor(name, array.shape, array.dtype.name, array, quantization)


def variable(
    name: str, shape: tuple[int, ...], dtype: str = "float32", scale: float = 0.0
) -> Tensor:
    return Tensor(name, shape, dtype, None, Quantization((scale,), (0,)) if scale else None)


def one(op: Operator, *tensors: Tensor) -> LiteGraph:
    """A graph of one operator; its variable operands are the inputs."""
    table = {tensor.name: tensor for tensor in tensors}
    inputs = tuple(name for name in op.inputs if name and table[name].data is None)
    return LiteGraph(inputs, op.outputs, table, (op,))


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def added(count: int = 1) -> LiteGraph:
    """x plus `count` constants of equal content."""
    tensors = {"x": variable("x", (3,)), **{f"y{i}": variable(f"y{i}", (3,)) for i in range(count)}}
    operators = []
    for i in range(count):
        tensors[f"c{i}"] = constant(f"c{i}", np.array([1, 2, 3], np.float32))
        operators.append(Operator("ADD", (f"y{i - 1}" if i else "x", f"c{i}"), (f"y{i}",)))
    return LiteGraph(("x",), (f"y{count - 1}",), tensors, tuple(operators))


def run_one(graph: LiteGraph, feed: np.ndarray) -> np.ndarray:
    return Interpreter(write(graph)).run({graph.inputs[0]: feed})[graph.outputs[0]]


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert write(added(4), description="d") == write(added(4), description="d")


def test_constants_start_on_16_bytes_and_equal_ones_are_stored_once() -> None:
    model = write(added(5))
    content = np.array([1, 2, 3], np.float32).tobytes()
    assert model.count(content) == 1
    assert model.index(content) % 16 == 0


def test_the_file_names_its_inputs_outputs_and_description() -> None:
    said = header(write(added(), description="made by a test"))
    assert said.description == "made by a test"
    assert said.signatures == ("serving_default",)
    assert said.subgraphs == 1


def test_the_runtime_runs_the_signature_by_tensor_names() -> None:
    from ai_edge_litert.interpreter import Interpreter as Runtime

    runner = Runtime(model_content=write(added())).get_signature_runner("serving_default")
    assert runner(x=np.zeros(3, np.float32))["y0"].tolist() == [1, 2, 3]


def test_what_goes_beyond_a_flatbuffer_lies_behind_it_and_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights, bias, x = floats(16, 8), floats(16), floats(2, 8)
    graph = one(
        Operator("FULLY_CONNECTED", ("x", "w", "b"), ("y",)),
        variable("x", (2, 8)), constant("w", weights), constant("b", bias),
        variable("y", (2, 16)),
    )  # fmt: skip
    plain, wanted = write(graph), run_one(graph, x)
    monkeypatch.setattr("splitter.tflite.write.LIMIT", 600)
    monkeypatch.setattr("splitter.tflite.write.LARGE", 65)
    model = write(graph, beyond=True)
    assert model.endswith(weights.tobytes()) and not plain.endswith(weights.tobytes())
    assert model.index(weights.tobytes()) % 16 == 0
    assert np.array_equal(Interpreter(model).run({"x": x})["y"], wanted)
    held = read(model).tensors
    assert np.array_equal(held["w"].data, weights) and np.array_equal(held["b"].data, bias)


def test_constants_over_2_gb_are_refused_before_anything_is_written() -> None:
    graph = added()
    huge = np.broadcast_to(np.zeros((), np.float32), (600_000_000,))
    tensors = {**graph.tensors, "c0": constant("c0", huge)}
    with pytest.raises(SplitterError, match="2 GB"):
        write(LiteGraph(graph.inputs, graph.outputs, tensors, graph.operators))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (Operator("SOFTMAX", ("x",), ("y",), {"betta": 1.0}), "did you mean beta"),
        (Operator("RELU", ("x",), ("y",), {"alpha": 1.0}), "it takes none"),
        (
            Operator("ADD", ("x", "x"), ("y",), {"fused_activation_function": "RELUU"}),
            "did you mean RELU",
        ),
        (Operator("SOFTMAXX", ("x",), ("y",)), "did you mean SOFTMAX"),
        (Operator("RELU", ("z",), ("y",)), "no tensor z"),
        (Operator("RELU", ("u",), ("y",)), "reads u before"),
        (Operator("DEPTHWISE_CONV_2D", ("x", "x"), ("y",)), "has no bias"),
        (Operator("CUSTOM:Foo", ("x",), ("y",), {"alpha": 1}), "custom_options"),
    ],
)
def test_a_graph_that_contradicts_itself_is_a_bug(op: Operator, message: str) -> None:
    tensors = {name: variable(name, (2, 2)) for name in ("x", "y", "u")}
    with pytest.raises(ValueError, match=message):
        write(LiteGraph(("x",), ("y",), tensors, (op,)))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor("c0", (2,), "float32", np.zeros(3, np.float32)), "its data"),
        (Tensor("c0", (3,), "int8", np.zeros(3, np.float32)), "its data"),
        (constant("c0", np.zeros(3, np.int8), Quantization((1.0, 1.0), (0, 0))), "2 scales"),
        (constant("c0", np.zeros(3, np.int8), Quantization((1.0,), (0, 0))), "2 zero points"),
    ],
)
def test_a_constant_that_contradicts_its_tensor_is_a_bug(tensor: Tensor, message: str) -> None:
    graph = added()
    tensors = {**graph.tensors, "c0": tensor}
    with pytest.raises(ValueError, match=message):
        write(LiteGraph(graph.inputs, graph.outputs, tensors, graph.operators))


def test_conv_2d_honors_stride_padding_and_dilation() -> None:
    x, w, b = floats(1, 7, 9, 2), floats(3, 3, 2, 2), floats(3)
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 2, "dilation_h_factor": 2}
    op = Operator("CONV_2D", ("x", "w", "b"), ("y",), options)
    graph = one(
        op, variable("x", x.shape), constant("w", w), constant("b", b), variable("y", (1, 3, 4, 3))
    )
    wanted = np.zeros((1, 3, 4, 3), np.float32)
    for row in range(3):
        for column in range(4):
            window = x[0, row : row + 5 : 2, 2 * column : 2 * column + 2]
            wanted[0, row, column] = np.einsum("hwc,ohwc->o", window, w) + b
    np.testing.assert_allclose(run_one(graph, x), wanted, rtol=1e-4, atol=1e-5)


def test_depthwise_conv_2d_fills_in_its_multiplier() -> None:
    x, w = floats(1, 4, 4, 2), floats(1, 2, 2, 4)
    op = Operator("DEPTHWISE_CONV_2D", ("x", "w", "b"), ("y",), {"padding": "VALID"})
    bias = constant("b", np.zeros(4, np.float32))
    graph = one(op, variable("x", x.shape), constant("w", w), bias, variable("y", (1, 3, 3, 4)))
    assert read(write(graph)).operators[0].options["depth_multiplier"] == 2
    wanted = np.zeros((1, 3, 3, 4), np.float32)
    for row, column, channel in np.ndindex(3, 3, 4):
        window = x[0, row : row + 2, column : column + 2, channel // 2]
        wanted[0, row, column, channel] = (window * w[0, :, :, channel]).sum()
    np.testing.assert_allclose(run_one(graph, x), wanted, rtol=1e-4, atol=1e-5)


def test_transpose_conv_scatters_its_input() -> None:
    x, w = floats(1, 2, 2, 1), floats(1, 2, 2, 1)
    op = Operator(
        "TRANSPOSE_CONV",
        ("s", "w", "x"),
        ("y",),
        {"padding": "VALID", "stride_h": 2, "stride_w": 2},
    )
    shape = np.array([1, 4, 4, 1], np.int32)
    graph = one(
        op,
        constant("s", shape),
        constant("w", w),
        variable("x", x.shape),
        variable("y", (1, 4, 4, 1)),
    )
    wanted = np.kron(x[0, :, :, 0], w[0, :, :, 0])
    np.testing.assert_allclose(run_one(graph, x)[0, :, :, 0], wanted, rtol=1e-5)


def test_batch_matmul_transposes_its_right_side_when_asked() -> None:
    x, w = floats(2, 3, 4), floats(2, 5, 4)
    op = Operator("BATCH_MATMUL", ("x", "w"), ("y",), {"adj_y": True})
    graph = one(op, variable("x", x.shape), constant("w", w), variable("y", (2, 3, 5)))
    np.testing.assert_allclose(run_one(graph, x), x @ w.transpose(0, 2, 1), rtol=1e-4, atol=1e-5)


def integer_linear(data: str, bias: str, *, rank: int = 3) -> LiteGraph:
    """FULLY_CONNECTED with weights of a scale for each of four output channels."""
    weights = RANDOM.integers(-127, 128, (4, 8)).astype(np.int8)
    scales = (0.01, 0.02, 0.03, 0.04)
    b = RANDOM.integers(-1000, 1000, 4).astype(bias)
    x_scale = 0.05 if data == "int8" else 0.0005
    lead = (1,) * (rank - 2)
    op = Operator("FULLY_CONNECTED", ("x", "w", "b"), ("y",), {"keep_num_dims": True})
    return one(
        op,
        variable("x", (*lead, 3, 8), data, x_scale),
        constant("w", weights, Quantization(scales, (0,) * 4)),
        constant("b", b, Quantization(tuple(x_scale * s for s in scales), (0,) * 4)),
        variable("y", (*lead, 3, 4), data, x_scale * 20),
    )


@pytest.mark.parametrize(
    ("data", "bias"), [("int8", "int32"), ("int16", "int64"), ("int16", "int32")]
)
def test_integer_fully_connected_reads_a_scale_for_each_channel(data: str, bias: str) -> None:
    graph = integer_linear(data, bias)
    x = RANDOM.integers(-100, 100, (1, 3, 8)).astype(data)
    got = run_one(graph, x)
    w, b, y = (graph.tensors[name] for name in "wby")
    assert w.data is not None and b.data is not None
    assert w.quantization and b.quantization and y.quantization
    accumulated = x.astype(np.int64) @ w.data.astype(np.int64).T + b.data
    wanted = np.rint(accumulated * np.array(b.quantization.scale) / y.quantization.scale[0])
    top = np.iinfo(data).max
    assert np.abs(got - np.clip(wanted, -top - 1, top)).max() <= 1


def quantized(name: str, shape: tuple[int, ...], dtype: str) -> Tensor:
    return variable(name, shape, dtype, 0.0 if dtype == "float32" else 0.1)


VERSIONS = [
    # operator, types of the inputs, options, version by TensorFlow Lite's own table
    ("FULLY_CONNECTED", ("float32", "float32", "float32"), {}, 1),
    ("FULLY_CONNECTED", ("int8", "int8", "int32"), {}, 4),
    ("FULLY_CONNECTED", ("int8", "int8", "int32"), {"keep_num_dims": True}, 5),
    ("FULLY_CONNECTED", ("int8", "int8"), {}, 6),
    ("FULLY_CONNECTED", ("int16", "int8", "int64"), {"quantized_bias_type": "INT32"}, 11),
    ("BATCH_MATMUL", ("float32", "float32"), {}, 1),
    ("BATCH_MATMUL", ("int8", "int8"), {}, 2),
    ("BATCH_MATMUL", ("int16", "int16"), {}, 3),
    ("ADD", ("float32", "float32"), {}, 1),
    ("ADD", ("int8", "int8"), {}, 2),
    ("ADD", ("int16", "int16"), {}, 3),
    ("SUB", ("int16", "int16"), {}, 5),
    ("MUL", ("int16", "int16"), {}, 4),
    ("BROADCAST_TO", ("float32", "int32"), {}, 2),
    ("BROADCAST_TO", ("int8", "int32"), {}, 3),
    ("TRANSPOSE", ("int8", "int32"), {}, 2),
    ("TRANSPOSE", ("int16", "int32"), {}, 5),
    ("GATHER", ("int8", "int32"), {}, 2),
    ("GATHER", ("int8", "int32"), {"batch_dims": 1}, 5),
    ("SOFTMAX", ("int16",), {}, 3),
    ("GELU", ("int8",), {}, 2),
    ("RSQRT", ("int16",), {}, 3),
    ("SQRT", ("int16",), {}, 2),
]


@pytest.mark.parametrize(("code", "types", "options", "version"), VERSIONS)
def test_an_operator_declares_the_lowest_version_that_covers_it(
    code: str, types: tuple[str, ...], options: dict[str, Any], version: int
) -> None:
    from ai_edge_litert import schema_py_generated as schema

    tensors = [quantized(f"in{i}", (4, 4), dtype) for i, dtype in enumerate(types)]
    op = Operator(code, tuple(t.name for t in tensors), ("y",), options)
    model = write(one(op, *tensors, quantized("y", (4, 4), types[0])))
    assert schema.Model.GetRootAs(model, 0).OperatorCodes(0).Version() == version


def test_one_code_in_two_types_is_two_entries() -> None:
    from ai_edge_litert import schema_py_generated as schema

    tensors = [
        *(variable(name, (2,)) for name in ("x", "y")),
        *(variable(name, (2,), "int8", 0.1) for name in ("u", "v")),
    ]
    graph = LiteGraph(
        ("x", "u"),
        ("y", "v"),
        {tensor.name: tensor for tensor in tensors},
        (Operator("ADD", ("x", "x"), ("y",)), Operator("ADD", ("u", "u"), ("v",))),
    )
    model = schema.Model.GetRootAs(write(graph), 0)
    assert [model.OperatorCodes(i).Version() for i in range(model.OperatorCodesLength())] == [1, 2]


def test_a_custom_operator_keeps_its_name_and_bytes() -> None:
    op = Operator("CUSTOM:NeutronGraph", ("x",), ("y",), {"custom_options": b"\x00\x01micro"})
    graph = one(op, variable("x", (2,)), variable("y", (2,)))
    assert read(write(graph)).operators[0] == op


def test_float16_weights_are_dequantized_by_the_runtime() -> None:
    half = np.array([1.5, -2.0], np.float16)
    tensors = [constant("h", half), variable("w", (2,)), variable("x", (2,)), variable("y", (2,))]
    operators = (Operator("DEQUANTIZE", ("h",), ("w",)), Operator("MUL", ("x", "w"), ("y",)))
    graph = LiteGraph(("x",), ("y",), {t.name: t for t in tensors}, operators)
    assert run_one(graph, np.array([2, 3], np.float32)).tolist() == [3.0, -6.0]


def test_a_float_lstm_keeps_its_state_in_variable_tensors() -> None:
    cells, width, steps = 3, 2, 4
    weights = [constant(f"w{i}", floats(cells, width)) for i in range(4)]
    recurrent = [constant(f"r{i}", floats(cells, cells)) for i in range(4)]
    biases = [constant(f"b{i}", floats(cells)) for i in range(4)]
    state = [variable("h", (1, cells)), variable("c", (1, cells))]
    names = ["x", *(t.name for t in weights), *(t.name for t in recurrent), "", "", ""]
    names += [*(t.name for t in biases), "", "", "h", "c", "", "", "", ""]
    op = Operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        tuple(names),
        ("y",),
        {"fused_activation_function": "TANH", "time_major": False},
    )
    tensors = [variable("x", (1, steps, width)), *weights, *recurrent, *biases, *state]
    tensors.append(variable("y", (1, steps, cells)))
    graph = LiteGraph(("x",), ("y",), {t.name: t for t in tensors}, (op,))
    x = floats(1, steps, width)
    np.testing.assert_allclose(
        run_one(graph, x)[0], lstm(x[0], weights, recurrent, biases), rtol=1e-4, atol=1e-5
    )


def lstm(
    x: np.ndarray, weights: list[Tensor], recurrent: list[Tensor], biases: list[Tensor]
) -> np.ndarray:
    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    h = c = np.zeros(recurrent[0].shape[0])
    rows = []
    for step in x:
        i, f, g, o = (
            w.data @ step + r.data @ h + b.data
            for w, r, b in zip(weights, recurrent, biases, strict=True)
        )
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.array(rows)
