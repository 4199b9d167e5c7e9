"""The one table of operators: canonical ONNX operator name -> everything known of it."""

from __future__ import annotations

from collections.abc import Mapping

from splitter.ops import (
    activation,
    attention,
    average_pool,
    blocks,
    boxes,
    conv,
    conv_transpose,
    einsum,
    elementwise,
    feature_normalization,
    functions,
    geometry,
    integers,
    linear,
    magnitude,
    max_pool,
    normalization,
    quantized,
    recurrent,
    reduce,
    resize,
    rotary,
    sample,
    scaled_attention,
    scan,
    scatter,
    shape,
)
from splitter.ops.registry import Op

FAMILIES = (
    activation, attention, average_pool, blocks, boxes, conv, conv_transpose, einsum, elementwise,
    feature_normalization, functions, geometry, integers, linear, magnitude, max_pool,
    normalization, quantized, recurrent, reduce, resize, rotary, sample, scaled_attention, scan,
    scatter, shape,
)  # fmt: skip

OPS: Mapping[str, Op] = {op.name: op for family in FAMILIES for op in family.OPS}
