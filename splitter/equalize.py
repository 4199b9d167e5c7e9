"""Channels of like size: factors that cancel are moved so that no channel dwarfs the others.

A tensor has one int8 scale, so one channel that is 40 times as large as the rest leaves them three
bits. What one linear layer multiplies, the next may divide: the same function in real numbers
(cross-layer equalization, Nagel et al. 2019, arXiv:1906.04721; for norms and attention as in
SmoothQuant, arXiv:2211.10438, but from the weights alone). Decides the factors; changes constants
only, never the units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from splitter.channels import Reader, channel_readers
from splitter.graph import Array, Graph, Unit

LIMIT = 1e3
"""Largest factor; beyond it a channel is as good as absent."""


@dataclass(frozen=True, slots=True)
class Factors:
    """Divide channel c of the maker's output by factors[c]."""

    maker: Unit
    factors: Array


def equalize(graph: Graph) -> Graph:
    """The graph with other constants: the same function, output channels of like size."""
    constants = dict(graph.constants)
    found = {unit.name: channel_readers(graph, unit) for unit in graph.units if _makes(graph, unit)}
    for name, readers in found.items():
        maker = graph.unit[name]
        if not readers:
            continue
        if all(reader.kind == "weights" for reader in readers):
            _balance_weights(graph, constants, maker, readers)
    for query, key, pairs in _score_pairs(graph, found):
        _balance_scores(constants, query, key, pairs)
    return replace(graph, constants=constants)


def _makes(graph: Graph, unit: Unit) -> bool:
    """Whether the unit's output channels can be scaled by its constants, which it alone reads."""
    if unit.op not in ("FullyConnected", "Conv", "LayerNormalization"):
        return False
    if unit.attrs.get("activation", "") not in ("", "RELU"):
        return False
    if unit.op == "Conv" and len(graph.shape(unit.inputs[0])) != 4:
        return False
    own = [name for name in unit.inputs[1:] if name]
    private = all(len(graph.consumers[name]) == 1 and name in graph.constants for name in own)
    last = unit.op != "LayerNormalization" or _over_last_axis(graph, unit)
    return private and last and bool(own)


def _over_last_axis(graph: Graph, unit: Unit) -> bool:
    return int(unit.attrs.get("axis", -1)) % len(graph.shape(unit.inputs[0])) == (
        len(graph.shape(unit.inputs[0])) - 1
    )


def _size_of_outputs(constants: Mapping[str, Array], unit: Unit) -> Array:
    """How large each output channel is, up to a common factor, if inputs are about 1."""
    weight = constants[unit.inputs[1]].astype(np.float64)
    bias = constants[unit.inputs[2]] if len(unit.inputs) > 2 and unit.inputs[2] else 0.0
    if unit.op == "LayerNormalization":
        return np.asarray(np.abs(weight) * 3 + np.abs(bias))  # a normal variable rarely exceeds 3
    rows = weight.reshape(len(weight), -1)
    return np.asarray(3 * np.sqrt(np.square(rows).sum(1)) + np.abs(bias))


def _size_of_columns(constants: Mapping[str, Array], reader: Reader, channels: int) -> Array:
    """The largest weight that each channel meets."""
    weight = np.abs(constants[reader.unit.inputs[1]].astype(np.float64))
    columns = weight.max(0) if weight.ndim == 2 else weight.max((0, 2, 3))
    sizes = np.zeros(channels)
    known = reader.channels >= 0
    np.maximum.at(sizes, reader.channels[known], columns[known])
    return sizes


def _usable(factors: Array) -> Array:
    """Positive, finite, with geometric mean 1."""
    factors = np.where(np.isfinite(factors) & (factors > 0), factors, 1.0)
    factors = factors / np.exp(np.log(factors).mean())
    return np.asarray(np.clip(factors, 1 / LIMIT, LIMIT))


def _balance_weights(
    graph: Graph, constants: dict[str, Array], maker: Unit, readers: Iterable[Reader]
) -> None:
    outputs = _size_of_outputs(constants, maker)
    columns = [_size_of_columns(constants, reader, len(outputs)) for reader in readers]
    with np.errstate(all="ignore"):
        factors = _usable(np.sqrt(outputs / np.max(columns, axis=0)))
    _divide_outputs(constants, maker, factors)
    for reader in readers:
        _multiply_columns(constants, reader, factors)


def _divide_outputs(constants: dict[str, Array], unit: Unit, factors: Array) -> None:
    for name in unit.inputs[1:3]:
        if name:
            data = constants[name]
            shaped = factors.reshape(-1, *(1 for _ in range(data.ndim - 1)))
            constants[name] = (data / shaped).astype(data.dtype)


def _multiply_columns(constants: dict[str, Array], reader: Reader, factors: Array) -> None:
    name = reader.unit.inputs[1]
    data = constants[name]
    column = np.where(reader.channels >= 0, factors[reader.channels], 1.0)
    shaped = column if data.ndim == 2 else column.reshape(1, -1, 1, 1)
    constants[name] = (data * shaped).astype(data.dtype)


def _score_pairs(
    graph: Graph, found: Mapping[str, tuple[Reader, ...]]
) -> Iterator[tuple[Unit, Unit, Array]]:
    """(query maker, key maker, [n, 2] channels that meet) for each product of two layers."""
    sides: dict[str, dict[str, tuple[Unit, Array]]] = {}
    for name, readers in found.items():
        if len(readers) == 1 and readers[0].kind in ("left", "right"):
            side = sides.setdefault(readers[0].unit.name, {})
            side[readers[0].kind] = (graph.unit[name], readers[0].channels)
    for both in sides.values():
        if len(both) != 2:
            continue
        (query, a), (key, b) = both["left"], both["right"]
        if a.size != b.size:
            continue
        pairs = np.unique(np.stack([a, b], 1), axis=0)
        one_to_one = len(np.unique(pairs[:, 0])) == len(pairs) == len(np.unique(pairs[:, 1]))
        if one_to_one and pairs.min() >= 0 and query.op == key.op == "FullyConnected":
            yield query, key, pairs


def _balance_scores(constants: dict[str, Array], query: Unit, key: Unit, pairs: Array) -> None:
    q, k = _size_of_outputs(constants, query), _size_of_outputs(constants, key)
    with np.errstate(all="ignore"):
        shared = _usable(np.sqrt(q[pairs[:, 0]] / k[pairs[:, 1]]))
    for unit, column, factors in ((query, 0, shared), (key, 1, 1 / shared)):
        whole = np.ones(len(q) if column == 0 else len(k))
        whole[pairs[:, column]] = factors
        _divide_outputs(constants, unit, whole)
