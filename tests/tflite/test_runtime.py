"""The interpreter: names, refusals, every tensor on request."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.tflite.runtime import Interpreter, KernelError, run_samples
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write


def tensors(*names: str, dtype: str = "float32") -> dict[str, Tensor]:
    scale = Quantization((0.1,), (0,)) if dtype == "int8" else None
    return {name: Tensor(name, (2,), dtype, None, scale) for name in names}


SUBTRACT = write(
    LiteGraph(
        ("a", "b"),
        ("zz", "aa"),
        tensors("a", "b", "zz", "aa"),
        (Operator("SUB", ("a", "b"), ("zz",)), Operator("ADD", ("zz", "b"), ("aa",))),
    )
)
A, B = np.array([5, 7], np.float32), np.array([1, 2], np.float32)


def test_arrays_go_in_and_come_out_by_name_not_by_order() -> None:
    results = Interpreter(SUBTRACT).run({"b": B, "a": A})
    assert {name: array.tolist() for name, array in results.items()} == {"zz": [4, 5], "aa": [5, 7]}


def test_results_of_one_run_survive_the_next() -> None:
    interpreter = Interpreter(SUBTRACT)
    first = interpreter.run({"a": A, "b": B})["zz"]
    interpreter.run({"a": B, "b": A})
    assert first.tolist() == [4, 5]


def test_samples_are_run_in_order() -> None:
    results = run_samples(SUBTRACT, [{"a": A, "b": B}, {"a": B, "b": A}])
    assert [result["zz"].tolist() for result in results] == [[4, 5], [-4, -5]]


def test_xnnpack_runs_when_it_is_asked_for() -> None:
    assert Interpreter(SUBTRACT, xnnpack=True).run({"a": A, "b": B})["zz"].tolist() == [4, 5]


def test_every_tensor_can_be_read_after_a_run_that_keeps_them() -> None:
    graph = LiteGraph(
        ("x",),
        ("y",),
        tensors("x", "p", "q", "r", "y"),
        (
            Operator("ADD", ("x", "x"), ("p",)),
            Operator("MUL", ("p", "x"), ("q",)),
            Operator("SUB", ("q", "p"), ("r",)),
            Operator("NEG", ("r",), ("y",)),
        ),
    )
    interpreter = Interpreter(write(graph), all_tensors=True)
    interpreter.run({"x": np.array([3, 4], np.float32)})
    assert interpreter.tensor("p").tolist() == [6, 8]
    assert interpreter.tensor("q").tolist() == [18, 32]
    with pytest.raises(ValueError, match="no tensor qq"):
        interpreter.tensor("qq")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": A}, "no array for the input b"),
        ({"a": A, "b": B, "c": B}, "no input c"),
        ({"a": A, "b": B[:1]}, r"input b is float32\[2\], not float32\[1\]"),
        ({"a": A, "b": B.astype(np.float64)}, "not float64"),
    ],
)
def test_wrong_inputs_are_named(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interpreter(SUBTRACT).run(inputs)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [("SOFTMAX", "int8"), ("ROUND", "int8"), ("CUSTOM:Foo", "int8"), ("STABLEHLO_COSINE", "int8")],
)
def test_a_refusal_names_the_operator_and_what_it_writes(code: str, dtype: str) -> None:
    graph = LiteGraph(
        ("x",), ("made",), tensors("x", "made", dtype=dtype), (Operator(code, ("x",), ("made",)),)
    )
    with pytest.raises(KernelError) as caught:
        Interpreter(write(graph))
    assert caught.value.operator == code.removeprefix("CUSTOM:")
    assert caught.value.outputs == ("made",)


def test_a_failure_while_running_names_the_operator() -> None:
    index = Tensor("i", (1,), "int32")
    table = {**tensors("x"), "i": index, "y": Tensor("y", (1,), "float32")}
    graph = LiteGraph(("x", "i"), ("y",), table, (Operator("GATHER", ("x", "i"), ("y",)),))
    with pytest.raises(KernelError, match="out of bounds") as caught:
        Interpreter(write(graph)).run({"x": A, "i": np.array([7], np.int32)})
    assert caught.value.operator == "GATHER"


def test_a_damaged_file_is_refused_without_an_operator() -> None:
    with pytest.raises(KernelError) as caught:
        Interpreter(SUBTRACT[:-20])
    assert caught.value.operator == ""
