"""Operators that are together one function of one tensor become one look-up, and only those."""

from __future__ import annotations

import numpy as np

from splitter.quantize.evaluate import evaluate
from splitter.quantize.functions import fold_functions
from splitter.tflite.types import LiteGraph, Operator, Tensor


def graph_of(*operators: Operator, outputs: tuple[str, ...], **constants: float) -> LiteGraph:
    """Operators on a float input x [4] and scalar constants."""
    tensors = {"x": Tensor("x", (4,), "float32")}
    for name, value in constants.items():
        tensors[name] = Tensor(name, (), "float32", np.asarray(value, np.float32))
    for op in operators:
        tensors[op.outputs[0]] = Tensor(op.outputs[0], (4,), "float32")
    return LiteGraph(("x",), outputs, tensors, operators)


SOFTSIGN = (
    Operator("ABS", ("x",), ("size",), {}, "softsign"),
    Operator("ADD", ("size", "one"), ("sum",), {}, "softsign"),
    Operator("DIV", ("x", "sum"), ("y",), {}, "softsign"),
)


def test_a_chain_with_an_operator_without_kernel_becomes_one_function() -> None:
    folded = fold_functions(graph_of(*SOFTSIGN, outputs=("y",), one=1.0), npu=())
    assert [op.code for op in folded.operators] == ["FUNCTION"]
    assert folded.operators[0].inputs == ("x",)
    assert folded.operators[0].unit == "softsign"
    assert set(folded.tensors) == {"x", "y"}


def test_its_body_computes_the_whole_function() -> None:
    folded = fold_functions(graph_of(*SOFTSIGN, outputs=("y",), one=1.0), npu=())
    x = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(evaluate(folded.operators[0].options["body"], x), x / (1 + abs(x)))


def test_operators_on_the_npu_stay() -> None:
    graph = graph_of(*SOFTSIGN, outputs=("y",), one=1.0)
    assert fold_functions(graph, npu=("softsign",)) is graph


def test_a_tensor_that_others_read_stays_beside_the_function() -> None:
    reader = Operator("NEG", ("size",), ("z",), {}, "other")
    graph = graph_of(*SOFTSIGN, reader, outputs=("y", "z"), one=1.0)
    folded = fold_functions(graph, npu=())
    assert [op.code for op in folded.operators] == ["ABS", "FUNCTION", "NEG"]


def test_functions_do_not_reach_over_units() -> None:
    first = Operator("FLOOR", ("x",), ("a",), {}, "one")
    second = Operator("NEG", ("a",), ("y",), {}, "two")
    graph = graph_of(first, second, outputs=("y",))
    assert fold_functions(graph, npu=()) is graph


def test_two_tensors_make_no_function_of_one() -> None:
    graph = graph_of(
        Operator("ABS", ("x",), ("a",), {}, "u"),
        Operator("MUL", ("a", "w"), ("b",), {}, "u"),
        Operator("FLOOR", ("b",), ("y",), {}, "u"),
        outputs=("y",),
    )
    tensors = dict(graph.tensors)
    tensors["w"] = Tensor("w", (4,), "float32")
    both = LiteGraph(("x", "w"), ("y",), tensors, graph.operators)
    assert fold_functions(both, npu=()) is both


def test_two_operators_with_kernels_stay() -> None:
    graph = graph_of(
        Operator("LOGISTIC", ("x",), ("gate",), {}, "silu"),
        Operator("MUL", ("x", "gate"), ("y",), {}, "silu"),
        outputs=("y",),
    )
    assert fold_functions(graph, npu=()) is graph
