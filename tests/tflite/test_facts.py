"""Facts of operators, their multiply-accumulates and the bytes they move."""

from __future__ import annotations

from typing import Any

import pytest

from splitter.specimens import BUILDERS, specimen
from splitter.tflite.facts import COMMON, facts, family, macs, moved_bytes
from splitter.tflite.parameters import LATER
from splitter.tflite.types import LiteGraph, Operator, Tensor


def read(code: str, **want: Any) -> dict[str, Any]:
    graph = specimen(code, want)
    return facts(graph, graph.operators[0])


@pytest.mark.parametrize("code", [*BUILDERS, "LOGISTIC", "CUSTOM:NeutronGraph"])
def test_every_fact_of_a_float_operator_can_be_read_but_quantization(code: str) -> None:
    assert set(read(code, dtypes="float32")) == set(family(code)) - LATER
    assert set(COMMON) <= set(family(code))


def test_facts_say_what_they_mean() -> None:
    assert all(fact.says for code in BUILDERS for fact in family(code).values())


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("CONV_2D", {"stride_h": 3, "kernel_w": 5, "dilation_h": 2, "groups": 4}),
        ("CONV_2D", {"padded": True, "padding": "SAME"}),
        ("DEPTHWISE_CONV_2D", {"kernel_volume_16": 48, "channels": 20}),
        ("TRANSPOSE_CONV", {"stride_w": 2, "stride_within_kernel": True}),
        ("FULLY_CONNECTED", {"bias_dtype": "none", "bias_constant": True}),
        ("ADD", {"broadcast": "both"}),
        ("MEAN", {"axes": "[1, 2]", "reduced_elements": 4}),
        ("RESIZE_BILINEAR", {"factor_h": 1.5, "factor_w": 8}),
        ("TRANSPOSE", {"permutation": "[0, 3, 1, 2]"}),
        ("SOFTMAX", {"rows": 7, "channels": 9, "elements": 63}),
    ],
)
def test_facts_are_read_from_options_and_shapes(code: str, want: dict[str, Any]) -> None:
    found = read(code, **want)
    assert {name: found[name] for name in want} == want


def test_align_corners_counts_the_steps_between_pixels() -> None:
    graph = specimen("RESIZE_BILINEAR", {"factor_h": 1.75, "factor_w": 1.75})
    op = graph.operators[0]
    aligned = Operator(op.code, op.inputs, op.outputs, {"align_corners": True})
    assert facts(graph, op)["factor_h"] == 1.75
    assert facts(graph, aligned)["factor_h"] == 2


def test_a_parameter_that_is_not_constant_is_unknown() -> None:
    assert read("MEAN", axes_constant=False)["axes"] == "unknown"
    assert read("STRIDED_SLICE", parameters_constant=False)["unit_step"] == "unknown"


def test_quantization_facts_appear_with_the_parameters() -> None:
    found = read("CONCATENATION", scales_equal=False)
    assert found["scales_equal"] is False
    assert found["per_tensor"] is True
    assert found["input_zero_points"] == (0, 0)


def test_indices_and_parameters_are_told_apart_from_data() -> None:
    assert read("PAD")["dtypes"] == ("int8",)
    assert read("SPLIT")["dtypes"] == ("int8",)
    tensors = {
        "x": Tensor("x", (8, 4), "int8"),
        "i": Tensor("i", (3,), "int32"),
        "y": Tensor("y", (3, 4), "int8"),
    }
    op = Operator("GATHER", ("x", "i"), ("y",), {"axis": 0})
    graph = LiteGraph(("x", "i"), ("y",), tensors, (op,))
    assert facts(graph, op)["dtypes"] == ("int32", "int8")
    assert moved_bytes(graph, op) == 8 * 4 + 3 * 4 + 3 * 4


@pytest.mark.parametrize(
    ("code", "want", "count"),
    [
        ("CONV_2D", {"channels": 3, "output_channels": 5, "kernel_h": 2, "kernel_w": 7}, 210),
        ("DEPTHWISE_CONV_2D", {"channels": 6, "kernel_h": 3}, 18),
        ("FULLY_CONNECTED", {"channels": 10, "output_channels": 4}, 40),
        ("BATCH_MATMUL", {"channels": 10, "columns": 4}, 16 * 40),
        ("TRANSPOSE_CONV", {"kernel_h": 2, "kernel_w": 2, "output_channels": 5}, 16 * 4 * 5),
        ("ADD", {}, 0),
        ("AVERAGE_POOL_2D", {"kernel_h": 4}, 0),
    ],
)
def test_multiply_accumulates_of_one_operator(code: str, want: dict[str, Any], count: int) -> None:
    graph = specimen(code, want)
    assert macs(graph, graph.operators[0]) == count


def test_a_constant_used_twice_moves_once() -> None:
    tensors = {"x": Tensor("x", (10,), "int8"), "y": Tensor("y", (10,), "int8")}
    op = Operator("MUL", ("x", "x"), ("y",))
    assert moved_bytes(LiteGraph(("x",), ("y",), tensors, (op,)), op) == 20
