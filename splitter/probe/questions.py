"""Which specimens are tried: every operator in its plain form, every limit at its value and beyond.

Decides what is worth asking; building is `specimens`', answers are the compiler's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from splitter.probe.trials import beyond, within
from splitter.rules.schema import Limit, Target
from splitter.specimens import BUILDERS, UNARY, specimen
from splitter.tflite.facts import facts
from splitter.tflite.types import LiteGraph

GENERAL = "ADD"
"""The operator on which limits on every operator are tried."""

BYTES = 64 << 20
"""Of one specimen; larger ones are not built."""

COMMON: Mapping[str, tuple[Any, ...]] = {
    "dtypes": ("int8", "int16", "int32"),
    "rank": (1, 2, 3, 4, 5),
    "leading": (1, 2),
    "channels": (3, 16),
}
"""What is tried on an operator without limits in the file."""


NO_BIAS = ("bias_dtype", "none")
"""The kernels of convolutions need a bias, so no file is written without one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A specimen: one operator, plain (fact "") or with a fact at a value under conditions."""

    code: str
    fact: str = ""
    value: Any = None
    when: tuple[tuple[str, Any], ...] = ()

    def build(self) -> LiteGraph | None:
        """The graph; None where it cannot be built so, or would be too large."""
        if self.code not in (*BUILDERS, *UNARY) or (self.fact, self.value) == NO_BIAS:
            return None
        want = {**dict(self.when), **({self.fact: self.value} if self.fact else {})}
        try:
            graph = specimen(self.code, want)
            found = facts(graph, graph.operators[0]).get(self.fact)
        except (ValueError, IndexError, ZeroDivisionError, StopIteration):
            return None
        has = self.value in (found if isinstance(found, tuple) else (found,))
        if self.fact and (type(found) is bool) != (type(self.value) is bool):
            has = isinstance(found, tuple) and has
        large = sum(prod(tensor.shape) for tensor in graph.tensors.values()) > BYTES
        return graph if (has or not self.fact) and not large else None


def of_limit(code: str, limit: Limit) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """(at the limit, beyond it)."""
    when = tuple((one.fact, within(one)[0]) for one in limit.when)
    ask = [[Question(code, limit.fact, v, when) for v in f(limit)] for f in (within, beyond)]
    return tuple(ask[0]), tuple(ask[1])


def of_common(code: str) -> Iterator[Question]:
    for fact, values in COMMON.items():
        yield from (Question(code, fact, value) for value in values)


def codes(target: Target) -> tuple[str, ...]:
    """The file's operators, and all others that specimens can be built of."""
    return tuple(sorted({*target.operators, *BUILDERS, *UNARY}))
