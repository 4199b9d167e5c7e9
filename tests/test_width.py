"""What `--int16` means on a graph."""

from __future__ import annotations

import pytest

from splitter.diagnostics import SplitterError
from splitter.tflite.types import LiteGraph, Operator, Tensor
from splitter.width import wide_tensors


def tensor(name: str, dtype: str = "float32") -> Tensor:
    return Tensor(name, (1, 4), dtype)


GRAPH = LiteGraph(
    inputs=("x",),
    outputs=("scores", "order"),
    tensors={
        t.name: t
        for t in (
            tensor("x"),
            tensor("features"),
            tensor("inner"),
            tensor("scores"),
            tensor("order", "int32"),
        )
    },
    operators=(
        Operator("RELU", ("x",), ("features",), unit="backbone"),
        Operator("EXP", ("features",), ("inner",), unit="head"),
        Operator("RELU", ("inner",), ("scores",), unit="head"),
        Operator("ARG_MAX", ("scores",), ("order",), unit="sort"),
    ),
)


def test_nothing_asked_is_nothing_wide() -> None:
    assert wide_tensors(GRAPH, (), npu={"backbone"}) == frozenset()


def test_auto_is_every_float_value_made_on_the_cpu() -> None:
    assert wide_tensors(GRAPH, ("auto",), npu={"backbone"}) == {"inner", "scores"}


def test_an_input_that_the_npu_does_not_read_is_wide_too() -> None:
    assert "x" in wide_tensors(GRAPH, ("auto",), npu=())
    assert wide_tensors(GRAPH, ("x",), npu={"head"}) == {"x"}


def test_a_unit_stands_for_all_it_writes_and_a_tensor_for_itself() -> None:
    assert wide_tensors(GRAPH, ("head",), npu=()) == {"inner", "scores"}
    assert wide_tensors(GRAPH, ("scores",), npu=()) == {"scores"}


def test_integers_never_become_int16() -> None:
    assert wide_tensors(GRAPH, ("sort",), npu=()) == frozenset()


def test_unknown_names_and_values_on_the_npu_are_refused_at_once() -> None:
    with pytest.raises(SplitterError) as caught:
        wide_tensors(GRAPH, ("score", "features"), npu={"backbone"})
    assert "scores" in str(caught.value)
    assert "features is on the NPU" in str(caught.value)
