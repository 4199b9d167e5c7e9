"""Every operator the writer knows, written, allocated and run in the real runtime, type by type.

Which pairs of operator and type have a kernel was measured on ai-edge-litert 2.3.0
(docs/kernels.md); a wrong operator version or a missing option makes the runtime refuse the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from splitter.tflite.read import read
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

SCALES = {
    "int8": Quantization((0.05,), (3,)),
    "uint8": Quantization((0.05,), (131,)),
    "int16": Quantization((0.001,), (0,)),
}
F = "float32"
F8 = ("float32", "int8")
F816 = ("float32", "int8", "int16")
F8I = ("float32", "int8", "int32")
FI = ("float32", "int32")
ALL = ("float32", "int8", "int16", "int32")


@dataclass(frozen=True)
class Case:
    """An operator: shapes are operands of the type under test, arrays are constants as they are.

    out: shapes of the outputs. made: their types where they are not the type under test.
    fixed: output parameters that the kernel demands, by type.
    """

    code: str
    operands: Sequence[Any]
    out: Sequence[tuple[int, ...]]
    types: Sequence[str]
    options: dict[str, Any] = field(default_factory=dict)
    made: Sequence[str] = ()
    fixed: dict[str, Quantization] = field(default_factory=dict)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


S = (1, 4, 6, 3)
UNARY = {
    F816: ("EXP", "LOG", "SQRT", "RSQRT", "GELU", "RELU", "RELU6", "LEAKY_RELU"),
    ALL: ("ABS", "NEG"),
    F8: ("HARD_SWISH", "ELU", "RELU_N1_TO_1", "RELU_0_TO_1"),
    (F,): ("SIN", "COS", "FLOOR", "CEIL", "ROUND", "SQUARE"),
}
BINARY = {
    ALL: ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "FLOOR_DIV"),
    F8I: ("SQUARED_DIFFERENCE",),
    FI: ("POW", "FLOOR_MOD"),
}
SOFT = {
    "int8": Quantization((1 / 256,), (-128,)),
    "int16": Quantization((1 / 32768,), (0,)),
}
TANH = {"int8": Quantization((1 / 128,), (0,)), "int16": SOFT["int16"]}

CASES: list[Case] = [
    *(Case(code, [S], [S], types) for types, codes in UNARY.items() for code in codes),
    *(Case(code, [S, S], [S], types) for types, codes in BINARY.items() for code in codes),
    # Broadcast of rank 5 needs its own version for some of these.
    *(
        Case(code, [(2, 1, 2, 3, 4), (1, 3, 2, 3, 4)], [(2, 3, 2, 3, 4)], F8)
        for code in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
    ),
    Case("PRELU", [S, (1, 1, 3)], [S], F816),
    Case("TANH", [S], [S], F816, fixed=TANH),
    Case("LOGISTIC", [S], [S], F816, fixed=SOFT),
    Case("SOFTMAX", [S], [S], F816, fixed=SOFT),
    Case("LOG_SOFTMAX", [S], [S], F8, fixed={"int8": Quantization((16 / 256,), (127,))}),
    *(
        Case(code, [S, i32(1, 2)], [(1, 1, 1, 3)], ALL, {"keep_dims": True})
        for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
    ),
    Case("REDUCE_ANY", [S, i32(1)], [(1, 6, 3)], ("bool",)),
    Case("REDUCE_ALL", [S, i32(1)], [(1, 6, 3)], ("bool",)),
    Case("BATCH_MATMUL", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], F816),
    Case("BATCH_MATMUL", [(2, 3, 4), (2, 5, 4)], [(2, 3, 5)], F816, {"adj_y": True}),
    Case("TRANSPOSE", [(2, 3, 4), i32(2, 0, 1)], [(4, 2, 3)], (*ALL, "bool")),
    Case("TRANSPOSE", [(1, 2, 3, 1, 2), i32(4, 0, 1, 3, 2)], [(2, 1, 2, 1, 3)], ALL),
    Case("TRANSPOSE", [(1, 2, 3, 1, 2, 2), i32(5, 4, 0, 1, 3, 2)], [(2, 2, 1, 2, 1, 3)], ALL),
    Case("RESHAPE", [S, i32(6, 12)], [(6, 12)], (*ALL, "bool")),
    Case("RESHAPE", [S], [(6, 12)], F8),
    Case("SQUEEZE", [(1, 3, 1)], [(3,)], F8I, {"squeeze_dims": (0, 2)}),
    Case("EXPAND_DIMS", [(3, 4), i32(1)], [(3, 1, 4)], F8I),
    Case("CONCATENATION", [S, S], [(1, 8, 6, 3)], ALL, {"axis": 1}),
    Case("PACK", [(3, 4), (3, 4)], [(3, 2, 4)], ALL, {"axis": 1}),
    Case("UNPACK", [(3, 2, 4)], [(3, 4), (3, 4)], (*ALL, "bool"), {"axis": 1}),
    Case("SPLIT", [np.array(1, np.int32), S], [(1, 2, 6, 3)] * 2, ALL),
    Case("SPLIT_V", [S, i32(1, 3), np.array(1, np.int32)], [(1, 1, 6, 3), (1, 3, 6, 3)], F8),
    Case("SLICE", [S, i32(0, 1, 2, 0), i32(1, 2, 3, 3)], [(1, 2, 3, 3)], ALL),
    Case("SLICE", [(1, 2, 2, 2, 3), i32(0, 0, 1, 0, 0), i32(1, 2, 1, 2, 3)], [(1, 2, 1, 2, 3)], F8),
    Case(
        "STRIDED_SLICE",
        [S, i32(0, 3, 0, 0), i32(1, 0, 6, 3), i32(1, -1, 2, 1)],
        [(1, 4, 3, 3)],
        (*ALL, "bool"),
        {"end_mask": 2},
    ),
    Case(
        "STRIDED_SLICE",
        [(4, 3), i32(1, 0), i32(2, 3), i32(1, 1)],
        [(3,)],
        F8,
        {"shrink_axis_mask": 1},
    ),
    Case("GATHER", [(4, 3), i32(2, 0)], [(2, 3)], (*ALL, "bool")),
    Case("GATHER", [(4, 3), i32(2, 0)], [(4, 2)], F8, {"axis": 1}),
    Case(
        "GATHER",
        [(2, 4, 3), i32(2, 0, 1, 1).reshape(2, 2)],
        [(2, 2, 3)],
        F8,
        {"axis": 1, "batch_dims": 1},
    ),
    Case("GATHER_ND", [(4, 3), i32(2, 0, 1, 1).reshape(2, 2)], [(2,)], ALL),
    Case("SCATTER_ND", [i32(1, 3).reshape(2, 1), (2, 3), i32(5, 3)], [(5, 3)], F8I),
    Case("PAD", [S, i32(0, 0, 1, 2, 0, 1, 0, 0).reshape(4, 2)], [(1, 7, 7, 3)], ALL),
    Case("PAD", [(1, 2, 2, 2, 3), i32(*[0, 1] * 5).reshape(5, 2)], [(2, 3, 3, 3, 4)], F8),
    Case("PADV2", [(3, 4), i32(0, 0, 1, 2).reshape(2, 2), ()], [(3, 7)], ALL),
    Case("MIRROR_PAD", [(3, 4), i32(0, 0, 1, 2).reshape(2, 2)], [(3, 7)], ALL),
    Case("TILE", [(3, 4), i32(2, 1)], [(6, 4)], ALL),
    Case("BROADCAST_TO", [(3, 1), i32(3, 4)], [(3, 4)], ALL),
    Case("REVERSE_V2", [(3, 4), i32(1)], [(3, 4)], (*ALL, "bool")),
    Case("TOPK_V2", [(2, 6), np.array(3, np.int32)], [(2, 3), (2, 3)], ALL, made=("", "int32")),
    Case("ARG_MAX", [(2, 6), i32(1)], [(2,)], F8I, made=("int32",)),
    Case("ARG_MIN", [(2, 6), i32(1)], [(2,)], F8I, made=("int32",)),
    *(
        Case(code, [S, S], [S], ALL, made=("bool",))
        for code in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    ),
    Case("LOGICAL_AND", [S, S], [S], ("bool",)),
    Case("LOGICAL_OR", [S, S], [S], ("bool",)),
    Case("LOGICAL_NOT", [S], [S], ("bool",)),
    Case("SELECT", [np.array([True, False]), (2,), (2,)], [(2,)], ALL),
    Case("SELECT_V2", [np.array([[True], [False]]), (2, 3), (2, 3)], [(2, 3)], ALL),
    Case("WHERE", [S], [S], ("bool",), made=("int64",)),
    Case("CAST", [S], [S], ALL, made=("int32",)),
    Case("CAST", [S], [S], ("float32", "int8", "int16", "bool"), made=("float32",)),
    Case("CAST", [S], [S], ("int32", "float32"), made=("int8",)),
    Case("CAST", [S], [S], ("int64",), made=("int32",)),
    Case("QUANTIZE", [S], [S], ("float32", "int8", "int16", "uint8"), made=("int8",)),
    Case("QUANTIZE", [S], [S], ("float32", "int8", "int16"), made=("int16",)),
    Case("DEQUANTIZE", [S], [S], ("int8", "int16", "uint8"), made=("float32",)),
    *(
        Case(code, [S, i32(8, 12)], [(1, 8, 12, 3)], types, options)
        for code, types in (("RESIZE_BILINEAR", F816), ("RESIZE_NEAREST_NEIGHBOR", ALL))
        for options in ({}, {"half_pixel_centers": True}, {"align_corners": True})
    ),
    *(
        Case(
            code,
            [S],
            [(1, 2, 3, 3)],
            F816,
            {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2},
        )
        for code in ("MAX_POOL_2D", "AVERAGE_POOL_2D")
    ),
    Case("DEPTH_TO_SPACE", [(1, 2, 3, 8)], [(1, 4, 6, 2)], F8I, {"block_size": 2}),
    Case("SPACE_TO_DEPTH", [(1, 4, 6, 2)], [(1, 2, 3, 8)], F8I, {"block_size": 2}),
    Case("SPACE_TO_BATCH_ND", [S, i32(2, 2), i32(0, 0, 0, 0).reshape(2, 2)], [(4, 2, 3, 3)], ALL),
    Case("BATCH_TO_SPACE_ND", [(4, 2, 3, 3), i32(2, 2), i32(0, 0, 0, 0).reshape(2, 2)], [S], ALL),
    Case("CUMSUM", [(3, 4), np.array(1, np.int32)], [(3, 4)], FI, {"exclusive": True}),
    Case("L2_NORMALIZATION", [S], [S], F8, fixed={"int8": Quantization((1 / 128,), (0,))}),
    Case("ONE_HOT", [i32(0, 2), np.array(3, np.int32), (), ()], [(2, 3)], F8I, {"axis": -1}),
    Case("SHAPE", [S], [(4,)], F8, made=("int32",)),
    Case("FILL", [i32(2, 3), ()], [(2, 3)], ALL),
    Case(
        "NON_MAX_SUPPRESSION_V4",
        [(6, 4), (6,), np.array(3, np.int32), np.array(0.5, np.float32), np.array(0, np.float32)],
        [(3,), ()],
        (F,),
        made=("int32", "int32"),
    ),
    Case(
        "NON_MAX_SUPPRESSION_V5",
        [
            (6, 4),
            (6,),
            np.array(3, np.int32),
            np.array(0.5, np.float32),
            np.array(0, np.float32),
            np.array(0, np.float32),
        ],
        [(3,), (3,), ()],
        (F,),
        made=("int32", "float32", "int32"),
    ),
]


def build(case: Case, dtype: str) -> LiteGraph:
    tensors: dict[str, Tensor] = {}
    inputs, operands, outputs = [], [], []
    for place, operand in enumerate(case.operands):
        name = f"in{place}"
        operands.append(name)
        if isinstance(operand, np.ndarray):
            tensors[name] = Tensor(name, operand.shape, operand.dtype.name, operand)
        else:
            inputs.append(name)
            tensors[name] = Tensor(name, operand, dtype, None, SCALES.get(dtype))
    made = [*case.made, *[""] * len(case.out)]
    for place, shape in enumerate(case.out):
        name, kind = f"out{place}", made[place] or dtype
        outputs.append(name)
        scale = case.fixed.get(kind, SCALES.get(kind))
        tensors[name] = Tensor(name, shape, kind, None, scale)
    op = Operator(case.code, tuple(operands), tuple(outputs), case.options)
    return LiteGraph(tuple(inputs), tuple(outputs), tensors, (op,))


def sample(tensor: Tensor, seed: int) -> np.ndarray:
    """Positive numbers, distinct, not zero: every kernel takes them."""
    numbers = np.random.default_rng(seed).permutation(tensor.elements).reshape(tensor.shape)
    if tensor.dtype == "bool":
        return numbers % 2 == 0
    if tensor.dtype == "float32":
        return (0.1 + numbers / tensor.elements).astype(np.float32)
    return (4 + numbers % 100).astype(tensor.dtype)


PAIRS = [
    pytest.param(case, dtype, id=f"{number}-{case.code}-{dtype}")
    for number, case in enumerate(CASES)
    for dtype in case.types
]


@pytest.mark.parametrize(("case", "dtype"), PAIRS)
def test_the_runtime_takes_and_runs_the_operator(case: Case, dtype: str) -> None:
    graph = build(case, dtype)
    model = write(graph)
    feeds = {name: sample(graph.tensors[name], i) for i, name in enumerate(graph.inputs)}
    results = Interpreter(model).run(feeds)
    for name in graph.outputs:
        assert results[name].dtype.name == graph.tensors[name].dtype
        if case.code not in ("WHERE", "NON_MAX_SUPPRESSION_V5"):
            assert results[name].shape == graph.tensors[name].shape


@pytest.mark.parametrize(("case", "dtype"), PAIRS)
def test_what_is_written_is_read_back_and_written_the_same(case: Case, dtype: str) -> None:
    model = write(build(case, dtype))
    assert write(read(model)) == model
