"""The tool's own graph: units over named values, static shapes, channels-last at spatial units.

A unit is one canonical operator (the name of an entry in `splitter.ops`), with the names of the
ONNX nodes it stands for. Values are named as in ONNX wherever they exist there. `layout` makes the
graph, everything after reads it; nothing changes it in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor between units: static shape (elements per axis), numpy dtype name ("float32").

    `axes`: stored axis i is axis axes[i] of the ONNX value of that name; () when as in ONNX.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Unit:
    """One canonical operator. An absent optional input is ""."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OriginNode:
    """A node of the normalized ONNX model; `sources` are nodes of the original file."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The normalized ONNX model that a graph was made of, in ONNX layout and in order.

    values: every value with its shape and type, constants included.
    """

    nodes: tuple[OriginNode, ...]
    values: Mapping[str, Value]
    constants: Mapping[str, Array]
    outputs: tuple[str, ...] = ()

    @cached_property
    def producers(self) -> Mapping[str, OriginNode]:
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[OriginNode, ...]]:
        table: dict[str, list[OriginNode]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    table.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in table.items()}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape


@dataclass(frozen=True)
class Graph:
    """Units in topological order. `values` describes every value, constants included.

    origin: what it was made of, for rules that speak of ONNX; None for a graph made by hand.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Mapping[str, Value]
    constants: Mapping[str, Array]
    units: tuple[Unit, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @cached_property
    def producers(self) -> Mapping[str, Unit]:
        return {name: unit for unit in self.units for name in unit.outputs if name}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Unit, ...]]:
        table: dict[str, list[Unit]] = {name: [] for name in self.values}
        for unit in self.units:
            for name in dict.fromkeys(unit.inputs):
                if name:
                    table[name].append(unit)
        return {name: tuple(units) for name, units in table.items()}

    @cached_property
    def unit(self) -> Mapping[str, Unit]:
        """Units by name."""
        return {unit.name: unit for unit in self.units}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def edges(self) -> Iterator[tuple[str, str, str]]:
        """(producing unit, consuming unit, value), constants and model inputs left out."""
        for value, producer in self.producers.items():
            for consumer in self.consumers[value]:
                yield producer.name, consumer.name, value
