"""The one table of operators: canonical ONNX operator name -> everything known of it."""

from __future__ import annotations

from collections.abc import Mapping

from splitter.ops import (
    activation,
    attention,
    conv,
    elementwise,
    linear,
    normalization,
    reduce,
    sample,
    shape,
)
from splitter.ops.registry import Op

FAMILIES = (
    activation, attention, conv, elementwise, linear, normalization, reduce, sample, shape,
)

OPS: Mapping[str, Op] = {op.name: op for family in FAMILIES for op in family.OPS}
