"""Values at a condition's limit and just beyond it: what to try a rule with.

Decides which values are telling. Whether they are taken is for the rules, or a compiler, to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from splitter.rules.schema import Condition

STEPS: Mapping[str, int] = {"kernel_volume_16": 16}
"""Facts that only come in multiples."""

OTHERS: Mapping[str, tuple[Any, ...]] = {
    "dtypes": ("int32", "int16", "float32"),
    "input_dtype": ("int32", "int16"),
    "swap": ("other",),
    "strides": ("2x1", "3x3"),
    "factor": (3, 1.5, 16, 4),
    "weights_dtype": ("int16",),
    "fused_activation": ("RELU",),
    "bias_dtype": ("int64", "int16"),
    "broadcast": ("one", "both"),
    "factor_h": (3, 1.5, 16, 8),
    "factor_w": (3, 1.5, 16, 8),
    "permutation": ("[0, 2, 1, 3]",),
    "axes": ("[1]",),
    "stride_h": (3,),
}
"""Values to try beyond a list or an equality."""


def within(condition: Condition) -> list[Any]:
    """Values at the limit."""
    step = STEPS.get(condition.fact, 1)
    values: list[Any] = [v // step * step for v in (condition.min, condition.max) if v is not None]
    values += [] if condition.equals is None else [condition.equals]
    values += condition.among or ()
    return values + ([] if condition.multiple_of is None else [condition.multiple_of])


def beyond(condition: Condition) -> list[Any]:
    """Values just outside."""
    if isinstance(condition.equals, bool):
        return [not condition.equals]
    step = STEPS.get(condition.fact, 1)
    values = [] if condition.max is None else [condition.max // step * step + step]
    values += [] if condition.min is None else [condition.min - 1]
    values += [] if condition.multiple_of is None else [condition.multiple_of + 1]
    if condition.equals is not None or condition.among is not None:
        others = OTHERS.get(condition.fact) or (int(condition.equals or 0) + 1,)
        values += [value for value in others if not condition.holds(value)][:2]
    return values
