"""Operators that write over an input never do so before its last reader has read it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.tflite.in_place import keep_readable
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

SHAPES = ((2, 3, 4), (6, 4), (24,), (1, 2, 12))
SCALE = Quantization((0.5,), (0,))


class Builder:
    """Graphs of 24 elements a tensor: sums, reshapes and copies."""

    def __init__(self, dtype: str = "float32") -> None:
        self.dtype = dtype
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = {}
        self.tensor("x", SHAPES[0])

    def tensor(self, name: str, shape: tuple[int, ...]) -> str:
        scale = SCALE if self.dtype == "int8" else None
        self.tensors[name] = Tensor(name, shape, self.dtype, None, scale)
        return name

    def const(self, data: object, dtype: str) -> str:
        name = f"c{len(self.tensors)}"
        array = np.asarray(data, dtype)
        scale = SCALE if dtype == "int8" else None
        self.tensors[name] = Tensor(name, array.shape, dtype, array, scale)
        return name

    def add(self, source: str, name: str) -> str:
        shape = self.tensors[source].shape
        other = self.const(np.full(shape, 3), self.dtype)
        self.operators.append(Operator("ADD", (source, other), (self.tensor(name, shape),)))
        return name

    def reshape(self, source: str, name: str, shape: tuple[int, ...]) -> str:
        target = self.const(shape, "int32")
        out = self.tensor(name, shape)
        options = {"new_shape": shape}
        self.operators.append(Operator("RESHAPE", (source, target), (out,), options))
        return name

    def copy(self, source: str, name: str) -> str:
        """A TRANSPOSE that moves nothing: it has memory of its own."""
        shape = self.tensors[source].shape
        order = self.const(range(len(shape)), "int32")
        self.operators.append(Operator("TRANSPOSE", (source, order), (self.tensor(name, shape),)))
        return name

    def graph(self, *outputs: str) -> LiteGraph:
        return LiteGraph(("x",), outputs, self.tensors, tuple(self.operators))


def sum_between_two_reshapes(dtype: str) -> LiteGraph:
    b = Builder(dtype)
    b.add(b.copy("x", "y"), "t")
    b.add(b.reshape("t", "z", (6, 4)), "u")
    b.reshape("t", "w", (24,))
    return b.graph(b.copy("u", "a"), b.copy("w", "b"))


def reader_that_is_no_reshape(dtype: str) -> LiteGraph:
    b = Builder(dtype)
    b.add(b.copy("x", "y"), "t")
    b.add(b.reshape("t", "z", (6, 4)), "u")
    return b.graph(b.copy("u", "a"), b.copy("t", "b"))


def reshape_of_a_reshape(dtype: str) -> LiteGraph:
    b = Builder(dtype)
    b.reshape(b.copy("x", "y"), "t", (6, 4))
    b.add(b.reshape("t", "z", (2, 3, 4)), "u")
    b.reshape("t", "w", (24,))
    return b.graph(b.copy("u", "a"), b.copy("w", "b"))


def reshape_made_before_and_read_after(dtype: str) -> LiteGraph:
    b = Builder(dtype)
    b.add(b.copy("x", "y"), "t")
    b.reshape("t", "w", (24,))
    b.add(b.reshape("t", "z", (6, 4)), "u")
    return b.graph(b.copy("u", "a"), b.copy("w", "b"))


GRAPHS = (
    sum_between_two_reshapes,
    reader_that_is_no_reshape,
    reshape_of_a_reshape,
    reshape_made_before_and_read_after,
)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_what_is_written_computes_what_the_graph_says(
    make: Callable[[str], LiteGraph], dtype: str
) -> None:
    graph = make(dtype)
    assert len(keep_readable(graph).operators) >= len(graph.operators)
    assert_same(graph, np.arange(24).reshape(2, 3, 4).astype(dtype))


def test_a_graph_without_such_a_place_stays_the_same_object() -> None:
    b = Builder()
    b.add(b.copy("x", "y"), "t")
    b.reshape("t", "z", (6, 4))
    graph = b.graph(b.copy("z", "a"))
    assert keep_readable(graph) is graph


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 3)), max_size=14))
@settings(max_examples=150, deadline=None)
def test_any_graph_of_sums_and_reshapes_computes_the_same(
    steps: list[tuple[int, int, int]],
) -> None:
    b = Builder()
    names = [b.copy("x", "y")]
    for index, (kind, source, shape) in enumerate(steps):
        taken, name = names[source % len(names)], f"v{index}"
        if kind == 0:
            names.append(b.add(taken, name))
        elif kind == 1:
            names.append(b.reshape(taken, name, SHAPES[shape]))
        else:
            names.append(b.copy(taken, name))
    read = {name for op in b.operators for name in op.inputs}
    wanted = [name for i, name in enumerate(names) if name not in read or i % 3 == 0]
    graph = b.graph(*(b.copy(name, f"out{i}") for i, name in enumerate(wanted)))
    assert_same(graph, np.arange(24, dtype=np.float32).reshape(2, 3, 4))


def assert_same(graph: LiteGraph, x: np.ndarray) -> None:
    data = write(graph)
    plain = Interpreter(data).run({"x": x})
    kept = Interpreter(data, all_tensors=True).run({"x": x})
    for name in graph.outputs:
        assert np.array_equal(plain[name], kept[name]), name
