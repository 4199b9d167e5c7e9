"""Specimens of operators that work element by element."""

from __future__ import annotations

from splitter.specimens.bench import Bench, Shape
from splitter.tflite.options import option_names
from splitter.tflite.types import LiteGraph

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
UNARY = (
    *("ABS", "CAST", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU"),
    *("L2_NORMALIZATION", "LOG", "LOGICAL_NOT", "LOGISTIC", "LOG_SOFTMAX", "NEG", "QUANTIZE"),
    *("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT"),
    *("SQUARE", "TANH"),
)
"""Operators of one input whose output has its shape."""

LOGICAL = ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")


def _full(bench: Bench, rank: int) -> Shape:
    channels = bench.number("channels", 16)
    if "max_dimension" in bench.want:
        channels = bench.number("max_dimension", 16)
    lead = bench.lead
    shape = (*(1,) * max(rank - 4, 0), lead, 2, 2, channels)
    return shape[-rank:] if rank else ()


def binary(bench: Bench) -> LiteGraph:
    kind = bench.get("broadcast", "none" if bench.flag("input_full", True) else "both")
    rank = 0 if bench.flag("scalar", False) else bench.number("rank", 4)
    rank = bench.number("input_rank", bench.number("output_rank", rank))
    full = _full(bench, rank)
    one = (*full[:-2], 1, full[-1]) if rank > 1 else full
    flat = (*full[:-1], 1) if rank else full
    left, right = {"none": (full, full), "one": (full, one), "both": (flat, one)}[kind]
    if bench.code == "PRELU" and "broadcast" not in bench.want and bench.flag("right_vector", True):
        right = (*(1,) * (rank - 1), full[-1])
    if bench.code in LOGICAL:
        bench.dtype = "bool"
    constant = bench.flag("right_constant", bench.code in ("PRELU", "DIV"))
    x, z = bench.data("x", left), bench.data("z", right, constant=constant)
    options = {}
    if "fused_activation_function" in option_names(bench.code):
        options["fused_activation_function"] = str(bench.get("fused_activation", "NONE"))
    made = "bool" if bench.code in COMPARISONS else ""
    return bench.finish((x, z), full, out_dtype=made, **options)


def unary(bench: Bench) -> LiteGraph:
    rank = bench.number("rank", bench.number("input_rank", 4))
    shape = _full(bench, rank)
    if bench.code in LOGICAL:
        bench.dtype = "bool"
    x = bench.data("x", shape)
    if bench.code == "LEAKY_RELU":
        return bench.finish((x,), shape, alpha=0.125)
    return bench.finish((x,), shape)


def select(bench: Bench) -> LiteGraph:
    shape = (1, 2, 2, bench.number("channels", 16))
    inputs = (
        bench.data("c", shape, dtype="bool"),
        bench.data("x", shape),
        bench.data("z", shape),
    )
    return bench.finish(inputs, shape)
