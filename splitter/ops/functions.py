"""Functions of one variable, element by element, exact in float.

Each is written with float operators that every runtime has. Where one needs several, or one without
an integer kernel, `quantize` evaluates the whole unit as ONE table look-up (quantize/functions.py),
so accuracy in integers does not depend on the number of operators here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from splitter.graph import Unit
from splitter.ops.elementwise import one, two
from splitter.ops.registry import Emitter, Lowering, Op

Build = Callable[[Emitter, str, Unit], str]

FLOAT_MAX = float(np.finfo(np.float32).max)


def function(name: str, build: Build, *, lowering: str = "") -> Op:
    """An operator whose result `build` makes from the tensor of its one input."""

    def emit(e: Emitter, unit: Unit) -> None:
        e.bind(build(e, e.value(unit.inputs[0]), unit), unit)

    return Op(name, (Lowering(lowering or name.lower(), emit),), commute="elementwise")


def scaled(e: Emitter, x: str, factor: float) -> str:
    return x if factor == 1.0 else two(e, "MUL", x, e.const(factor, "factor"))


def shifted(e: Emitter, x: str, offset: float) -> str:
    return x if offset == 0.0 else two(e, "ADD", x, e.const(offset, "offset"))


def compare(e: Emitter, code: str, x: str, bound: float) -> str:
    """x compared with a constant -> bool."""
    limit = e.const(bound, "bound", dtype=e.dtype(x))
    return e.op(code, [x, limit], e.shape(x), dtype="bool", hint=code.lower())


def select(e: Emitter, condition: str, a: str, b: str) -> str:
    """a where the condition holds, else b; one of them has the condition's shape."""
    shape = e.shape(condition)
    return e.op("SELECT_V2", [condition, a, b], shape, dtype=e.dtype(a), hint="chosen")


def negative_part(e: Emitter, x: str) -> str:
    return two(e, "MINIMUM", x, e.const(0.0, "zero"), hint="negative")


def _attr(unit: Unit, name: str, default: float) -> float:
    value = unit.attrs.get(name)
    return default if value is None else float(value)


# -- rectifiers -------------------------------------------------------------------------------


def leaky_relu(e: Emitter, x: str, unit: Unit) -> str:
    return e.op("LEAKY_RELU", [x], e.shape(x), hint="leaky", alpha=_attr(unit, "alpha", 0.01))


def _exponential(e: Emitter, x: str, *, positive: float, negative: float, width: float) -> str:
    """positive * x above 0, negative * (exp(x / width) - 1) below."""
    below = one(e, "ELU", scaled(e, negative_part(e, x), 1.0 / width))
    above = scaled(e, one(e, "RELU", x), positive)
    return two(e, "ADD", above, scaled(e, below, negative))


def elu(e: Emitter, x: str, unit: Unit) -> str:
    alpha = _attr(unit, "alpha", 1.0)
    if alpha == 1.0:
        return one(e, "ELU", x)
    return _exponential(e, x, positive=1.0, negative=alpha, width=1.0)


def celu(e: Emitter, x: str, unit: Unit) -> str:
    alpha = _attr(unit, "alpha", 1.0)
    return _exponential(e, x, positive=1.0, negative=alpha, width=alpha)


def selu(e: Emitter, x: str, unit: Unit) -> str:
    alpha = _attr(unit, "alpha", 1.67326319217681884765625)
    gamma = _attr(unit, "gamma", 1.05070102214813232421875)
    return _exponential(e, x, positive=gamma, negative=gamma * alpha, width=1.0)


def thresholded_relu(e: Emitter, x: str, unit: Unit) -> str:
    above = compare(e, "GREATER", x, _attr(unit, "alpha", 1.0))
    return select(e, above, x, e.const(0.0, "zero"))


def shrink(e: Emitter, x: str, unit: Unit) -> str:
    bias, bound = _attr(unit, "bias", 0.0), _attr(unit, "lambd", 0.5)
    above, below = compare(e, "GREATER", x, bound), compare(e, "LESS", x, -bound)
    low = select(e, below, shifted(e, x, bias), e.const(0.0, "zero"))
    return select(e, above, shifted(e, x, -bias), low)


def hard_sigmoid(e: Emitter, x: str, unit: Unit) -> str:
    line = shifted(e, scaled(e, x, _attr(unit, "alpha", 0.2)), _attr(unit, "beta", 0.5))
    low = two(e, "MAXIMUM", line, e.const(0.0, "low"))
    return two(e, "MINIMUM", low, e.const(1.0, "high"))


# -- smooth gates -----------------------------------------------------------------------------


def softplus(e: Emitter, x: str, unit: Unit) -> str:
    """max(x, 0) + log(1 + exp(-|x|))."""
    decay = one(e, "EXP", one(e, "NEG", one(e, "ABS", x)))
    return two(e, "ADD", one(e, "RELU", x), one(e, "LOG", shifted(e, decay, 1.0)))


def softsign(e: Emitter, x: str, unit: Unit) -> str:
    return two(e, "DIV", x, shifted(e, one(e, "ABS", x), 1.0))


def mish(e: Emitter, x: str, unit: Unit) -> str:
    """x * tanh(log(1 + exp(x))) = x * n / (n + 2) with n = exp(x) * (exp(x) + 2); the exponent
    stops at 20, where the factor is 1 in float32."""
    growth = one(e, "EXP", two(e, "MINIMUM", x, e.const(20.0, "limit")))
    n = two(e, "MUL", growth, shifted(e, growth, 2.0))
    return two(e, "MUL", x, two(e, "DIV", n, shifted(e, n, 2.0)))


def swish(e: Emitter, x: str, unit: Unit) -> str:
    gate = one(e, "LOGISTIC", scaled(e, x, _attr(unit, "alpha", 1.0)))
    return two(e, "MUL", x, gate)


def erf(e: Emitter, x: str, unit: Unit) -> str:
    """(2 gelu(z) - z) / z with z = x sqrt(2): GELU is the one operator that computes erf."""
    z = scaled(e, x, sqrt(2.0))
    odd = two(e, "SUB", scaled(e, one(e, "GELU", z), 2.0), z)
    divisor = select(e, compare(e, "EQUAL", z, 0.0), e.const(1.0, "one"), z)
    return two(e, "DIV", odd, divisor)


# -- signs and classes ------------------------------------------------------------------------


def sign(e: Emitter, x: str, unit: Unit) -> str:
    """(x > 0) - (x < 0)."""
    sides = [
        e.op("CAST", [compare(e, code, x, 0.0)], e.shape(x), dtype=e.dtype(x), hint="side")
        for code in ("GREATER", "LESS")
    ]
    return two(e, "SUB", sides[0], sides[1])


def is_nan(e: Emitter, x: str, unit: Unit) -> str:
    return e.op("NOT_EQUAL", [x, x], e.shape(x), dtype="bool", hint="nan")


def is_inf(e: Emitter, x: str, unit: Unit) -> str:
    """TFLite's float arithmetic saturates at the largest float, which therefore counts."""
    positive = unit.attrs.get("detect_positive", 1)
    negative = unit.attrs.get("detect_negative", 1)
    if positive and negative:
        return compare(e, "GREATER_EQUAL", one(e, "ABS", x), FLOAT_MAX)
    if positive:
        return compare(e, "GREATER_EQUAL", x, FLOAT_MAX)
    return compare(e, "LESS_EQUAL", x, -FLOAT_MAX if negative else -np.inf)


# -- trigonometry -----------------------------------------------------------------------------


def tan(e: Emitter, x: str, unit: Unit) -> str:
    return two(e, "DIV", one(e, "SIN", x), one(e, "COS", x))


def _atan2(e: Emitter, y: str, x: str) -> str:
    return two(e, "ATAN2", y, x)


def _rest(e: Emitter, x: str) -> str:
    """sqrt((1 - x) (1 + x))."""
    product = two(e, "MUL", two(e, "SUB", e.const(1.0, "one"), x), shifted(e, x, 1.0))
    return one(e, "SQRT", product)


def atan(e: Emitter, x: str, unit: Unit) -> str:
    """ATAN2 takes no broadcast: the ones have the shape of x."""
    return _atan2(e, x, e.const(np.ones(e.shape(x)), "ones"))


def asin(e: Emitter, x: str, unit: Unit) -> str:
    return _atan2(e, x, _rest(e, x))


def acos(e: Emitter, x: str, unit: Unit) -> str:
    return _atan2(e, _rest(e, x), x)


def _exponentials(e: Emitter, x: str, code: str) -> str:
    both = two(e, code, one(e, "EXP", x), one(e, "EXP", one(e, "NEG", x)))
    return scaled(e, both, 0.5)


def sinh(e: Emitter, x: str, unit: Unit) -> str:
    return _exponentials(e, x, "SUB")


def cosh(e: Emitter, x: str, unit: Unit) -> str:
    return _exponentials(e, x, "ADD")


def asinh(e: Emitter, x: str, unit: Unit) -> str:
    """sign(x) log(|x| + sqrt(x^2 + 1))."""
    root = one(e, "SQRT", shifted(e, two(e, "MUL", x, x), 1.0))
    size = one(e, "LOG", two(e, "ADD", one(e, "ABS", x), root))
    return two(e, "MUL", sign(e, x, unit), size)


def acosh(e: Emitter, x: str, unit: Unit) -> str:
    """log(x + sqrt((x - 1) (x + 1)))."""
    root = one(e, "SQRT", two(e, "MUL", shifted(e, x, -1.0), shifted(e, x, 1.0)))
    return one(e, "LOG", two(e, "ADD", x, root))


def atanh(e: Emitter, x: str, unit: Unit) -> str:
    ratio = two(e, "DIV", shifted(e, x, 1.0), two(e, "SUB", e.const(1.0, "one"), x))
    return scaled(e, one(e, "LOG", ratio), 0.5)


OPS = (
    function("LeakyRelu", leaky_relu, lowering="leaky_relu"),
    function("Elu", elu),
    function("Celu", celu),
    function("Selu", selu),
    function("ThresholdedRelu", thresholded_relu),
    function("Shrink", shrink),
    function("HardSigmoid", hard_sigmoid, lowering="clipped_line"),
    function("HardSwish", lambda e, x, unit: one(e, "HARD_SWISH", x), lowering="hard_swish"),
    function("Softplus", softplus),
    function("Softsign", softsign),
    function("Mish", mish),
    function("Swish", swish),
    function("Erf", erf, lowering="gelu"),
    function("Sign", sign),
    function("IsNaN", is_nan),
    function("IsInf", is_inf),
    function("Tan", tan),
    function("Atan", atan),
    function("Asin", asin),
    function("Acos", acos),
    function("Sinh", sinh),
    function("Cosh", cosh),
    function("Asinh", asinh),
    function("Acosh", acosh),
    function("Atanh", atanh),
)
