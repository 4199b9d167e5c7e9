"""Inspection: each kind of trouble is found in a file, and a good file has none."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.diagnostics import Reason
from splitter.inspect import Count, inspect, placement, problems, text
from splitter.tflite.read import read
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

EQUAL = Quantization((0.05,), (3,))
OTHER = Quantization((0.06,), (3,))
FOUR = Quantization((0.1, 0.2, 0.3, 0.4), (0,) * 4)
FOUR_BIASES = Quantization((0.005, 0.01, 0.015, 0.02), (0,) * 4)


def tensor(
    name: str,
    dtype: str = "int8",
    q: Quantization | None = EQUAL,
    shape: tuple[int, ...] = (4, 4),
    data: np.ndarray | None = None,
) -> Tensor:
    return Tensor(name, shape, dtype, data, q)


def graph(*operators: Operator, tensors: list[Tensor], outputs: tuple[str, ...] = ()) -> LiteGraph:
    """What a file of these operators holds, read back; inputs are what nothing makes."""
    table = {t.name: t for t in tensors}
    made = {name for op in operators for name in op.outputs}
    inputs = [
        name
        for op in operators
        for name in op.inputs
        if name not in made and table[name].data is None
    ]
    results = outputs or operators[-1].outputs
    return read(write(LiteGraph(tuple(dict.fromkeys(inputs)), results, table, operators)))


def linear(
    *,
    weight: Quantization = FOUR,
    bias: Quantization = FOUR_BIASES,
) -> LiteGraph:
    return graph(
        Operator("FULLY_CONNECTED", ("x", "w", "b"), ("y",)),
        tensors=[
            tensor("x"),
            tensor("w", q=weight, data=np.ones((4, 4), np.int8)),
            tensor("b", "int32", bias, (4,), np.zeros(4, np.int32)),
            tensor("y", q=OTHER),
        ],
    )


def test_a_good_integer_file_has_no_problems() -> None:
    found = inspect(linear())
    assert problems(found) == ()
    assert found.operators == (Count("FULLY_CONNECTED", "int8", 1),)


def test_operators_are_counted_by_code_and_type_the_most_first() -> None:
    found = inspect(
        graph(
            Operator("ADD", ("x", "x"), ("a",)),
            Operator("ADD", ("a", "a"), ("b",)),
            Operator("CAST", ("b",), ("i",)),
            tensors=[tensor("x"), tensor("a"), tensor("b"), tensor("i", "int32", None)],
        )
    )
    assert found.operators == (Count("ADD", "int8", 2), Count("CAST", "int8 to int32", 1))
    assert found.total == 3


def test_float_tensors_left_are_named() -> None:
    found = inspect(
        graph(
            Operator("DEQUANTIZE", ("x",), ("f",)),
            Operator("ADD", ("f", "c"), ("y",)),
            tensors=[
                tensor("x"),
                tensor("f", "float32", None),
                tensor("c", "float32", None, (1,), np.ones(1, np.float32)),
                tensor("y", "float32", None),
            ],
        )
    )
    assert found.float_tensors == (("f", "float32"), ("c", "float32"), ("y", "float32"))
    assert "3 float tensors left" in problems(found)


@pytest.mark.parametrize("code", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_a_pool_between_unequal_scales_is_found(code: str) -> None:
    image = (1, 4, 4, 1)
    found = inspect(
        graph(
            Operator(code, ("x",), ("y",)),
            tensors=[tensor("x", shape=image), tensor("y", q=OTHER, shape=image)],
        )
    )
    (finding,) = found.unequal_scales
    assert finding.tensor == "y"
    assert "0.05" in finding.what and "0.06" in finding.what


def test_one_odd_input_of_a_concatenation_is_found() -> None:
    tensors = [tensor("x"), tensor("z", q=OTHER), tensor("y", shape=(8, 4))]
    found = inspect(graph(Operator("CONCATENATION", ("x", "z"), ("y",)), tensors=tensors))
    assert [finding.code for finding in found.unequal_scales] == ["CONCATENATION"]


def test_unequal_zero_points_count_as_unequal_scales() -> None:
    shifted = Quantization(EQUAL.scale, (4,))
    tensors = [tensor("x"), tensor("p", "int32", None, (2,), np.array([1, 0], np.int32))]
    found = inspect(
        graph(Operator("TRANSPOSE", ("x", "p"), ("y",)), tensors=[*tensors, tensor("y", q=shifted)])
    )
    assert len(found.unequal_scales) == 1


def test_operators_that_rescale_may_have_unequal_scales() -> None:
    found = inspect(
        graph(
            Operator("RELU", ("x",), ("a",)),
            Operator("ADD", ("a", "x"), ("y",)),
            tensors=[tensor("x"), tensor("a", q=OTHER), tensor("y", q=Quantization((0.2,), (0,)))],
        )
    )
    assert found.unequal_scales == ()


def test_the_indices_of_a_gather_have_no_scale_to_compare() -> None:
    found = inspect(
        graph(
            Operator("GATHER", ("x", "i"), ("y",)),
            tensors=[tensor("x"), tensor("i", "int32", None, (4,)), tensor("y")],
        )
    )
    assert found.unequal_scales == ()


@pytest.mark.parametrize(
    ("code", "dtype", "q", "wrong"),
    [
        ("SOFTMAX", "int8", Quantization((1 / 256,), (-128,)), False),
        ("SOFTMAX", "int8", Quantization((1 / 256,), (0,)), True),
        ("SOFTMAX", "int8", Quantization((1 / 255,), (-128,)), True),
        ("LOGISTIC", "int8", EQUAL, True),
        ("LOGISTIC", "int16", Quantization((1 / 32768,), (0,)), False),
        ("ADD", "int16", Quantization((0.1,), (0,)), False),
        ("ADD", "int16", Quantization((0.1,), (1,)), True),
    ],
)
def test_parameters_that_the_kernel_does_not_honor_are_found(
    code: str, dtype: str, q: Quantization, wrong: bool
) -> None:
    operands = ("x", "x") if code == "ADD" else ("x",)
    zero = Quantization((0.1,), (0,))
    found = inspect(
        graph(
            Operator(code, operands, ("y",)),
            tensors=[tensor("x", dtype, zero), tensor("y", dtype, q)],
        )
    )
    assert bool(found.parameters) is wrong


def test_a_bias_of_another_scale_than_input_times_weights_is_found() -> None:
    (finding,) = inspect(linear(bias=Quantization((0.005,) * 4, (0,) * 4))).parameters
    assert finding.tensor == "b"


def test_weights_with_a_zero_point_or_scales_on_another_axis_are_found() -> None:
    shifted = inspect(linear(weight=Quantization((0.1, 0.2, 0.3, 0.4), (0, 0, 1, 0))))
    assert [finding.tensor for finding in shifted.parameters] == ["w"]
    turned = inspect(linear(weight=Quantization((0.1, 0.2, 0.3, 0.4), (0,) * 4, axis=1)))
    assert "axis 1" in turned.parameters[0].what


def test_scales_for_each_channel_on_a_batch_matmul_are_found() -> None:
    """The runtime then writes zeros without a word."""
    per_channel = Quantization((0.1, 0.2, 0.3, 0.4), (0,) * 4, 1)
    found = inspect(
        graph(
            Operator("BATCH_MATMUL", ("x", "w"), ("y",)),
            tensors=[
                tensor("x"),
                tensor("w", q=per_channel, data=np.ones((4, 4), np.int8)),
                tensor("y"),
            ],
        )
    )
    assert "writes zeros" in found.parameters[0].what


def test_outputs_that_depend_on_no_input_are_found() -> None:
    tensors = [
        tensor("x"),
        tensor("c", data=np.ones((4, 4), np.int8)),
        tensor("a"),
        tensor("y"),
    ]
    found = inspect(
        graph(
            Operator("ADD", ("c", "c"), ("a",)),
            Operator("ADD", ("x", "a"), ("y",)),
            tensors=tensors,
            outputs=("y", "a", "c"),
        )
    )
    assert [finding.tensor for finding in found.constants] == ["a", "c"]


def converted(*codes: str) -> LiteGraph:
    names = ["x", *(f"t{i}" for i in range(len(codes)))]
    operators = [Operator(code, (names[i],), (names[i + 1],)) for i, code in enumerate(codes)]
    return graph(*operators, tensors=[tensor(name) for name in names])


def test_a_converted_file_says_what_is_on_the_npu_and_what_stays() -> None:
    found = inspect(converted("CUSTOM:NeutronGraph", "RELU", "CUSTOM:NeutronGraph", "RELU"))
    assert found.neutron_graphs == 2
    assert placement(found) == (
        "2 NeutronGraph nodes on the NPU; 2 operators stay on the CPU (2 RELU)"
    )
    assert placement(inspect(converted("CUSTOM:NeutronGraph"))).endswith("nothing stays on the CPU")


def test_a_file_without_a_neutron_graph_has_nothing_on_the_npu() -> None:
    found = inspect(converted("RELU", "RELU", "RELU"))
    assert placement(found).startswith("0 of 3 operators are on the NPU")


def test_broken_rules_are_handed_in_and_shown_with_their_reasons() -> None:
    file = linear()
    reason = Reason("FULLY_CONNECTED.rows", "1 to 8", "9", "a document", "vendor", "t.toml")
    found = inspect(file, rules=[(file.operators[0], (reason,))])
    assert problems(found) == ("1 operators that break a rule of the target",)
    assert "FULLY_CONNECTED.rows is 9; the target takes 1 to 8" in text(found)


def test_long_lists_are_cut_in_the_text_and_say_so() -> None:
    floats = [tensor(f"t{i}", "float32", None) for i in range(31)]
    operators = [Operator("RELU", (f"t{i}",), (f"t{i + 1}",)) for i in range(30)]
    shown = text(inspect(graph(*operators, tensors=floats)), limit=5)
    assert "float tensors left: 31" in shown
    assert "and 26 more" in shown


def test_rules_that_were_not_looked_at_are_not_called_kept() -> None:
    assert "rule of the target: not looked at" in text(inspect(linear()))
    assert "rule of the target: 0" in text(inspect(linear(), rules=()))
