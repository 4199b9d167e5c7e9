"""What no TFLite operator can do, and all that follows from it, as an ONNX part for ONNX Runtime.

Decides where a model ends for TFLite and what the ONNX part behind it holds. It is cut out of the
file's own operators, in its own opset, so that an older ONNX Runtime takes it; what folds to a
constant once shapes are known (a chain of Shape, Gather, Concat) is a constant in it. The part is
float. Where values enter it from the integer parts, the glue dequantizes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import onnx

from splitter.diagnostics import Cause, Unsupported
from splitter.draft import Draft, Node
from splitter.extract import extract
from splitter.graph import Value
from splitter.layout import layout
from splitter.lower import refuse_unknown
from splitter.model import Model, ending_at
from splitter.normalize import normalize, opened
from splitter.normalize.evaluate import runnable
from splitter.normalize.exchange import type_of
from splitter.normalize.frontier import frontier
from splitter.normalize.functions import inline_functions
from splitter.normalize.static import as_cause, is_static, left, obstacles

Shape = tuple[int | None, ...] | None

MOST = 64
"""Values that the TFLite parts may hand on, at most: with more there is no cut worth the name."""


@dataclass(frozen=True, slots=True)
class Port:
    """A value at the border of the ONNX part; a length is None where data decides it."""

    name: str
    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Remainder:
    """The ONNX part behind the TFLite parts.

    inputs: values the TFLite parts make, and model inputs. outputs: what it makes of the model's
    outputs. results: all outputs of the model in their order. whole: the model it was cut from.
    causes: the operators that have no TFLite form; the others come after them.
    """

    proto: onnx.ModelProto
    whole: Model
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    results: tuple[str, ...]
    causes: tuple[Cause, ...]

    @property
    def operators(self) -> int:
        return len(self.proto.graph.node)


def split_off(
    model: Model, *, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Model, Remainder | None]:
    """The model up to where TFLite can go, and the rest; (model, None) when it can go to the end.

    Where nothing is left for TFLite, or more than `MOST` values lie between, the rest is all of it:
    the model before it has inputs alone.
    """
    found = survey(model, shapes=shapes, bounded=False)
    if not found.causes:
        return model, None
    if not 0 < len(found.ends) <= MOST:
        return _nothing(model, found.draft), _behind(model, replace(found, ends=()))
    return ending_at(model, found.ends), _behind(model, found)


@contextmanager
def named_in_full(model: Model, *, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[None]:
    """A refusal inside becomes one that knows every such operator of the model.

    A stage names only those that it meets: what has no static form ends `normalize`, and what has
    no lowering is seen later.
    """
    try:
        yield
    except Unsupported:
        found = survey(model, shapes=shapes)
        refusal = Unsupported(found.causes, ends=found.ends)
        if found.causes and not 0 < len(found.ends) <= MOST:
            refusal.hint = refusal.trips + _no_cut(found)
        raise refusal from None


@dataclass(frozen=True)
class Survey:
    """What of a model has no TFLite form, and the values it could end at before that."""

    draft: Draft
    causes: tuple[Cause, ...]
    ends: tuple[str, ...]


def survey(model: Model, *, shapes: Mapping[str, tuple[int, ...]], bounded: bool = True) -> Survey:
    """Tries what is left before the operators that are known to be refused, until nothing is.

    bounded: as many rows as the data decides have a TFLite form where `normalize` finds one; else
    what decides them is left to ONNX Runtime, which does not go through the most there can be.
    Errors: SplitterError for what is wrong with the model otherwise.
    """
    draft = opened(model, shapes=shapes)
    makers = model.makers
    causes = {found.node: as_cause(found) for found in (left if bounded else obstacles)(draft)}
    while True:
        ends = frontier(draft, list(causes), lambda n: n in makers and is_static(draft, n))
        if causes and not ends:
            break
        more = (
            _refused(ending_at(model, ends), draft, shapes)
            if causes
            else _refused(model, draft, shapes)
        )
        if not more:
            break
        causes |= more
    ordered = [causes[node] for node in draft.nodes if node in causes]
    return Survey(draft, tuple(ordered), ends if causes else ())


def _refused(
    model: Model, draft: Draft, shapes: Mapping[str, tuple[int, ...]]
) -> dict[Node, Cause]:
    """The nodes of the draft that the stages from `normalize` to `lower` refuse."""
    try:
        refuse_unknown(layout(normalize(model, shapes=shapes)))
    except Unsupported as error:
        named = {name: cause for cause in error.causes for name in cause.nodes}
        found = {}
        for node in draft.nodes:
            cause = next((named[name] for name in node.sources if name in named), None)
            if cause is not None:
                runs = runnable(node.op, node.domain)
                found[node] = replace(cause, nodes=node.sources, runs=runs)
        if not found:
            raise
        return found
    return {}


def _no_cut(found: Survey) -> str:
    """What helps where the model cannot end before what is refused, and why it cannot."""
    ends = found.ends
    why = (
        f"{len(ends)} values lie between the network and them, more than the {MOST} of a cut"
        if ends
        else "nothing is left for TFLite before them: they read the model's inputs"
    )
    unknown = sorted({cause.op for cause in found.causes if not cause.runs})
    if unknown:
        return (
            f"{why}; export the model again so that {', '.join(unknown)} is written out of ONNX's "
            "own operators: no runtime for ONNX has it"
        )
    return (
        f"{why}; there is nothing to split, and ONNX Runtime runs the file as it is, on the CPU: "
        "onnxruntime.InferenceSession(FILE)"
    )


def _nothing(model: Model, draft: Draft) -> Model:
    """Inputs of static shapes, and nothing that is made of them."""
    proto = onnx.ModelProto(ir_version=model.proto.ir_version)
    proto.opset_import.extend(model.proto.opset_import)
    inputs = [Value(v.name, draft.shape(v.name) or (), v.dtype) for v in model.inputs]
    return replace(model, proto=proto, inputs=tuple(inputs), outputs=())


def _behind(model: Model, found: Survey) -> Remainder:
    source = inline_functions(model.proto)
    own = [info for info in source.graph.output if info.name not in found.ends]
    proto = extract(source, found.draft, found.ends, [info.name for info in own])
    proto.graph.output.extend(own)
    return Remainder(
        proto=proto,
        whole=replace(model, proto=source),
        inputs=tuple(_port(info) for info in proto.graph.input),
        outputs=tuple(_port(info) for info in own),
        results=tuple(info.name for info in source.graph.output),
        causes=found.causes,
    )


def _port(info: onnx.ValueInfoProto) -> Port:
    known = type_of(info.type)
    return Port(info.name, known.dtype, known.shape)
