"""ONNX in, ONNX out, same numbers: static shapes, constants folded, one canonical form.

Decides the form later stages see. Leaves layout and units to `layout`. Each pass is one file and
works on a `Draft`; PASSES is the order with its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


from splitter.draft import Draft
from splitter.graph import Value
from splitter.model import Model
from splitter.normalize.bind import bind_shapes
from splitter.normalize.canonical import canonicalize
from splitter.normalize.exchange import to_draft, to_proto
from splitter.normalize.fold import fold_constants, require_static
from splitter.normalize.noops import remove_noops


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewrite and why it stands where it stands."""

    run: Callable[[Draft], None]
    reason: str


PASSES: tuple[Pass, ...] = (
    Pass(canonicalize, "first: every other pass knows one form of each operator"),
    Pass(fold_constants, "shapes are known from here on; If branches and Shape chains are gone"),
    Pass(require_static, "what is still dynamic is the user's to change"),
    Pass(remove_noops, "fewer patterns for the fusions; all changes of shape are Reshape"),
)


def normalize(model: Model, *, shapes: Mapping[str, tuple[int, ...]] = {}) -> Model:
    """The model in canonical form. The given model is not changed.

    shapes: lengths for inputs with free dimensions, by input name.
    Errors: SplitterError for free dimensions without a binding, shapes that depend on data,
    opsets that are not known.
    """
    draft = to_draft(model.proto)
    bind_shapes(draft, model.proto, shapes)
    for step in PASSES:
        step.run(draft)
    proto = to_proto(draft, model.proto)
    inputs = tuple(_value(draft, name) for name in draft.inputs)
    outputs = tuple(_value(draft, name) for name in draft.outputs)
    return Model(proto, model.path, model.sha256, inputs, outputs)


def _value(draft: Draft, name: str) -> Value:
    return Value(name, draft.shape(name) or (), draft.dtype(name))


__all__ = ["PASSES", "Pass", "normalize"]
