"""The stages that `split explain` needs, from a file to an explanation. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from splitter.equalize import equalize
from splitter.explain import assume, explain
from splitter.explaintext import Explained
from splitter.layout import layout
from splitter.model import load
from splitter.normalize import normalize
from splitter.partition import plan
from splitter.support import judge
from splitter.targets import load_target


def explanation(
    path: Path,
    target_name: str,
    *,
    node: str = "",
    assumed: Sequence[str] = (),
    trust: str = "proxy",
    shapes: Mapping[str, tuple[int, ...]] = {},
) -> Explained:
    """Raises SplitterError for what the user must change in the file or the options."""
    target = load_target(target_name)
    other = assume(target, assumed) if assumed else target
    graph = equalize(layout(normalize(load(path), shapes=shapes)))
    support = judge(graph, target, trust=trust)
    before = plan(graph, support, target)[0]
    if not assumed:
        kinds = explain(graph, support, target, before, name=node)
        return Explained(target, before, kinds)
    support = judge(graph, other, trust=trust)
    after = plan(graph, support, other)[0]
    kinds = explain(graph, support, other, after, name=node)
    return Explained(target, before, kinds, tuple(assumed), after)
