"""The smallest ONNX graphs, as plain data, whose one node has wanted facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from splitter.graph import Array, Origin, OriginNode, Value
from splitter.rules.dialect.view import NodeView

Shape = tuple[int, ...]


class Bench:
    def __init__(self, op: str, want: Mapping[str, Any]) -> None:
        self.op, self.want = op, want
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.dtype = str(want.get("dtypes", "float32"))
        self.nodes: list[OriginNode] = []

    def get(self, fact: str, default: Any) -> Any:
        return self.want.get(fact, default)

    def value(self, name: str, shape: Shape, dtype: str = "") -> str:
        self.values[name] = Value(name, tuple(shape), dtype or self.dtype)
        return name

    def constant(self, name: str, data: Any, dtype: str = "int64") -> str:
        array = np.asarray(data, dtype=dtype)
        self.constants[name] = array
        return self.value(name, array.shape, dtype)

    def finish(self, inputs: tuple[str, ...], shape: Shape, **attrs: Any) -> Origin:
        self.value("y", shape)
        self.nodes.append(OriginNode(self.op, self.op, inputs, ("y",), attrs, (self.op,)))
        return Origin(tuple(self.nodes), self.values, self.constants, ("y",))

    def plain(self) -> Shape:
        """A shape with the wanted rank, batch and count of dimensions over 1."""
        if "max_dimension" in self.want:
            return (1, 2, 2, self.want["max_dimension"])
        if "non_singleton" in self.want:
            return (2,) * self.want["non_singleton"]
        rank = self.get("rank", self.get("input_rank", 4))
        return ((1,) * rank + (self.get("batch", 1), 2, 2, 2))[-rank:]


def _kernel(bench: Bench) -> tuple[Shape, Shape]:
    """(kernel, strides)."""
    sized = {"kernel_h", "kernel_w", "stride_h", "stride_w", "window_fits"} & set(bench.want)
    usual = "2x2s2" if bench.op == "ConvTranspose" and not sized else "1x1s1"
    sizes, _, step = str(bench.get("kernel_stride", usual)).partition("s")
    default, stride = [int(part) for part in sizes.split("x")], [int(step)] * 2
    kernel = (bench.get("kernel_h", default[0]), bench.get("kernel_w", default[1]))
    first = bench.get("stride_h", stride[0])
    second = bench.get("stride_w", stride[1] if "stride_h" not in bench.want else first)
    return kernel, (first, second if bench.get("strides_equal", True) else first + 1)


def _window(bench: Bench, **attrs: Any) -> dict[str, Any]:
    kernel, strides = _kernel(bench)
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": (bench.get("dilation_h", 1), bench.get("dilation_w", 1)),
        "pads": (bench.get("pad", 0 if bench.get("window_fits", True) else 2),) * 4,
        "auto_pad": bench.get("auto_pad", "NOTSET"),
        **attrs,
    }


def conv(bench: Bench) -> Origin:
    depthwise = bench.get("depthwise", False)
    channels = 4
    group = bench.get("groups", channels if depthwise else 1)
    kernel, _ = _kernel(bench)
    shape = (
        bench.plain()
        if "non_singleton" in bench.want
        else (1, channels, 8, bench.get("input_w", 8))
    )
    x = bench.value("x", shape)
    weights = (channels, channels // group, *kernel)
    if bench.get("weights_constant", True) and bench.get("variable_inputs", 1) == 1:
        w = bench.constant("w", np.zeros(weights), "float32")
    else:
        w = bench.value("w", weights)
    out = (1, channels, 8, 8)
    if bench.op == "ConvTranspose" and bench.get("window_fits", True):
        out = (1, channels, 512, 512)
    return bench.finish((x, w), out, group=group, **_window(bench))


def pool(bench: Bench) -> Origin:
    shape = bench.plain()
    attrs = _window(bench, ceil_mode=int(bench.get("ceil_mode", False)))
    return bench.finish((bench.value("x", shape),), shape, **attrs)


def global_pool(bench: Bench) -> Origin:
    plane = (bench.get("input_h", bench.get("plane", 2)), bench.get("input_w", 1))
    x = bench.value("x", (1, bench.get("channels", 4), *plane))
    return bench.finish((x,), (1, bench.get("channels", 4), 1, 1))


def matmul(bench: Bench) -> Origin:
    lead = (2,) * (bench.get("non_singleton", 2) - 2)
    depth = bench.get("depth", 4)
    x = bench.value("x", (*lead, 2, depth))
    if bench.get("variable_inputs", 1) == 1:
        z = bench.constant("z", np.zeros((depth, 2)), "float32")
    else:
        z = bench.value("z", (depth, 2))
    return bench.finish((x, z), (*lead, 2, 2))


def attention(bench: Bench) -> Origin:
    """Two products around a Softmax."""
    wide, deep = bench.get("q_channels", 8), bench.get("v_channels", 8)
    q, k, v = (
        bench.value(name, shape)
        for name, shape in (("q", (1, 2, wide)), ("k", (1, wide, 2)), ("v", (1, 2, deep)))
    )
    scores, weights = bench.value("s", (1, 2, 2)), bench.value("p", (1, 2, 2))
    bench.nodes += [
        OriginNode("scores", "MatMul", (q, k), (scores,)),
        OriginNode("softmax", "Softmax", (scores,), (weights,), {"axis": -1}),
    ]
    bench.value("y", (1, 2, deep))
    bench.nodes.append(OriginNode("Attention", "MatMul", (weights, v), ("y",)))
    return Origin(tuple(bench.nodes), bench.values, bench.constants, ("y",))


def elementwise(bench: Bench) -> Origin:
    kind = bench.get("broadcast", "none")
    full = bench.plain()
    if kind not in ("none", "scalar", "both"):
        full = (2, 3, 4, bench.get("repeated", 5))
    if "repeated" in bench.want:
        full, kind = (
            (2, 3, 4, bench.want["repeated"]),
            "bch1" if bench.want["repeated"] > 1 else kind,
        )
    small = full
    if kind == "scalar":
        small = ()
    elif kind == "both":
        x, z = bench.value("x", (2, 1, 2, 2)), bench.value("z", (1, 3, 2, 2))
        inputs: tuple[str, ...] = (x, z)
        if bench.op == "Where":
            inputs = (bench.value("c", (2, 3, 2, 2), "bool"), x, z)
        if bench.op == "Expand":
            return bench.finish((bench.value("x", (2, 1, 1, 1)),), (2, 3, 4, 5))
        return bench.finish(inputs, (2, 3, 2, 2))
    elif kind != "none":
        small = tuple(1 if letter == "1" else d for letter, d in zip(kind, full, strict=True))
    if bench.op == "Expand":
        return bench.finish((bench.value("x", small),), full)
    x = bench.value("x", full)
    if bench.op in ("PRelu",) and bench.get("right_constant", True):
        z = bench.constant("z", np.zeros(small), "float32")
    else:
        z = bench.value("z", small)
    if bench.op == "Where":
        return bench.finish((bench.value("c", full, "bool"), x, z), full)
    return bench.finish((x, z), full)


def power(bench: Bench) -> Origin:
    shape = bench.plain()
    x = bench.value("x", shape)
    size = bench.get("right_elements", 1)
    if bench.get("right_constant", True):
        z = bench.constant("z", np.full(size, bench.get("exponent", 2)), "float32")
    else:
        z = bench.value("z", (size,))
    return bench.finish((x, z), shape)


def unary(bench: Bench) -> Origin:
    shape = bench.plain()
    return bench.finish((bench.value("x", shape),), shape)


def clip(bench: Bench) -> Origin:
    shape = bench.plain()
    low = bench.constant("low", bench.get("minimum", 0), "float64")
    high = bench.constant("high", bench.get("maximum", 6), "float64")
    return bench.finish((bench.value("x", shape), low, high), shape)


def along(bench: Bench) -> Origin:
    shape = bench.plain()
    usual = 1 if bench.op.startswith("Arg") else 3
    axis = bench.get("axis_from_end", bench.get("axis", usual) - 4)
    if not bench.get("last_axis", True):
        axis = -2
    attrs = {
        "keepdims": int(bench.get("keepdims", True)),
        "select_last_index": int(bench.get("select_last_index", False)),
        "sorted": int(bench.get("sorted", True)),
    }
    inputs = [bench.value("x", shape)]
    if bench.op == "TopK":
        constant = bench.get("k_constant", True)
        inputs.append(bench.constant("k", [1]) if constant else bench.value("k", (1,), "int64"))
    return bench.finish(tuple(inputs), shape, axis=axis, **attrs)


def reduce(bench: Bench) -> Origin:
    shape = bench.plain()
    text = str(bench.get("axes_from_end", "[-2]")).strip("[]")
    axes = bench.constant("axes", [int(part) for part in text.split(",")])
    keep = int(bench.get("keepdims", True))
    return bench.finish((bench.value("x", shape), axes), shape, keepdims=keep)


def transpose(bench: Bench) -> Origin:
    text = str(bench.get("permutation", "[0, 1, 2, 3]")).strip("[]")
    perm = [int(part) for part in text.split(",")]
    shape = {"n": 1, "c": 1, "h": 16, "w": 16}
    for fact, value in bench.want.items():
        if fact in shape:
            shape[fact] = value
        elif set(fact) <= set("nchw"):
            shape.update(dict.fromkeys(fact, 1))
            shape[fact[-1]] = value
    dims = tuple(shape.values())
    if "last_goes_to" in bench.want or "input_rank" in bench.want:
        dims, perm = (2,) * 5, [0, 1, 2, 3, 4]
        to = bench.get("last_goes_to", 4)
        perm.insert(to, perm.pop())
    if "non_singleton" in bench.want or "rank" in bench.want:
        dims = bench.plain()
        perm = list(range(len(dims)))
    return bench.finish((bench.value("x", dims),), tuple(dims[p] for p in perm), perm=perm)


def slice_(bench: Bench) -> Origin:
    shape = bench.plain()
    axis = 0 if bench.get("slices_first_axis", False) else len(shape) - 1
    step = 1 if bench.get("unit_steps", True) else 2
    names = [("starts", 0), ("ends", 1), ("axes", axis), ("steps", step)]
    inputs = [bench.value("x", shape)]
    for name, value in names:
        constant = bench.get("parameters_constant", True) or name != "ends"
        inputs.append(
            bench.constant(name, [value]) if constant else bench.value(name, (1,), "int64")
        )
    return bench.finish(tuple(inputs), shape)


def split(bench: Bench) -> Origin:
    shape = bench.plain()
    axis = 0 if bench.get("splits_first_axis", False) else 1
    return bench.finish((bench.value("x", shape),), shape, axis=axis)


def pad(bench: Bench) -> Origin:
    shape = list(bench.plain())
    for fact, axis in (("c", -3), ("h", -2), ("w", -1)):
        shape[axis] = bench.get(fact, shape[axis])
    rank = len(shape)
    pads = [0] * (2 * rank)
    pads[rank - 1 if bench.get("plane_only", True) else rank - 3] = 1
    constant = bench.get("parameters_constant", True)
    where = bench.constant("pads", pads) if constant else bench.value("pads", (8,), "int64")
    inputs = (bench.value("x", tuple(shape)), where, bench.constant("v", bench.get("value", 0)))
    return bench.finish(inputs, tuple(shape), mode=bench.get("mode", "constant"))


def gather(bench: Bench) -> Origin:
    rank = bench.get("rank", bench.get("input_rank", 3))
    shape = (bench.get("leading", 1), 4, 4)[-rank:] if rank < 4 else (1,) * (rank - 3) + (1, 4, 4)
    axis = min(1, rank - 1)
    if bench.get("data_constant", False):
        x = bench.constant("x", np.zeros(shape), "float32")
    else:
        x = bench.value("x", shape)
    count = (2,) * bench.get("indices_rank", 1)
    kind = bench.dtype if bench.dtype.startswith("int") else "int64"
    indices = bench.value("i", count, kind)
    return bench.finish((x, indices), (*shape[:axis], *count, *shape[axis + 1 :]), axis=axis)


def resize(bench: Bench) -> Origin:
    shape = (1, 2, 4, 4)
    if "non_singleton" in bench.want:
        shape = (2,) * bench.want["non_singleton"]
        return bench.finish((bench.value("x", shape),), shape, mode="linear")
    up = bench.get("factor_h", bench.get("factor_w", 2))
    across = bench.get("factor_w", up)
    across = across if bench.get("same_factor", True) else 2 * across
    out = (1, 2 if bench.get("plane_only", True) else 4, round(4 * up), round(4 * across))
    coordinates = bench.get("coordinates", "half_pixel")
    rounding = "floor" if coordinates == "asymmetric" else "round_prefer_ceil"
    mode = bench.get("mode", "nearest")
    return bench.finish(
        (bench.value("x", shape),),
        out,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=bench.get("nearest_mode", rounding),
    )


def grid_sample(bench: Bench) -> Origin:
    shape = bench.plain()
    attrs = {
        name: bench.get(name, first)
        for name, first in (
            ("mode", "linear"),
            ("padding_mode", "zeros"),
        )
    }
    return bench.finish((bench.value("x", shape), bench.value("g", shape)), shape, **attrs)


def recurrent(bench: Bench) -> Origin:
    size = bench.get("batch_size", 1)
    return bench.finish((bench.value("x", (4, size, 8)),), (4, 1, size, 8))


BUILDERS: Mapping[str, Callable[[Bench], Origin]] = {
    **dict.fromkeys(("Conv", "ConvTranspose"), conv),
    **dict.fromkeys(("MaxPool", "AveragePool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(("MatMul", "Gemm"), matmul),
    "Attention": attention,
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Max", "Min", "Expand", "Where", "PRelu"), elementwise
    ),
    "Pow": power,
    "Clip": clip,
    **dict.fromkeys(
        (
            *("Softmax", "LayerNormalization", "RMSNormalization", "Concat", "ArgMax", "ArgMin"),
            "TopK",
        ),
        along,
    ),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum"), reduce),
    "Transpose": transpose,
    "Slice": slice_,
    "Split": split,
    "Pad": pad,
    "Gather": gather,
    "Resize": resize,
    "GridSample": grid_sample,
    **dict.fromkeys(("LSTM", "GRU"), recurrent),
}


def specimen(op: str, want: Mapping[str, Any]) -> NodeView:
    """The one node of the wanted facts; for an attention all its nodes with the first."""
    origin = BUILDERS.get(op, unary)(Bench(op, want))
    group = origin.nodes if op == "Attention" else ()
    return NodeView(origin, origin.nodes[0] if group else origin.nodes[-1], group)
