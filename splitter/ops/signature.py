"""What makes two units the same work: repeated layers are looked at once.

Decides that nothing but the operator, its attributes, the types and shapes of its values and small
constants bears on how a unit is written and on what it costs; large constants count by their shape.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from splitter.graph import Graph, Unit

LARGE = 4096
"""Elements from which on a constant is weights, whose values change no operator and no time."""


def signature(graph: Graph, unit: Unit) -> Hashable:
    """Equal for units that any lowering writes alike, names and weights aside."""
    first = {name: index for index, name in reversed(list(enumerate(unit.inputs)))}
    return (
        unit.op,
        plain(unit.attrs),
        tuple((first[name], _value(graph, name)) for name in unit.inputs),
        tuple(_value(graph, name) for name in unit.outputs),
    )


def _value(graph: Graph, name: str) -> Hashable:
    if not name:
        return None
    value = graph.values[name]
    data = graph.constants.get(name)
    if data is None:
        return value.shape, value.dtype, value.axes
    content = data.tobytes() if data.size < LARGE else b""
    return value.shape, value.dtype, value.axes, data.dtype.str, content


def plain(value: Any) -> Hashable:
    """Attributes as something that compares by value."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((str(key), plain(inner)) for key, inner in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(plain(inner) for inner in value)
    return value if isinstance(value, int | float | str | bytes) else repr(value)
