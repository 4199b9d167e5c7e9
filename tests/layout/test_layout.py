"""Layout: which units come out, that no value changes, and how few transposes are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.diagnostics import SplitterError
from splitter.graph import Graph
from splitter.layout import layout
from splitter.layout.as_onnx import as_onnx
from splitter.normalize import normalize
from splitter.normalize.check import check
from tests.normalize.support import as_model, model_of, samples_of, weighted


def laid(model: onnx.ModelProto) -> Graph:
    """The graph of a model, after checking that it computes what the model does."""
    graph = layout(normalize(as_model(model)))
    errors = check(model, as_onnx(graph), samples_of(model))
    assert max(errors.values()) < 1e-5, errors
    sound(graph)
    return graph


def sound(graph: Graph) -> None:
    """Names are unique, values are defined before use, shapes and constants agree."""
    names = [unit.name for unit in graph.units]
    assert len(names) == len(set(names))
    known = {*graph.inputs, *graph.constants}
    for unit in graph.units:
        assert all(name in known for name in unit.inputs if name), unit
        known.update(name for name in unit.outputs if name)
    assert set(graph.outputs) <= known
    for name, data in graph.constants.items():
        assert graph.values[name].shape == data.shape
        assert graph.values[name].dtype == data.dtype.name


def count(graph: Graph) -> dict[str, int]:
    return dict(Counter(unit.op for unit in graph.units))


def units(graph: Graph, op: str) -> list[dict[str, object]]:
    return [dict(unit.attrs) for unit in graph.units if unit.op == op]


def test_a_constant_that_is_an_output_too_is_read_under_another_name() -> None:
    """Else the output is that constant, and stays float in the integer model."""
    graph = laid(
        model_of("""g (float[2,3] x) => (float[2,3] y, float[3] k) <float[3] w> {
      k = Relu(w)
      y = Add(x, k)
    }""")
    )
    assert "k" not in graph.constants and [unit.op for unit in graph.units] == ["Add", "Identity"]


def test_a_convolution_gets_a_transpose_on_either_side() -> None:
    graph = laid(weighted("g (float[1,3,5,7] x) => (float[1,4,5,7] y) "
                          "{ y = Conv<pads = [1,1,1,1]>(x, w, b) }",
                          {"w": (4, 3, 3, 3), "b": (4,)}))  # fmt: skip
    assert [u.op for u in graph.units] == ["Transpose", "Conv", "Transpose"]
    assert graph.shape("x") == (1, 3, 5, 7) and graph.shape("y") == (1, 4, 5, 7)
    assert graph.units[1].attrs["pads"] == (1, 1, 1, 1)
    assert graph.values[graph.units[1].outputs[0]].axes == (0, 2, 3, 1)


NETWORK = """g (float[1,3,8,12] x) => (float[1,6] y) <int64[2] flat = {1, 6}> {
  a = Conv<pads = [1,1,1,1]>(x, w0, b0) r = Relu(a)
  c = Conv<pads = [1,1,1,1]>(r, w1) d = Add(c, r) e = Mul(d, channel)
  p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(e)
  s1 = Sigmoid(p) q = Mul(p, s1) k = Concat<axis = 1>(q, p)
  f = Conv(k, w2) m = ReduceMean<keepdims = 1, axes = [2, 3]>(f) y = Reshape(m, flat) }"""


def test_a_convolutional_network_keeps_only_the_transpose_of_its_input() -> None:
    shapes = {"w0": (4, 3, 3, 3), "b0": (4,), "w1": (4, 4, 3, 3), "channel": (4, 1, 1),
              "w2": (6, 8, 1, 1)}  # fmt: skip
    graph = laid(weighted(NETWORK, shapes, opset=13))
    assert count(graph)["Transpose"] == 1
    assert units(graph, "Concat") == [{"axis": 3}]
    assert units(graph, "ReduceMean") == [{"axes": (1, 2), "keepdims": True}]
    assert [u.attrs["activation"] for u in graph.units if u.op == "Conv"] == ["RELU", "", ""]


def test_a_matmul_with_weights_is_fully_connected_with_bias_and_activation() -> None:
    graph = laid(weighted("g (float[2,3,4] x) => (float[2,3,5] y) "
                          "{ a = MatMul(x, w) c = Add(b, a) y = Relu(c) }",
                          {"w": (4, 5), "b": (5,)}))  # fmt: skip
    assert [(u.op, u.attrs) for u in graph.units] == [("FullyConnected", {"activation": "RELU"})]
    unit = graph.units[0]
    assert graph.shape(unit.inputs[1]) == (5, 4) and graph.shape(unit.inputs[2]) == (5,)
    assert unit.nodes == ("MatMul_a", "Add_c", "Relu_y")


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [(0.0, 6.0, "RELU6"), (-1.0, 1.0, "RELU_N1_TO_1"), (0.0, 1.0, "")],
)
def test_clips_that_tflite_knows_are_activations(low: float, high: float, name: str) -> None:
    graph = laid(model_of(f"g (float[2,3] x, float[2,3] z) => (float[2,3] y) "
                          f"<float l = {{{low}}}, float h = {{{high}}}> "
                          "{ a = Add(x, z) y = Clip(a, l, h) }"))  # fmt: skip
    assert units(graph, "Add") == [{"activation": name}]
    assert count(graph).get("Clip", 0) == (0 if name else 1)


def test_attention_keeps_four_transposes_and_none_around_the_heads() -> None:
    body = """g (float[1,6,8] x) => (float[1,6,8] y)
    <int64[4] heads = {1,6,2,4}, int64[3] flat = {1,6,8}> {
      q = MatMul(x, wq) q1 = Reshape(q, heads) q2 = Transpose<perm = [0,2,1,3]>(q1)
      k = MatMul(x, wk) k1 = Reshape(k, heads) k2 = Transpose<perm = [0,2,3,1]>(k1)
      v = MatMul(x, wv) v1 = Reshape(v, heads) v2 = Transpose<perm = [0,2,1,3]>(v1)
      s = MatMul(q2, k2) p = Softmax<axis = -1>(s) o = MatMul(p, v2)
      o1 = Transpose<perm = [0,2,1,3]>(o) o2 = Reshape(o1, flat) y = MatMul(o2, wo) }"""
    graph = laid(weighted(body, dict.fromkeys(("wq", "wk", "wv", "wo"), (8, 8))))
    assert count(graph)["Transpose"] == 4 and count(graph)["FullyConnected"] == 4


def test_a_transposed_operand_of_a_matmul_is_an_attribute() -> None:
    graph = laid(model_of("g (float[2,5,4] x, float[2,6,4] z) => (float[2,5,6] y) "
                          "{ t = Transpose<perm = [0,2,1]>(z) y = MatMul(x, t) }"))  # fmt: skip
    assert units(graph, "MatMul") == [{"adj_x": False, "adj_y": True}] and len(graph.units) == 1


def test_softmax_along_another_axis_is_brought_to_the_last_one() -> None:
    graph = laid(
        model_of("g (float[2,3,4,5] x) => (float[2,3,4,5] y) { y = Softmax<axis = 1>(x) }")
    )
    assert units(graph, "Softmax") == [{"axis": 3}] and count(graph)["Transpose"] == 2


def test_parameters_are_attributes_for_every_axis() -> None:
    body = """g (float[2,3,4] x) => (float[2,2,7] y)
    <int64[1] a = {-1}, int64[1] b = {-9}, int64[1] one = {1}, int64[1] s = {-2},
     int64[6] p = {0,0,1,0,0,2}> { c = Slice(x, a, b, one, s) y = Pad(c, p) }"""
    graph = laid(model_of(body))
    assert units(graph, "Slice") == [{"starts": (0, 2, 0), "ends": (2, -1, 4), "steps": (1, -2, 1)}]
    assert units(graph, "Pad") == [
        {"pads": ((0, 0), (0, 0), (1, 2)), "mode": "constant", "value": 0.0}
    ]


def test_parameters_computed_at_run_time_are_all_named_at_once() -> None:
    body = """g (float[2,3] x, int64[1] i, int64 k) => (float[2,3] y, float[2,3] z) {
      y = Trilu(x, k) z = CumSum(x, i) }"""
    with pytest.raises(SplitterError) as caught:
        layout(normalize(as_model(model_of(body))))
    assert "Trilu" in str(caught.value) and "CumSum" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "g (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        "g (float[2,3] x) => (float[3,2] y) { y = Transpose<perm = [1,0]>(x) }",
        "g (float[2,3] x) => (float[6] y, float[6] z) <int64[1] s = {6}> "
        "{ y = Reshape(x, s) z = Reshape(x, s) }",
        "g (float[2,3] x) => (float[2,3] y, float[3,2] z) "
        "{ y = Relu(x) z = Transpose<perm = [1,0]>(y) }",
        "g (float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,2,1,1] z) "
        "{ y = MaxPool<kernel_shape = [1,1]>(x) z = GlobalMaxPool(y) }",
        "g (float[2] x) => (float[2] y, float[1] z) "
        "{ y = Relu(x) z = Constant<value = float[1] {3.0}>() }",
    ],
)
def test_outputs_keep_their_names_and_shapes(body: str) -> None:
    model = model_of(body)
    graph = laid(model)
    assert graph.outputs == tuple(v.name for v in model.graph.output)
    for value in model.graph.output:
        dims = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        assert graph.shape(value.name) == dims


SPATIAL = {
    "depth to space": "DepthToSpace<blocksize = 2, mode = \"CRD\">(x)",
    "space to depth": "SpaceToDepth<blocksize = 2>(x)",
    "average pool": "AveragePool<kernel_shape = [3,3], strides = [2,1], pads = [1,1,1,1]>(x)",
    "same pool": "MaxPool<kernel_shape = [3,2], strides = [2,2], auto_pad = \"SAME_UPPER\">(x)",
    "instance norm": "InstanceNormalization(x, s, s)",
    "lrn": "LRN<size = 3>(x)",
    "crop": "Resize<coordinate_transformation_mode = \"tf_crop_and_resize\", mode = \"linear\", "
            "extrapolation_value = 0.5>(x, region, none, target)",
    "transposed": "ConvTranspose<strides = [2,2], output_padding = [1,1]>(x, t)",
    "depthwise": "Conv<group = 8, auto_pad = \"SAME_LOWER\">(x, d)",
}  # fmt: skip


@pytest.mark.parametrize("name", SPATIAL)
def test_spatial_units_are_channels_last_by_value(name: str) -> None:
    constants = ("<float[8] region = {0,0,0.25,0.5,1,1,0.75,1.5}, int64[4] target = {1,8,7,9}, "
                 "float[0] none = {}>")  # fmt: skip
    body = f"g (float[1,8,6,4] x) => (float[A,B,C,D] y) {constants} {{ y = {SPATIAL[name]} }}"
    shapes = {"s": (8,), "t": (8, 5, 3, 3), "d": (8, 1, 2, 2)}
    graph = laid(weighted(body, shapes))
    assert count(graph)["Transpose"] == 2


PIECES = (
    "Relu({0})", "Transpose<perm = [0,2,1,3]>({0})", "Transpose<perm = [0,1,3,2]>({0})",
    "Softmax<axis = 1>({0})", "Softmax<axis = -1>({0})", "Conv(x4, w)", "Mul({0}, c)",
    "Mul({0}, v)", "Add({0}, {1})", "Concat<axis = 1>({0}, {1})",
    "MatMul({0}, {1})", "LayerNormalization<axis = -1>({0}, n)", "MatMul({0}, m)",
    "InstanceNormalization({0}, n, n)", "MaxPool<kernel_shape = [1,1]>({0})",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_random_graph_keeps_its_values_and_never_gains_transposes(data: st.DataObject) -> None:
    body, spatial, transposes = random_graph(data)
    shapes = {"w": (4, 4, 1, 1), "c": (4, 1, 1), "v": (4,), "n": (4,), "m": (4, 4)}
    text = f"g (float[1,4,4,4] x) => (float[A,B,C,D] y) {{ {body} }}"
    graph = laid(weighted(text, shapes))
    assert count(graph).get("Transpose", 0) <= transposes + 2 * spatial


def random_graph(data: st.DataObject) -> tuple[str, int, int]:
    """(nodes, how many units ask for another layout, how many Transposes there are)."""
    values = {"x": (1, 4, 4, 4)}
    lines: list[str] = []
    spatial = transposes = 0
    for index in range(data.draw(st.integers(1, 9))):
        piece = data.draw(st.sampled_from(PIECES))
        square = [name for name, shape in values.items() if shape == (1, 4, 4, 4)]
        first = data.draw(st.sampled_from(square))
        second = data.draw(st.sampled_from(square))
        name = f"v{index}"
        if "Concat" in piece:
            values[name] = (1, 8, 4, 4)
        else:
            values[name] = (1, 4, 4, 4)
        lines.append(f"{name} = {piece.replace('x4', '{0}').format(first, second)}")
        transposes += "Transpose" in piece
        spatial += any(word in piece for word in ("Conv", "axis = 1>(", "Pool", "Instance"))
    total = reduce_all(values)
    return " ".join([*lines, *total]), spatial, transposes


def reduce_all(values: dict[str, Sequence[int]]) -> list[str]:
    """Use every value, so that nothing is dead: cut to one shape and add up."""
    lines, last = [], "x"
    for index, (name, shape) in enumerate(values.items()):
        if name == "x":
            continue
        part = name
        if tuple(shape) != (1, 4, 4, 4):
            part = f"p{index}"
            lines.append(f"{part}, q{index} = Split<axis = 1>({name})")
        lines.append(f"t{index} = Add({last}, {part})")
        last = f"t{index}"
    return [*lines, f"y = Neg({last})"]


def test_the_same_model_gives_the_same_graph() -> None:
    shapes = {"w0": (4, 3, 3, 3), "b0": (4,), "w1": (4, 4, 3, 3), "channel": (4, 1, 1),
              "w2": (6, 8, 1, 1)}  # fmt: skip
    first, second = (laid(weighted(NETWORK, shapes, opset=13)) for _ in range(2))
    assert first.units == second.units and first.values == second.values
    assert all(np.array_equal(first.constants[n], second.constants[n]) for n in first.constants)


def test_one_transpose_serves_all_slices_of_a_tensor() -> None:
    body = """g (float[1,5,24] x) => (float[1,2,5,5] y, float[1,2,5,4] z)
    <int64[5] five = {1,5,3,2,4}, int64[3] parts = {1,1,1}, int64[1] first = {0}> {
      m = MatMul(x, w) r = Reshape(m, five) t = Transpose<perm = [2,0,3,1,4]>(r)
      q, k, v = Split<axis = 0>(t, parts) q1 = Squeeze(q, first) k1 = Squeeze(k, first)
      v1 = Squeeze(v, first) k2 = Transpose<perm = [0,1,3,2]>(k1) y = MatMul(q1, k2)
      z = MatMul(y, v1) }"""
    graph = laid(weighted(body, {"w": (24, 24)}))
    assert count(graph)["Transpose"] == 1


def test_windows_of_windows_stay_within_the_ranks_that_kernels_have() -> None:
    lines, value, batch, side = [], "x", 1, 16
    for turn in range(3):
        lengths = f"{batch}, {side // 2}, 2, {side // 2}, 2, 3"
        lines.append(f"""
          s{turn} = Constant<value = int64[6] {{{lengths}}}>()
          r{turn} = Reshape({value}, s{turn})
          t{turn} = Transpose<perm = [0, 2, 4, 1, 3, 5]>(r{turn})""")
        value, batch, side = f"t{turn}", 4 * batch, side // 2
    graph = laid(
        model_of(f"""g (float[1,16,16,3] x) => (float[16,2,2,2,2,3] y) {{
      {"".join(lines)}
      y = Relu({value})
    }}""")
    )
    perms = [unit["perm"] for unit in units(graph, "Transpose")]
    assert perms and all(isinstance(perm, tuple) and len(perm) <= 6 for perm in perms)
