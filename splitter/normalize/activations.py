"""Recognizes activation functions by their values: Gelu, HardSwish, HardSigmoid, Softplus, Mish.

Exporters write these as many different small graphs. A region of elementwise nodes that depends on
one value x and on single constants is a function of x; when it agrees with a known one on a grid,
it is that one. So every order of factors, and Div or Mul, is the same case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from splitter.draft import Array, Draft, Node

GRID = np.concatenate([np.linspace(-12.0, 12.0, 193), np.linspace(-1.0, 1.0, 33)])
TOLERANCE = 2e-6  # absolute, with constants as exporters round them; erf and tanh Gelu differ 5e-4
DEPTH = 6

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, x))


KNOWN: dict[str, tuple[str, dict[str, str], Array]] = {
    "Gelu": ("Gelu", {"approximate": "none"}, 0.5 * GRID * (1 + _erf(GRID / math.sqrt(2)))),
    "Gelu-tanh": ("Gelu", {"approximate": "tanh"}, 0.5 * GRID * (
        1 + np.tanh(math.sqrt(2 / math.pi) * (GRID + 0.044715 * GRID**3)))),
    "HardSwish": ("HardSwish", {}, GRID * np.clip(GRID / 6 + 0.5, 0, 1)),
    "Mish": ("Mish", {}, GRID * np.tanh(_softplus(GRID))),
    "Softplus": ("Softplus", {}, _softplus(GRID)),
}  # fmt: skip

SEEDS = {
    "Erf": ("Gelu",), "Tanh": ("Gelu-tanh", "Mish"), "Clip": ("HardSwish",),
    "HardSigmoid": ("HardSwish",), "Log": ("Softplus",), "Relu": ("HardSwish",),
}  # fmt: skip

Function = Callable[[list[Array], Node, Draft], Array]


def fuse_activations(draft: Draft) -> None:
    for node in draft.nodes:
        if draft.alive(node) and node.op in SEEDS and not node.domain:
            _fuse(draft, node)
    draft.prune()


def _fuse(draft: Draft, seed: Node) -> None:
    """Try the values before the seed as x, the nearest first, and the farthest result after it."""
    for source in _before(draft, seed):
        found = _match(draft, source, seed)
        if found is None:
            continue
        last, region, name = found
        op, attrs, _ = KNOWN[name]
        out, known = last.outputs[0], draft.types[last.outputs[0]]
        sources = tuple(dict.fromkeys(s for node in region for s in node.sources))
        draft.remove(last)
        draft.add(Node(op, [source], [out], dict(attrs), last.name, sources=sources), [known])
        return


def _before(draft: Draft, seed: Node) -> Iterator[str]:
    """Variable values from which the seed may be computed elementwise, nearest first."""
    queue = [seed.inputs[0]]
    seen: set[str] = set()
    for _ in range(DEPTH * 2):
        if not queue:
            return
        value = queue.pop(0)
        if value in seen or value in draft.constants:
            continue
        seen.add(value)
        yield value
        maker = draft.producer.get(value)
        if maker is not None and maker.op in _FUNCTIONS:
            queue.extend(v for v in maker.inputs if v and v not in draft.constants)


def _match(draft: Draft, source: str, seed: Node) -> tuple[Node, list[Node], str] | None:
    """(last node, its region, name) of the largest region after source that is a known function."""
    values: dict[str, Array] = {source: GRID}
    region: list[Node] = []
    best: tuple[Node, list[Node], str] | None = None
    shape = draft.shape(source)
    for node in _region(draft, source):
        inputs = [_value(draft, values, name) for name in node.inputs if name]
        if any(v is None for v in inputs) or draft.shape(node.outputs[0]) != shape:
            continue
        with np.errstate(all="ignore"):
            values[node.outputs[0]] = _FUNCTIONS[node.op](
                [v for v in inputs if v is not None], node, draft
            )
        region.append(node)
        name = _known(values[node.outputs[0]], SEEDS[seed.op])
        needed = _needed(draft, source, node, region) if name else set()
        if seed in needed and _closed(draft, node, needed):
            best = (node, [n for n in region if n in needed], name)
    return best


def _region(draft: Draft, source: str) -> Iterator[Node]:
    """Elementwise nodes after source, breadth first, to a small depth."""
    layer: list[str] = [source]
    seen: set[Node] = set()
    for _ in range(DEPTH + 3):
        following: list[str] = []
        for value in layer:
            for node in draft.users(value):
                if node.op in _FUNCTIONS and not node.domain and node not in seen:
                    variable = [v for v in node.inputs if v and v not in draft.constants]
                    made = {source, *(out for other in seen for out in other.outputs)}
                    if all(v in made for v in variable):
                        seen.add(node)
                        following.append(node.outputs[0])
                        yield node
        layer = [*layer, *following] if following else []
        if not following:
            return


def _value(draft: Draft, values: dict[str, Array], name: str) -> Array | None:
    if name in values:
        return values[name]
    scalar = draft.scalar(name)
    return None if scalar is None else np.asarray(scalar)


def _known(values: Array, names: tuple[str, ...]) -> str:
    if values.shape != GRID.shape or not np.all(np.isfinite(values)):
        return ""
    for name in names:
        expected = KNOWN[name][2]
        if np.all(np.abs(values - expected) <= TOLERANCE * np.maximum(1.0, np.abs(expected))):
            return name
    return ""


def _needed(draft: Draft, source: str, last: Node, region: list[Node]) -> set[Node]:
    """The nodes of the region that the last one is computed from, itself included."""
    needed: set[Node] = set()
    stack = [last]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            makers = [draft.producer.get(v) for v in node.inputs if v != source]
            stack.extend(m for m in makers if m in region)
    return needed


def _closed(draft: Draft, last: Node, needed: set[Node]) -> bool:
    """Whether nothing outside reads what is inside, apart from the result."""
    return all(
        not draft.pinned(node.outputs[0]) and all(u in needed for u in draft.users(node.outputs[0]))
        for node in needed
        if node is not last
    )


def _clip(inputs: list[Array], node: Node, draft: Draft) -> Array:
    low = draft.scalar(node.input(1)) if node.input(1) else None
    high = draft.scalar(node.input(2)) if node.input(2) else None
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    return np.asarray(np.clip(inputs[0], low, high))


def _hard_sigmoid(inputs: list[Array], node: Node, draft: Draft) -> Array:
    alpha, beta = node.attrs.get("alpha", 0.2), node.attrs.get("beta", 0.5)
    return np.asarray(np.clip(inputs[0] * alpha + beta, 0, 1))


_FUNCTIONS: dict[str, Function] = {
    "Add": lambda v, n, d: v[0] + v[1], "Sub": lambda v, n, d: v[0] - v[1],
    "Mul": lambda v, n, d: v[0] * v[1], "Div": lambda v, n, d: v[0] / v[1],
    "Pow": lambda v, n, d: np.power(v[0], v[1]),
    "Erf": lambda v, n, d: _erf(v[0]), "Tanh": lambda v, n, d: np.tanh(v[0]),
    "Relu": lambda v, n, d: np.maximum(v[0], 0), "Clip": _clip, "HardSigmoid": _hard_sigmoid,
    "Exp": lambda v, n, d: np.exp(v[0]), "Log": lambda v, n, d: np.log(v[0]),
    "Softplus": lambda v, n, d: _softplus(v[0]), "Neg": lambda v, n, d: -v[0],
    "Min": lambda v, n, d: np.minimum(v[0], v[1]), "Max": lambda v, n, d: np.maximum(v[0], v[1]),
}  # fmt: skip
