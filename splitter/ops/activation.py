"""Activation functions with more than one way to write them."""

from __future__ import annotations

from math import pi, sqrt

from splitter.graph import Unit
from splitter.ops.elementwise import one, two
from splitter.ops.registry import Emitter, Lowering, Op

CUBIC = 0.044715
"""Coefficient of x^3 in the tanh form of GELU (Hendrycks and Gimpel, arXiv:1606.08415)."""


def emit_gelu(e: Emitter, unit: Unit) -> None:
    approximate = unit.attrs.get("approximate", "none") == "tanh"
    e.finish("GELU", unit, [e.value(unit.inputs[0])], approximate=approximate)


def emit_gelu_logistic(e: Emitter, unit: Unit) -> None:
    """x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 x^3)), the tanh form written with LOGISTIC:
    its int8 output has a step of 1/256 where TANH has 1/128."""
    x = e.value(unit.inputs[0])
    factor = 2.0 * sqrt(2.0 / pi)
    square = two(e, "MUL", x, x, hint="square")
    slope = two(e, "MUL", square, e.const(factor * CUBIC, "cubic"), hint="cubic_term")
    slope = two(e, "ADD", slope, e.const(factor, "linear"), hint="slope")
    gate = one(e, "LOGISTIC", two(e, "MUL", x, slope, hint="argument"), hint="gate")
    e.finish("MUL", unit, [x, gate], fused_activation_function="NONE")


OPS = (
    Op(
        "Gelu",
        (
            Lowering("gelu", emit_gelu),
            Lowering("logistic", emit_gelu_logistic, error=5e-4),
        ),
        commute="elementwise",
    ),
)
