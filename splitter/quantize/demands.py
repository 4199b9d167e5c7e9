"""What a rule file asks of quantization parameters, as the quantizer's demands."""

from __future__ import annotations

from splitter.quantize.parameters import Demands
from splitter.rules.schema import Target


def demands_of(target: Target) -> Demands:
    """Reads the limits on `input_zero_points` and `scales_equal` of every operator."""
    zero, equal = set(), set()
    for code in target.operators:
        for _, limit in target.limits(code):
            if limit.fact == "input_zero_points" and limit.equals == 0:
                zero.add(code)
            if limit.fact == "scales_equal" and limit.equals is True:
                equal.add(code)
    return Demands(frozenset(zero), frozenset(equal))
