"""The length of a pair: products, sum and root, of which integers make one look-up."""

from __future__ import annotations

from splitter.graph import Unit
from splitter.ops.elementwise import two
from splitter.ops.registry import Emitter, Lowering, Op


def emit_magnitude(e: Emitter, unit: Unit) -> None:
    a, b = (e.value(name) for name in unit.inputs)
    total = two(e, "ADD", two(e, "MUL", a, a), two(e, "MUL", b, b))
    e.finish("SQRT", unit, [total])


OPS = (Op("Magnitude", (Lowering("root", emit_magnitude),), commute="elementwise"),)
