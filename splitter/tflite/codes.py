"""The operator codes of the TFLite schema, for checking names. Decides nothing."""

from __future__ import annotations

from ai_edge_litert import schema_py_generated as schema

CODES: tuple[str, ...] = tuple(
    sorted(name for name in vars(schema.BuiltinOperator) if name.isupper())
)
"""BuiltinOperator names ("CONV_2D"), as in schema.fbs of LiteRT."""
