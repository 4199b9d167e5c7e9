"""Plans as if the NPU took something: an operator on the user's word, or units by name.

Decides what a name given to --assume means, and by which lowering an assumed unit would run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from splitter.diagnostics import SplitterError, nearest
from splitter.explain.kinds import cannot_write
from splitter.graph import Graph
from splitter.ops import OPS
from splitter.plan import Support, Verdict
from splitter.rules.mistakes import DIALECTS
from splitter.rules.schema import Target


def read_assumed(target: Target, names: Sequence[str]) -> frozenset[str]:
    """Operators of the target's dialect ("GELU"), or of this tool ("TopK"), in any case.

    Raises SplitterError for names that are neither, and for a target whose file has no figures of
    an NPU.
    """
    if names and target.latency.npu is None:
        raise SplitterError(
            f"{target.name} has no figures of an NPU, so nothing can be gained by it",
            where="--assume",
        )
    dialect = DIALECTS[target.dialect]
    known = {name.casefold(): name for name in (*OPS, *dialect.codes())}
    wrong = [name for name in names if name.casefold() not in known]
    if wrong:
        upper = target.dialect == "tflite"
        near = "; ".join(nearest(n.upper() if upper else n, dialect.codes()) for n in wrong)
        raise SplitterError(
            f"no such {dialect.name} operator: {', '.join(wrong)}", where="--assume", hint=near
        )
    return frozenset(known[name.casefold()] for name in names)


def taken(support: Support, units: Collection[str]) -> Support:
    """The same verdicts, but these units fit: by the lowering that breaks the fewest rules."""
    forced = {name: Verdict(_least(support, name)) for name in units}
    return replace(support, npu={**support.npu, **forced})


def refused(graph: Graph, support: Support) -> frozenset[str]:
    """Units that do not fit the NPU."""
    return frozenset(unit.name for unit in graph.units if not support.npu[unit.name].fits)


def _least(support: Support, unit: str) -> str:
    """An attempt is a lowering where the rules speak of TFLite; else the lowering of the CPU."""
    fallback = support.cpu[unit].lowering
    attempts = support.npu[unit].reasons
    lowerings = {
        tried: why for tried, why in attempts.items() if " " not in tried and not cannot_write(why)
    }
    return min(lowerings, key=lambda tried: len(lowerings[tried]), default=fallback)
