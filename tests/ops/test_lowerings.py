"""Every operator, by every lowering that takes it: as ONNX Runtime in float, close to it in int8."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.ops.lowered import drawn, every_lowering, parsed

FLOAT = 1e-5
INTEGER = 0.02


@dataclass(frozen=True)
class Case:
    """body: the graph. bound: relative RMS in int8. low, high: where floats are drawn."""

    name: str
    body: str
    bound: float = INTEGER
    low: float = -2.0
    high: float = 2.0
    opset: int = 22
    exact: float = FLOAT


def image(call: str, out: str, *, size: str = "1,6,9,11", **known: float) -> str:
    return f"(float[{size}] x) => (float[{out}] y) {{ y = {call} }}"


POOLS = [
    Case(
        "a pool without pads", image("MaxPool <kernel_shape=[3,2], strides=[2,1]> (x)", "1,6,4,10")
    ),
    Case(
        "pads as TFLite's SAME",
        image("MaxPool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", "1,6,9,11"),
    ),
    Case(
        "pads before an even stride",
        image(
            "MaxPool <kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]> (x)",
            "1,6,4,6",
            size="1,6,8,11",
        ),
    ),
    Case("pads on one side", image("MaxPool <kernel_shape=[2,3], pads=[0,2,1,0]> (x)", "1,6,9,11")),
    Case(
        "all data negative",
        image("MaxPool <kernel_shape=[5,5], pads=[2,2,2,2]> (x)", "1,6,9,11"),
        low=-6.0,
        high=-4.0,
    ),
    Case(
        "ceil mode",
        image(
            "MaxPool <kernel_shape=[3,3], strides=[2,2], ceil_mode=1> (x)",
            "1,6,4,5",
            size="1,6,8,10",
        ),
    ),
    Case(
        "a dilated pool",
        image("MaxPool <kernel_shape=[3,2], dilations=[2,3], pads=[1,1,2,1]> (x)", "1,6,8,10"),
    ),
    Case(
        "a pool of three axes",
        image(
            "MaxPool <kernel_shape=[2,3,2], pads=[1,1,0,0,1,1], strides=[1,2,1]> (x)",
            "1,3,4,4,6",
            size="1,3,4,7,6",
        ),
    ),
    Case(
        "an average without pads",
        image("AveragePool <kernel_shape=[3,3], strides=[3,2]> (x)", "1,6,3,5"),
    ),
    Case(
        "an average that leaves pads out",
        image("AveragePool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", "1,6,9,11"),
    ),
    Case(
        "an average that leaves uneven pads out",
        image("AveragePool <kernel_shape=[3,4], pads=[2,0,1,3]> (x)", "1,6,10,11"),
        bound=0.03,
    ),
    Case(
        "an average over pads",
        image(
            "AveragePool <kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1> (x)", "1,6,9,11"
        ),
    ),
    Case(
        "an average over pads in ceil mode",
        image(
            "AveragePool <kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2], count_include_pad=1,"
            " ceil_mode=1> (x)",
            "1,6,5,6",
            size="1,6,8,10",
        ),
    ),
    Case(
        "a dilated average",
        image("AveragePool <kernel_shape=[2,3], dilations=[2,2], pads=[1,0,0,2]> (x)", "1,6,8,9"),
    ),
    Case(
        "an average of three axes",
        image(
            "AveragePool <kernel_shape=[2,2,3], pads=[0,1,1,1,0,1]> (x)",
            "1,3,4,7,6",
            size="1,3,4,7,6",
        ),
    ),
    Case(
        "global pools",
        "(float[2,5,6,7] x) => (float[2,5,1,1] y, float[2,5,1,1] z)"
        " { y = GlobalAveragePool (x) z = GlobalMaxPool (x) }",
        bound=0.03,
    ),
    Case("a pool of squares", image("LpPool <kernel_shape=[2,3], p=2> (x)", "1,6,8,9"), bound=0.03),
]


def convolution(call: str, x: str, w: str, y: str, *, bias: str = "") -> str:
    known = f"float[{w}] w" + (f", float[{bias}] b" if bias else "")
    call = call.replace("(", "(x, w, b)" if bias else "(x, w)")
    return f"(float[{x}] x) => (float[{y}] y) <{known}> {{ y = {call} }}"


CONVOLUTIONS = [
    Case("a plain convolution", convolution("Conv (", "1,4,7,8", "5,4,3,3", "1,5,5,6", bias="5")),
    Case(
        "uneven pads and strides",
        convolution(
            "Conv <pads=[0,2,1,3], strides=[2,1]> (", "1,4,7,8", "5,4,3,3", "1,5,3,11", bias="5"
        ),
    ),
    Case(
        "auto pads",
        convolution(
            'Conv <auto_pad="SAME_LOWER", strides=[2,2]> (', "1,4,8,8", "5,4,3,3", "1,5,4,4"
        ),
    ),
    Case(
        "a dilated convolution",
        convolution("Conv <dilations=[2,3], pads=[2,3,2,3]> (", "1,4,9,9", "5,4,3,3", "1,5,9,9"),
    ),
    Case(
        "a depthwise convolution",
        convolution(
            "Conv <group=6, pads=[1,1,1,1]> (", "1,6,7,8", "12,1,3,3", "1,12,7,8", bias="12"
        ),
    ),
    Case(
        "a grouped convolution",
        convolution("Conv <group=2> (", "1,6,7,8", "4,3,2,2", "1,4,6,7", bias="4"),
    ),
    Case(
        "a convolution of one axis",
        convolution("Conv <pads=[1,2], strides=[2]> (", "2,4,11", "3,4,4", "2,3,6", bias="3"),
    ),
    Case(
        "a convolution of three axes",
        convolution(
            "Conv <pads=[1,0,1,0,1,1], strides=[2,1,1]> (",
            "1,3,5,6,7",
            "4,3,2,3,2",
            "1,4,3,5,8",
            bias="4",
        ),
    ),
    Case(
        "a transposed convolution",
        convolution("ConvTranspose (", "1,4,5,6", "4,3,3,3", "1,3,7,8", bias="3"),
    ),
    Case(
        "a transposed convolution with stride 3",
        convolution(
            "ConvTranspose <strides=[3,3], pads=[1,1,1,1]> (", "1,4,3,3", "4,3,3,3", "1,3,7,7"
        ),
    ),
    Case(
        "output padding and stride 2",
        convolution(
            "ConvTranspose <strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]> (",
            "1,4,5,6",
            "4,3,3,3",
            "1,3,10,12",
            bias="3",
        ),
    ),
    Case(
        "a kernel as wide as the stride",
        convolution("ConvTranspose <strides=[2,2]> (", "1,4,5,6", "4,3,2,2", "1,3,10,12", bias="3"),
    ),
    Case(
        "kernel 4, stride 2, pad 1",
        convolution(
            "ConvTranspose <strides=[2,2], pads=[1,1,1,1]> (", "1,4,5,6", "4,3,4,4", "1,3,10,12"
        ),
    ),
    Case(
        "a dilated transposed convolution",
        convolution(
            "ConvTranspose <dilations=[2,2], strides=[2,1], pads=[0,1,2,0]> (",
            "1,4,4,5",
            "4,3,2,3",
            "1,3,7,8",
        ),
    ),
    Case(
        "a grouped transposed convolution",
        convolution(
            "ConvTranspose <group=2, strides=[2,2]> (", "1,4,4,5", "4,3,3,3", "1,6,9,11", bias="6"
        ),
    ),
    Case(
        "a depthwise transposed convolution",
        convolution(
            "ConvTranspose <group=4, strides=[2,2], pads=[1,1,1,1]> (",
            "1,4,4,5",
            "4,1,4,4",
            "1,4,8,10",
            bias="4",
        ),
    ),
    Case(
        "a transposed convolution of one axis",
        convolution(
            "ConvTranspose <strides=[2], pads=[1,0]> (", "1,4,7", "4,3,3", "1,3,14", bias="3"
        ),
    ),
    Case(
        "a transposed convolution of three axes",
        convolution(
            "ConvTranspose <strides=[2,1,2], pads=[1,0,0,0,1,0]> (",
            "1,2,3,4,3",
            "2,3,3,2,2",
            "1,3,6,4,6",
            bias="3",
        ),
    ),
]


def resize(attrs: str, out: str, scales: str) -> str:
    lists = ", ".join(scales.split())
    return (
        f"(float[1,3,6,8] x) => (float[{out}] y) <float[4] s = {{1, 1, {lists}}}>"
        f" {{ y = Resize <{attrs}> (x, , s) }}"
    )


def _resizes() -> list[Case]:
    cases = []
    for mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        for kind in ("linear", "cubic"):
            attrs = f'mode="{kind}", coordinate_transformation_mode="{mode}"'
            cases.append(Case(f"{kind} {mode} up", resize(attrs, "1,3,12,24", "2 3")))
            cases.append(Case(f"{kind} {mode} down", resize(attrs, "1,3,3,2", "0.5 0.25")))
    for mode in ("half_pixel", "align_corners", "asymmetric"):
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            attrs = (
                f'mode="nearest", coordinate_transformation_mode="{mode}", nearest_mode="{nearest}"'
            )
            cases.append(Case(f"nearest {mode} {nearest}", resize(attrs, "1,3,12,20", "2 2.5")))
    attrs = 'mode="linear", antialias=1'
    cases.append(Case("linear with antialias", resize(attrs, "1,3,3,4", "0.5 0.5")))
    attrs = 'mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5'
    cases.append(Case("cubic with excluded outside", resize(attrs, "1,3,9,16", "1.5 2")))
    cases.append(
        Case(
            "trilinear",
            "(float[1,2,3,4,5] x) => (float[1,2,6,4,10] y) <float[5] s = {1, 1, 2, 1, 2}>"
            ' { y = Resize <mode="linear"> (x, , s) }',
        )
    )
    return cases


def one(call: str, *, shape: str = "2,3,5", kind: str = "float") -> str:
    return f"(float[{shape}] x) => ({kind}[{shape}] y) {{ y = {call} (x) }}"


FUNCTIONS = [
    Case(call.split(" ")[0] + call.partition("<")[2], one(call), **known)  # type: ignore[arg-type]
    for call, known in {
        "Relu": {},
        "Sigmoid": {},
        "Tanh": {},
        "Exp": {},
        "Sin": {},
        "Cos": {},
        "Abs": {},
        "Neg": {},
        "Floor": {"bound": 0.2},
        "Ceil": {"bound": 0.2},
        "Round": {"bound": 0.2},
        "Sign": {"bound": 0.15},
        "Log": {"low": 0.1, "high": 4.0},
        "Sqrt": {"low": 0.0, "high": 4.0},
        "Reciprocal": {"low": 0.3, "high": 3.0},
        "Erf": {},
        "Softplus": {},
        "Softsign": {},
        "HardSwish": {},
        "Mish": {},
        "Elu": {},
        "Elu <alpha=0.5>": {},
        "Celu <alpha=0.7>": {},
        "Selu": {},
        "LeakyRelu": {},
        "LeakyRelu <alpha=0.3>": {},
        "ThresholdedRelu <alpha=0.6>": {"bound": 0.12},
        "HardSigmoid": {},
        "HardSigmoid <alpha=0.3, beta=0.4>": {},
        "Shrink <lambd=0.7, bias=0.2>": {"bound": 0.06},
        "Gelu": {},
        'Gelu <approximate="tanh">': {},
        "Tan": {"low": -1.2, "high": 1.2},
        "Atan": {},
        "Sinh": {},
        "Cosh": {},
        "Asin": {"low": -0.9, "high": 0.9},
        "Acos": {"low": -0.9, "high": 0.9},
        "Asinh": {},
        "Acosh": {"low": 1.1, "high": 4.0},
        "Atanh": {"low": -0.9, "high": 0.9},
        "Softmax <axis=-1>": {"bound": 0.04},
        "Softmax <axis=1>": {"bound": 0.04},
        "LogSoftmax <axis=1>": {"bound": 0.04},
        "Hardmax <axis=1>": {"bound": 0.3},
        "Identity": {},
    }.items()
] + [
    Case(
        "Clip",
        "(float[2,3,5] x) => (float[2,3,5] y) <float lo = {-0.5}, float hi = {1.2}> { y = Clip (x, lo, hi) }",
    ),
    Case("PRelu", "(float[2,3,4,5] x) => (float[2,3,4,5] y) <float[3,1,1] w> { y = PRelu (x, w) }"),
    Case(
        "PRelu of rank 5",
        "(float[2,3,4,2,5] x) => (float[2,3,4,2,5] y) <float[3,1,1,1] w> { y = PRelu (x, w) }",
    ),
    *(
        Case(
            f"Pow {p}",
            f"(float[3,5] x) => (float[3,5] y) <float p = {{{p}}}> {{ y = Pow (x, p) }}",
            low=0.2,
            bound=0.03,
        )
        for p in ("2.0", "3.0", "0.5", "-0.5", "1.7")
    ),
    Case(
        "Div",
        "(float[3,5] x, float[3,5] z) => (float[3,5] y) { y = Div (x, z) }",
        low=0.5,
        bound=0.03,
    ),
    Case(
        "Mod of a constant",
        "(float[3,50] x) => (float[3,50] y) <float m = {0.75}> { y = Mod <fmod=1> (x, m) }",
        bound=0.2,
        exact=1e-4,
    ),
    Case(
        "comparisons",
        "(float[3,50] x, float[50] z) => (bool[3,50] y, bool[3,50] q)"
        " { y = Greater (x, z) q = LessOrEqual (x, z) }",
        bound=0.02,
    ),
    Case(
        "Where", "(bool[3,5] c, float[3,5] x, float[5] z) => (float[3,5] y) { y = Where (c, x, z) }"
    ),
    Case(
        "Xor and others",
        "(bool[3,5] a, bool[3,5] b) => (bool[3,5] y)"
        " { c = Xor (a, b) d = And (a, b) e = Not (d) y = Or (c, e) }",
    ),
]

NORMALIZATIONS = [
    Case(
        "InstanceNormalization",
        "(float[2,3,6,7] x) => (float[2,3,6,7] y) <float[3] s, float[3] b>"
        " { y = InstanceNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "InstanceNormalization of one axis",
        "(float[2,3,16] x) => (float[2,3,16] y) <float[3] s, float[3] b>"
        " { y = InstanceNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "GroupNormalization",
        "(float[2,6,5,4] x) => (float[2,6,5,4] y) <float[6] s, float[6] b>"
        " { y = GroupNormalization <num_groups=3> (x, s, b) }",
        bound=0.03,
    ),
    Case(
        "RMSNormalization",
        "(float[2,6,16] x) => (float[2,6,16] y) <float[16] s> { y = RMSNormalization (x, s) }",
        opset=23,
        bound=0.03,
    ),
    Case(
        "LayerNormalization",
        "(float[2,6,16] x) => (float[2,6,16] y) <float[16] s, float[16] b>"
        " { y = LayerNormalization (x, s, b) }",
        bound=0.03,
    ),
    Case("LpNormalization", one("LpNormalization <axis=1>"), bound=0.03),
    Case("LpNormalization 1", one("LpNormalization <axis=2, p=1>"), bound=0.04),
    Case("LRN", one("LRN <size=3, alpha=0.5, beta=0.75>", shape="1,8,4,5"), bound=0.03),
    Case(
        "BatchNormalization",
        "(float[1,4,5,5] x) => (float[1,4,5,5] y)"
        " <float[4] s, float[4] b, float[4] m, float[4] v = {0.5, 1.0, 2.0, 3.0}>"
        " { y = BatchNormalization (x, s, b, m, v) }",
    ),
]


def reduced(name: str, out: str, **known: float) -> Case:
    body = f"(float[2,4,6] x) => (float[{out}] y) <int64[1] a = {{1}}> {{ y = {name} (x, a) }}"
    return Case(name, body, **known)  # type: ignore[arg-type]


REDUCTIONS = [
    *(
        reduced(name, "2,1,6", bound=0.03)
        for name in (
            "ReduceMean",
            "ReduceSum",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSumExp",
        )
    ),
    reduced("ReduceLogSum", "2,1,6", low=0.2, bound=0.03),
    reduced("ReduceProd", "2,1,6", low=0.5, bound=0.06),
    Case(
        "ArgMax of the last of equals",
        "(float[3,9] x) => (int64[3,1] y) { y = ArgMax <axis=1, select_last_index=1> (x) }",
        bound=0.4,
    ),
    Case("CumSum", "(float[2,7] x) => (float[2,7] y) <int64 a = {1}> { y = CumSum (x, a) }"),
    Case(
        "CumSum reversed",
        "(float[7,2] x) => (float[7,2] y) <int64 a = {0}>"
        " { y = CumSum <reverse=1, exclusive=1> (x, a) }",
    ),
    Case(
        "TopK smallest",
        "(float[2,50] x) => (float[2,3] y, int64[2,3] i) <int64[1] k = {3}>"
        " { y, i = TopK <largest=0> (x, k) }",
        bound=0.7,
    ),
]

MOVES = [
    *(
        Case(
            f"Pad {mode}",
            f"(float[1,3,4,5] x) => (float[1,3,7,8] y) <int64[8] p = {{0,0,1,2,0,0,2,1}}>"
            f' {{ y = Pad <mode="{mode}"> (x, p) }}',
        )
        for mode in ("constant", "reflect", "edge", "wrap")
    ),
    Case(
        "Pad of a value",
        "(float[2,3] x) => (float[4,3] y) <int64[4] p = {1,0,1,0}, float v = {1.5}>"
        " { y = Pad (x, p, v) }",
    ),
    Case(
        "Pad by less than nothing",
        "(float[4,5] x) => (float[3,6] y) <int64[4] p = {-1,2,0,-1}> { y = Pad (x, p) }",
    ),
    Case(
        "Slice backwards",
        "(float[3,8] x) => (float[3,3] y) <int64[1] s = {-2}, int64[1] e = {-9}, int64[1] a = {1},"
        " int64[1] t = {-3}> { y = Slice (x, s, e, a, t) }",
    ),
    Case("DepthToSpace", image("DepthToSpace <blocksize=2> (x)", "1,3,10,14", size="1,12,5,7")),
    Case(
        "DepthToSpace CRD",
        image('DepthToSpace <blocksize=2, mode="CRD"> (x)', "1,3,10,14", size="1,12,5,7"),
    ),
    Case("SpaceToDepth", image("SpaceToDepth <blocksize=2> (x)", "1,12,3,4", size="1,3,6,8")),
    Case(
        "Trilu",
        "(float[2,4,5] x) => (float[2,4,5] y) <int64 k = {1}> { y = Trilu <upper=0> (x, k) }",
    ),
    Case(
        "OneHot",
        "(int64[3] x) => (float[3,4] y) <int64 d = {4}, float[2] v = {0.5, 2.0}> { y = OneHot (x, d, v) }",
    ),
    Case("Tile", "(float[2,3] x) => (float[4,9] y) <int64[2] r = {2,3}> { y = Tile (x, r) }"),
    Case(
        "Expand",
        "(float[2,1,3] x) => (float[2,4,3] y) <int64[3] s = {2,4,3}> { y = Expand (x, s) }",
    ),
    Case(
        "Gather from the end",
        "(float[4,5] x) => (float[4,2] y) <int64[2] i = {-1, 2}> { y = Gather <axis=1> (x, i) }",
    ),
    Case(
        "GatherElements",
        "(float[4,5] x, int64[2,5] i) => (float[2,5] y) { y = GatherElements (x, i) }",
    ),
    Case(
        "GatherND",
        "(float[2,3,4] x, int64[2,5,1] i) => (float[2,5,4] y) { y = GatherND <batch_dims=1> (x, i) }",
    ),
    Case(
        "GatherND of constants",
        "(float[2,3,4] x) => (float[2,4] y) <int64[2,2] i = {0, -1, 1, 0}> { y = GatherND (x, i) }",
    ),
    Case(
        "ScatterND of constants",
        "(float[4,3] x, float[2,3] u) => (float[4,3] y) <int64[2,1] i = {2, 0}>"
        " { y = ScatterND (x, i, u) }",
    ),
    Case(
        "ScatterND at run time",
        "(float[4,3] x, int64[1,1] i, float[1,3] u) => (float[4,3] y) { y = ScatterND (x, i, u) }",
    ),
    Case(
        "ScatterND that adds",
        "(float[4,3] x, float[3,3] u) => (float[4,3] y) <int64[3,1] i = {2, 0, 2}>"
        ' { y = ScatterND <reduction="add"> (x, i, u) }',
    ),
    Case(
        "ScatterND that adds at run time",
        "(float[4,3] x, int64[2,1] i, float[2,3] u) => (float[4,3] y)"
        ' { y = ScatterND <reduction="add"> (x, i, u) }',
    ),
    Case(
        "ScatterElements",
        "(float[3,4] x, int64[1,4] i, float[1,4] u) => (float[3,4] y)"
        " { y = ScatterElements <axis=0> (x, i, u) }",
    ),
    *(
        Case(
            f"ScatterElements {how}",
            f"(float[3,4] x, float[2,4] u) => (float[3,4] y) <int64[2,4] i = {{0,1,2,0,0,1,1,2}}>"
            f' {{ y = ScatterElements <axis=0, reduction="{how}"> (x, i, u) }}',
            bound=0.04,
        )
        for how in ("add", "mul", "max", "min")
    ),
]

PRODUCTS = [
    *(
        Case(
            f"Einsum {equation}",
            f"(float[{a}] a, float[{b}] b) => (float[{y}] y)"
            f' {{ y = Einsum <equation="{equation}"> (a, b) }}',
            bound=0.03,
        )
        for equation, a, b, y in (
            ("bhid,bhjd->bhij", "2,3,4,5", "2,3,6,5", "2,3,4,6"),
            ("bchw,bnc->bnhw", "1,4,2,3", "1,5,4", "1,5,2,3"),
            ("bnc,bmc->bnm", "2,3,4", "2,5,4", "2,3,5"),
            ("ij,j->i", "3,4", "4", "3"),
            ("bhwc,hkc->bhwk", "2,3,4,5", "3,6,5", "2,3,4,6"),
            ("i,j->ij", "3", "4", "3,4"),
        )
    ),
    Case(
        "Einsum of one operand",
        '(float[3,4,4] x) => (float[4,3] y) { y = Einsum <equation="bii->ib"> (x) }',
    ),
    Case(
        "MatMul of a constant on the left",
        "(float[2,4,5] x) => (float[2,3,5] y) <float[3,4] w> { y = MatMul (w, x) }",
    ),
    Case("MatMul", "(float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) { y = MatMul (a, b) }"),
]


def grid(mode: str, padding: str, corners: int) -> Case:
    attrs = f'mode="{mode}", padding_mode="{padding}", align_corners={corners}'
    body = (
        f"(float[1,3,6,8] x, float[1,4,5,2] g) => (float[1,3,4,5] y)"
        f" {{ y = GridSample <{attrs}> (x, g) }}"
    )
    bound = {"linear": 0.06, "nearest": 0.4, "cubic": 0.06}[mode]
    return Case(
        f"GridSample {mode} {padding} {corners}", body, low=-1.3, high=1.3, bound=bound, exact=5e-5
    )


GRIDS = [
    grid(m, p, c)
    for m in ("linear", "nearest", "cubic")
    for p in ("zeros", "border", "reflection")
    for c in (0, 1)
]


def cell(name: str, gates: int, directions: int, attrs: str, *, layout: int = 0) -> Case:
    x, y = ("3,5,4", f"3,5,{directions},6") if layout else ("5,3,4", f"5,{directions},3,6")
    state = f"3,{directions},6" if layout else f"{directions},3,6"
    cells = ", c" if name == "LSTM" else ""
    shown = f", float[{state}] c" if cells else ""
    body = (
        f"(float[{x}] x, float[{state}] h0) => (float[{y}] y, float[{state}] h{shown})"
        f" <float[{directions},{gates * 6},4] w, float[{directions},{gates * 6},6] r,"
        f" float[{directions},{gates * 12}] b>"
        f" {{ y, h{cells} = {name} <hidden_size=6{attrs}> (x, w, r, b, , h0) }}"
    )
    return Case(f"{name}{attrs}", body, low=-1.0, high=1.0, bound=0.03)


RECURRENT = [
    cell("LSTM", 4, 1, ""),
    cell("LSTM", 4, 1, ', direction="reverse"'),
    cell("LSTM", 4, 2, ', direction="bidirectional"'),
    cell("GRU", 3, 1, ""),
    cell("GRU", 3, 2, ', direction="bidirectional", linear_before_reset=1'),
    cell("RNN", 1, 1, ', activations=["Relu"]'),
]

ATTENTION = [
    Case(
        "Attention of heads",
        "(float[1,2,4,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,2,4,8] y)"
        " { y = Attention (q, k, v) }",
        opset=23,
        bound=0.05,
    ),
    Case(
        "causal Attention",
        "(float[1,2,5,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,2,5,8] y)"
        " { y = Attention <is_causal=1> (q, k, v) }",
        opset=23,
        bound=0.08,
    ),
    Case(
        "grouped Attention",
        "(float[1,4,4,8] q, float[1,2,5,8] k, float[1,2,5,8] v) => (float[1,4,4,8] y)"
        " { y = Attention (q, k, v) }",
        opset=23,
        bound=0.05,
    ),
    Case(
        "Attention with a mask",
        "(float[1,4,16] q, float[1,5,16] k, float[1,5,16] v, bool[4,5] m)"
        " => (float[1,4,16] y) { y = Attention <q_num_heads=2, kv_num_heads=2> (q, k, v, m) }",
        opset=23,
        bound=0.08,
    ),
]

CASES = [
    *POOLS,
    *CONVOLUTIONS,
    *_resizes(),
    *FUNCTIONS,
    *NORMALIZATIONS,
    *REDUCTIONS,
    *MOVES,
    *PRODUCTS,
    *GRIDS,
    *RECURRENT,
    *ATTENTION,
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    model = parsed(case.body, opset=case.opset)
    samples = drawn(model, low=case.low, high=case.high, count=3)
    for names, lowered in every_lowering(model, samples):
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    model = parsed(case.body, opset=case.opset)
    samples = drawn(model, low=case.low, high=case.high, count=3)
    for names, lowered in every_lowering(model, samples):
        assert lowered.integer_error() <= case.bound, names
