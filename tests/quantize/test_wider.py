"""Where 8 and 16 bits meet, in the real runtime."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.quantize import calibrate, quantize
from splitter.quantize.precision import precision
from splitter.tail import Lead, carrier, real
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph, Operator, Tensor
from splitter.tflite.write import write

RNG = np.random.default_rng(5)
PLAIN = {"fused_activation_function": "NONE"}
SAMPLES = [{"x": RNG.normal(0, 1, (1, 16)).astype(np.float32)} for _ in range(8)]


def chain(*operators: Operator, **shapes: tuple[int, ...]) -> LiteGraph:
    """x -> a = x * w -> the operators; the last one's output is the graph's."""
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    tensors |= {name: Tensor(name, (1, 16), "float32") for name in ("x", "a")}
    w = RNG.uniform(0.5, 1.5, (1, 16)).astype(np.float32)
    tensors["w"] = Tensor("w", w.shape, "float32", w)
    for name, values in (("repeats", (3, 1)), ("two", (1, 2))):
        tensors[name] = Tensor(name, (2,), "int32", np.array(values, np.int32))
    first = Operator("MUL", ("x", "w"), ("a",), PLAIN, "first")
    return LiteGraph(("x",), operators[-1].outputs, tensors, (first, *operators))


def outputs(graph: LiteGraph, sample: dict[str, Array]) -> dict[str, Array]:
    made = Interpreter(write(graph)).run(Lead(None, graph).run(sample))
    return real(graph, made)


def integer(graph: LiteGraph, *wide: str) -> LiteGraph:
    return quantize(graph, calibrate(graph, SAMPLES, threads=1), npu=(), int16=wide)


def error(graph: LiteGraph, made: LiteGraph) -> float:
    name = graph.outputs[0]
    floats = Interpreter(write(graph))
    pairs = [(floats.run(s)[name], outputs(made, s)[name]) for s in SAMPLES]
    return max(float(np.abs(one - other).max()) for one, other in pairs)


def test_from_8_to_16_bits_goes_by_a_table_that_old_runtimes_have_too() -> None:
    graph = chain(Operator("ADD", ("a", "w"), ("y",), PLAIN, "second"), y=(1, 16))
    made = integer(graph, "y")
    assert made.tensors["a"].dtype == "int8" and made.tensors["y"].dtype == "int16"
    assert [op.code for op in made.operators] == ["MUL", "CAST", "ADD", "GATHER", "ADD"]
    eight = made.tensors["a"].quantization
    assert eight is not None
    assert error(graph, made) < error(graph, integer(graph))
    sample = Lead(None, made).run(SAMPLES[0])
    runtime = Interpreter(write(made), all_tensors=True)
    runtime.run(sample)
    before, after = (runtime.tensor(name) for name in ("a", "a/rescaled"))
    exact = (before.astype(np.float64) - eight.zero_point[0]) * eight.scale[0]
    scale = carrier(made.tensors["a/rescaled"]).scale
    assert scale is not None
    np.testing.assert_array_equal(after, np.rint(exact / scale).astype(np.int16))


@pytest.mark.parametrize("code", ["GELU", "SQRT", "RSQRT", "LOG"])
def test_functions_that_old_runtimes_lack_in_16_bits_are_tables(code: str) -> None:
    positive = Operator("MUL", ("a", "a"), ("square",), PLAIN, "second")
    shifted = Operator("ADD", ("square", "w"), ("sum",), PLAIN, "second")
    options = {"approximate": False} if code == "GELU" else {}
    last = Operator(code, ("sum",), ("y",), options, "third")
    graph = chain(positive, shifted, last, square=(1, 16), sum=(1, 16), y=(1, 16))
    made = integer(graph, "x", "a", "square", "sum", "y")
    assert code not in [op.code for op in made.operators]
    assert error(graph, made) < 2e-3


def test_repeating_along_an_axis_of_one_is_a_broadcast_in_16_bits_only() -> None:
    graph = chain(Operator("TILE", ("a", "repeats"), ("y",), {}, "second"), y=(3, 16))
    assert [op.code for op in integer(graph).operators] == ["MUL", "TILE"]
    made = integer(graph, "x", "a")
    assert [op.code for op in made.operators] == ["MUL", "BROADCAST_TO"]
    assert made.tensors["y"].dtype == "int16"
    assert error(graph, made) < 1e-3


def test_repeating_along_a_longer_axis_stays_what_it_is() -> None:
    graph = chain(Operator("TILE", ("a", "two"), ("y",), {}, "second"), y=(1, 32))
    made = integer(graph, "x", "a")
    assert [op.code for op in made.operators] == ["MUL", "TILE"]
    assert error(graph, made) < 1e-3


def test_the_widths_are_counted_from_the_graph() -> None:
    graph = chain(Operator("ADD", ("a", "w"), ("y",), PLAIN, "second"), y=(1, 16))
    found = precision(integer(graph, "y"))
    assert found.bits["y"] == 16 and found.bits["a"] == 8
    assert 8 < found.average < 16
    assert found.wide == ("ADD", "GATHER")
    assert precision(integer(graph)).wide == ()
