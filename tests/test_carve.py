"""Carving: parts run one after another are the whole, bit for bit, at every legal cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.carve import carve, cut, prefix_positions, unit_positions, without
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import load
from splitter.normalize import normalize
from splitter.ops import OPS
from splitter.plan import Cost, Plan, Segment
from splitter.quantize import calibrate, quantize
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

Arrays = dict[str, np.ndarray]


def activation(name: str, *shape: int, scale: float = 0.05, zero: int = 3) -> Tensor:
    return Tensor(name, shape, "int8", None, Quantization((scale,), (zero,)))


def constant(name: str, data: np.ndarray, *scales: float, axis: int = 0) -> Tensor:
    quantization = Quantization(scales, (0,) * len(scales), axis) if scales else None
    return Tensor(name, data.shape, data.dtype.name, data, quantization)


def vision_graph() -> LiteGraph:
    """Convolution, linear layer, residual, attention with a Softmax, concatenation; all int8."""
    random = np.random.default_rng(3)
    kernel = random.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    kernel_bias = random.integers(-500, 500, 4).astype(np.int32)
    linear = random.integers(-127, 128, (4, 4)).astype(np.int8)
    linear_bias = random.integers(-500, 500, 4).astype(np.int32)
    rows = (0.004, 0.006, 0.008, 0.01)
    tensors = [
        activation("image", 1, 6, 6, 2),
        constant("kernel", kernel, *rows),
        constant("kernel_bias", kernel_bias, *(0.05 * s for s in rows)),
        activation("conv", 1, 6, 6, 4, scale=0.1, zero=-10),
        constant("tokens_shape", np.array([1, 36, 4], np.int32)),
        activation("tokens", 1, 36, 4, scale=0.1, zero=-10),
        constant("linear", linear, *rows),
        constant("linear_bias", linear_bias, *(0.1 * s for s in rows)),
        activation("key", 1, 36, 4, scale=0.08, zero=7),
        activation("sum", 1, 36, 4, scale=0.15, zero=-4),
        activation("scores", 1, 36, 36, scale=0.02, zero=0),
        activation("attention", 1, 36, 36, scale=1 / 256, zero=-128),
        activation("mixed", 1, 36, 4, scale=0.15, zero=-4),
        activation("joined", 1, 36, 8, scale=0.15, zero=-4),
        activation("dropped", 1, 36, 4, scale=0.2, zero=0),
    ]
    same = {"padding": "SAME", "fused_activation_function": "RELU"}
    operators = (
        Operator("CONV_2D", ("image", "kernel", "kernel_bias"), ("conv",), same, "stem"),
        Operator("RESHAPE", ("conv", "tokens_shape"), ("tokens",), {}, "stem"),
        Operator(
            "FULLY_CONNECTED",
            ("tokens", "linear", "linear_bias"),
            ("key",),
            {"keep_num_dims": True},
            "key",
        ),
        Operator("ADD", ("tokens", "key"), ("sum",), {}, "residual"),
        Operator("BATCH_MATMUL", ("sum", "key"), ("scores",), {"adj_y": True}, "attention"),
        Operator("SOFTMAX", ("scores",), ("attention",), {"beta": 1.0}, "attention"),
        Operator("BATCH_MATMUL", ("attention", "sum"), ("mixed",), {}, "attention"),
        Operator("CONCATENATION", ("sum", "mixed"), ("joined",), {"axis": 2}, "head"),
        Operator("SUB", ("mixed", "key"), ("dropped",), {}, "head"),
    )
    outputs = ("dropped", "joined", "sum")
    return LiteGraph(("image",), outputs, {t.name: t for t in tensors}, operators)


def samples(graph: LiteGraph, count: int = 3) -> list[Arrays]:
    random = np.random.default_rng(11)
    return [
        {
            name: random.integers(-128, 128, graph.tensors[name].shape).astype(np.int8)
            for name in graph.inputs
        }
        for _ in range(count)
    ]


def stitched(parts: Sequence[LiteGraph], feeds: list[Arrays]) -> list[Arrays]:
    """Every tensor that crosses a border, from the parts run in order, each as a file."""
    interpreters = [Interpreter(write(part)) for part in parts]
    results = []
    for feed in feeds:
        values = dict(feed)
        for part, interpreter in zip(parts, interpreters, strict=True):
            values.update(interpreter.run({name: values[name] for name in part.inputs}))
        results.append(values)
    return results


def assert_stitched_is_whole(graph: LiteGraph, groups: Sequence[Sequence[int]]) -> None:
    feeds = samples(graph)
    whole = Interpreter(write(graph))
    for feed, values in zip(feeds, stitched(cut(graph, groups), feeds), strict=True):
        for name, array in whole.run(feed).items():
            np.testing.assert_array_equal(values[name], array, err_msg=f"{name} cut at {groups}")


def segments(*groups: tuple[str, tuple[str, ...]]) -> Plan:
    made = tuple(Segment("npu" if device == "npu" else "cpu", units) for device, units in groups)
    return Plan("test", made, {}, Cost(0, 0, 0, 0))


@pytest.mark.parametrize("position", prefix_positions(vision_graph()))
def test_two_parts_are_the_whole_at_every_position(position: int) -> None:
    graph = vision_graph()
    count = len(graph.operators)
    assert_stitched_is_whole(graph, [range(position), range(position, count)])


def test_one_part_for_each_operator_is_the_whole() -> None:
    graph = vision_graph()
    assert_stitched_is_whole(graph, [[index] for index in range(len(graph.operators))])


def test_groups_that_are_no_prefix_are_the_whole() -> None:
    assert_stitched_is_whole(vision_graph(), [[0, 1, 2], [3, 4, 5, 6, 8], [7]])


def test_a_part_reads_what_earlier_parts_made_and_the_inputs_of_the_model() -> None:
    first, second = cut(vision_graph(), [range(4), range(4, 9)])
    assert first.inputs == ("image",)
    assert first.outputs == ("sum", "key")
    assert second.inputs == ("key", "sum")
    assert second.outputs == ("dropped", "joined")


def test_a_part_holds_its_own_tensors_and_no_others() -> None:
    first, second = cut(vision_graph(), [range(4), range(4, 9)])
    assert "kernel" in first.tensors and "kernel" not in second.tensors
    assert first.tensors["key"] is second.tensors["key"]


def test_a_whole_cut_into_one_part_has_the_inputs_and_outputs_of_the_model() -> None:
    graph = vision_graph()
    (part,) = cut(graph, [range(len(graph.operators))])
    assert (part.inputs, part.outputs) == (graph.inputs, graph.outputs)
    assert write(part) == write(graph)


def test_a_constant_read_by_two_parts_is_in_both_and_crosses_no_border() -> None:
    tensors = [
        activation("x", 4),
        constant("c", np.arange(4, dtype=np.int8), 0.05),
        activation("y", 4),
        activation("z", 4),
    ]
    operators = (Operator("ADD", ("x", "c"), ("y",)), Operator("MUL", ("y", "c"), ("z",)))
    graph = LiteGraph(("x",), ("z",), {t.name: t for t in tensors}, operators)
    first, second = cut(graph, [[0], [1]])
    assert (first.outputs, second.inputs) == (("y",), ("y",))
    assert first.is_constant("c") and second.is_constant("c")
    assert_stitched_is_whole(graph, [[0], [1]])


def test_an_output_that_is_an_input_is_in_no_part_and_a_constant_one_is_in_the_last() -> None:
    tensors = [
        activation("x", 4),
        constant("c", np.arange(4, dtype=np.int8), 0.05),
        activation("y", 4),
        activation("z", 4),
    ]
    operators = (Operator("ADD", ("x", "x"), ("y",)), Operator("MUL", ("y", "y"), ("z",)))
    graph = LiteGraph(("x",), ("x", "c", "z"), {t.name: t for t in tensors}, operators)
    first, second = cut(graph, [[0], [1]])
    assert first.outputs == ("y",)
    assert second.outputs == ("c", "z")
    assert_stitched_is_whole(graph, [[0], [1]])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([range(4, 9), range(4)], "later part 1 makes"),
        ([range(4), range(5, 9)], "each of the 9 operators once"),
        ([range(5), range(4, 9)], "each of the 9 operators once"),
        ([range(9), []], "group 1 holds no operator"),
    ],
)
def test_an_illegal_cut_is_refused(groups: list[range], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cut(vision_graph(), groups)


def test_units_are_not_torn_at_unit_positions() -> None:
    assert prefix_positions(vision_graph()) == tuple(range(1, 9))
    assert unit_positions(vision_graph()) == (2, 3, 4, 7)


def test_a_plan_becomes_one_part_for_each_segment_on_its_device() -> None:
    plan = segments(
        ("npu", ("stem", "key", "nothing emitted")),
        ("cpu", ("also nothing",)),
        ("cpu", ("residual", "attention", "head")),
    )
    parts = carve(vision_graph(), plan)
    assert [part.device for part in parts] == ["npu", "cpu"]
    assert [op.unit for op in parts[0].graph.operators] == ["stem", "stem", "key"]


def test_an_operator_outside_the_plan_is_a_bug() -> None:
    with pytest.raises(ValueError, match="unit 'head'"):
        carve(vision_graph(), segments(("npu", ("stem", "key", "residual", "attention"))))


def test_a_plan_whose_segments_read_backwards_is_a_bug() -> None:
    plan = segments(("cpu", ("residual", "attention", "head")), ("npu", ("stem", "key")))
    with pytest.raises(ValueError, match="part 0 would read"):
        carve(vision_graph(), plan)


def test_state_is_not_torn_between_parts() -> None:
    """Two operators that share a state tensor, which no operator writes."""
    tensors = [activation(name, 4) for name in ("x", "state", "a", "b", "c")]
    operators = (
        Operator("CUSTOM:Keep", ("x", "state"), ("a",)),
        Operator("ADD", ("a", "a"), ("b",)),
        Operator("CUSTOM:Keep", ("b", "state"), ("c",)),
    )
    graph = LiteGraph(("x",), ("c",), {t.name: t for t in tensors}, operators)
    assert prefix_positions(graph) == ()
    with pytest.raises(ValueError, match="one state must be in one part"):
        cut(graph, [[0, 1], [2]])


@st.composite
def random_graphs(draw: st.DrawFn) -> LiteGraph:
    """One to ten elementwise operators over inputs, constants and each other's results."""
    tensors = {
        name: activation(name, 2, 3) for name in ("x", "unused", "w")[: draw(st.integers(1, 3))]
    }
    inputs = tuple(tensors)
    tensors["c"] = constant("c", np.arange(6, dtype=np.int8).reshape(2, 3), 0.04)
    operators = []
    for index in range(draw(st.integers(1, 10))):
        code = draw(st.sampled_from(["ADD", "SUB", "MUL", "RELU", "TANH"]))
        operands = draw(st.lists(st.sampled_from(list(tensors)), min_size=2, max_size=2))
        name = f"t{index}"
        fixed = {"scale": 1 / 128, "zero": 0} if code == "TANH" else {}
        tensors[name] = activation(name, 2, 3, **fixed)
        arity = 1 if code in ("RELU", "TANH") else 2
        operators.append(Operator(code, tuple(operands[:arity]), (name,)))
    made = [op.outputs[0] for op in operators]
    outputs = draw(st.lists(st.sampled_from([*made, "c", *inputs]), unique=True, max_size=3))
    outputs = list(dict.fromkeys([*outputs, made[-1]]))
    return LiteGraph(inputs, tuple(outputs), tensors, tuple(operators))


@st.composite
def legal_cuts(draw: st.DrawFn) -> tuple[LiteGraph, list[list[int]]]:
    """Each operator goes to its producers' last part or a later one."""
    graph = draw(random_graphs())
    home: dict[str, int] = {}
    groups: list[list[int]] = [[] for _ in range(4)]
    for index, op in enumerate(graph.operators):
        first = max((home.get(name, 0) for name in op.inputs), default=0)
        chosen = draw(st.integers(first, 3))
        home[op.outputs[0]] = chosen
        groups[chosen].append(index)
    return graph, [group for group in groups if group]


@settings(max_examples=60, deadline=None)
@given(legal_cuts())
def test_any_legal_cut_of_any_graph_is_the_whole(case: tuple[LiteGraph, list[list[int]]]) -> None:
    graph, groups = case
    assert_stitched_is_whole(graph, groups)


@settings(max_examples=200, deadline=None)
@given(legal_cuts())
def test_parts_cover_the_graph_once_and_only_read_what_is_there(
    case: tuple[LiteGraph, list[list[int]]],
) -> None:
    graph, groups = case
    parts = cut(graph, groups)
    assert sorted(op.outputs for part in parts for op in part.operators) == sorted(
        op.outputs for op in graph.operators
    )
    there = set(graph.inputs)
    for part in parts:
        assert set(part.inputs) <= there
        there.update(part.outputs)
    assert set(graph.outputs) <= there


TINY = Path(__file__).parents[1] / "models" / "rf_detr_tiny.onnx"


@pytest.fixture(scope="module")
def detector() -> LiteGraph:
    """The demo model in integers; the ranges of one random image are good enough to cut it."""
    model = normalize(load(TINY))
    graph = layout(model)
    lowerings = {
        unit.name: next(
            lowering.name
            for lowering in OPS[unit.op].lowerings
            if lowering.applies(graph, unit) is None
        )
        for unit in graph.units
    }
    lite = lower(graph, lowerings)
    image = np.random.default_rng(5).standard_normal(lite.tensors["input"].shape)
    return quantize(lite, calibrate(lite, [{"input": image.astype(np.float32)}]), npu=[])


@pytest.fixture(scope="module")
def answer(detector: LiteGraph) -> tuple[Arrays, Arrays]:
    """An input of the whole integer detector and what it makes of it."""
    (feed,) = samples(detector, 1)
    return feed, Interpreter(write(detector)).run(feed)


def assert_cut_gives(
    graph: LiteGraph, groups: Sequence[Sequence[int]], answer: tuple[Arrays, Arrays]
) -> None:
    feed, wanted = answer
    (values,) = stitched(cut(graph, groups), [feed])
    for name, array in wanted.items():
        np.testing.assert_array_equal(values[name], array, err_msg=name)


def test_a_detector_of_one_part_for_each_operator_is_the_whole(
    detector: LiteGraph, answer: tuple[Arrays, Arrays]
) -> None:
    groups = [[index] for index in range(len(detector.operators))]
    assert_cut_gives(detector, groups, answer)


@settings(max_examples=15, deadline=None, database=None)
@given(data=st.data())
def test_a_detector_cut_anywhere_is_the_whole(
    detector: LiteGraph, answer: tuple[Arrays, Arrays], data: st.DataObject
) -> None:
    """Two to four parts, wherever they begin."""
    borders = data.draw(
        st.sets(st.sampled_from(prefix_positions(detector)), min_size=1, max_size=3)
    )
    bounds = [0, *sorted(borders), len(detector.operators)]
    groups = [range(a, b) for a, b in itertools.pairwise(bounds)]
    assert_cut_gives(detector, groups, answer)


@pytest.mark.slow
def test_a_detector_in_two_parts_is_the_whole_at_every_position(
    detector: LiteGraph, answer: tuple[Arrays, Arrays]
) -> None:
    count = len(detector.operators)
    for position in prefix_positions(detector):
        assert_cut_gives(detector, [range(position), range(position, count)], answer)


def test_what_is_left_out_leaves_what_it_reads_as_outputs_and_what_it_makes_as_inputs() -> None:
    graph = LiteGraph(
        ("x",),
        ("z",),
        {name: Tensor(name, (1, 4), "int8") for name in "xabz"},
        (
            Operator("ABS", ("x",), ("a",)),
            Operator("NEG", ("a",), ("b",)),
            Operator("ADD", ("b", "x"), ("z",)),
        ),
    )
    rest = without(graph, {1})
    assert [op.code for op in rest.operators] == ["ABS", "ADD"]
    assert set(rest.inputs) == {"x", "b"} and set(rest.outputs) == {"a", "z"}
