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
from splitter.normalize.activations import fuse_activations
from splitter.normalize.arithmetic import merge_constants, simplify_arithmetic
from splitter.normalize.assignments import write_assignments
from splitter.normalize.batch_norm import split_batch_norm
from splitter.normalize.bind import bind_shapes
from splitter.normalize.bounded import COMPRESS, bound_rows
from splitter.normalize.branches import select_branches
from splitter.normalize.canonical import canonicalize
from splitter.normalize.center_residual import center_residual
from splitter.normalize.channel_affine import write_channel_affine
from splitter.normalize.concats import hoist_concats
from splitter.normalize.dedupe import dedupe
from splitter.normalize.einsum import expand_einsum
from splitter.normalize.exchange import to_draft, to_proto
from splitter.normalize.expand import expand
from splitter.normalize.fold import fold_constants
from splitter.normalize.functions import inline_functions
from splitter.normalize.gemm import split_gemm
from splitter.normalize.group_norm import fuse_group_norm
from splitter.normalize.invalid import refuse_invalid
from splitter.normalize.level_rows import level_rows
from splitter.normalize.moments import write_moments
from splitter.normalize.nan_guards import drop_nan_guards
from splitter.normalize.noops import remove_noops
from splitter.normalize.norm_affine import fold_norm_affine
from splitter.normalize.norms import absorb_affine, fuse_norms
from splitter.normalize.one_dimension import lift_one_dimension
from splitter.normalize.pads import fold_pads
from splitter.normalize.pairs import split_pairs
from splitter.normalize.products import split_products
from splitter.normalize.ranks import lower_ranks
from splitter.normalize.reshapes import move_reshapes
from splitter.normalize.rows import pick_rows
from splitter.normalize.scale_weights import scale_weights
from splitter.normalize.selection import gather_rows
from splitter.normalize.slices import push_slices, slice_gathers
from splitter.normalize.softmax import fuse_softmax
from splitter.normalize.standard import standardize
from splitter.normalize.static import refuse_empty, require_static
from splitter.normalize.tables import slice_tables


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewrite and why it stands where it stands."""

    run: Callable[[Draft], None]
    reason: str


OPENING: tuple[Pass, ...] = (
    Pass(canonicalize, "first: every other pass knows one form of each operator"),
    Pass(
        fold_constants,
        "shapes are known from here on; If branches and Shape chains are gone",
    ),
    Pass(select_branches, "what is still an If is decided at run time"),
    Pass(expand, "before standardize: Attention and its kin are standard operators then"),
    Pass(standardize, "needs ranks; contrib operators have no inference of their own"),
    Pass(fold_constants, "types of what standardize wrote"),
    Pass(refuse_invalid, "before anything is said to have no static form"),
)
"""Up to where everything static is known to be: what is not has no TFLite form."""

PASSES: tuple[Pass, ...] = (
    *OPENING,
    Pass(bound_rows, "before what depends on data is refused; shapes of the rest are known"),
    Pass(require_static, "what is still dynamic is the user's to change"),
    Pass(expand_einsum, "needs static shapes; its products are fused like any other"),
    Pass(fuse_group_norm, "before 1-D is lifted, which would put Reshapes into the pattern"),
    Pass(lift_one_dimension, "before weights are scaled: one rank of convolution weights"),
    Pass(remove_noops, "fewer patterns for the fusions; all changes of shape are Reshape"),
    Pass(drop_nan_guards, "a mask is still a constant beside its Softmax"),
    Pass(simplify_arithmetic, "fusions see Mul and Add only, where Div, Sub and Pow were"),
    Pass(write_moments, "needs Mul by the inverse, where a division by the count was"),
    Pass(split_pairs, "needs Mul where Pow was; its slices are pushed like any other"),
    Pass(dedupe, "a value computed twice hides that a pattern has one source"),
    Pass(fuse_softmax, "needs the axes that write_moments keeps"),
    Pass(fuse_activations, "before constants are merged into what stands around a Gelu"),
    Pass(
        fuse_norms,
        "before scales move: the pattern needs its epsilon and mean untouched",
    ),
    Pass(split_gemm, "one form of matrix product for all that follows"),
    Pass(split_batch_norm, "as Mul and Add, which the next passes fold"),
    Pass(fold_pads, "any time after shapes; before layout sees a Pad it need not move"),
    Pass(write_assignments, "its slices are pushed like any other"),
    Pass(slice_gathers, "so that push_slices and layout see one form"),
    Pass(pick_rows, "before push_slices, which knows steps of 1 only"),
    Pass(push_slices, "constants under slices fold"),
    Pass(split_products, "what is still sliced behind a product; before concats are hoisted"),
    Pass(level_rows, "needs the sums of weights as a product of their own"),
    Pass(fold_constants, "what push_slices made constant, and copies of it"),
    Pass(hoist_concats, "after push_slices, which would take them apart again"),
    Pass(gather_rows, "after shapes are folded: the index is then seen to be a broadcast"),
    Pass(slice_tables, "gathers from constant tables are seen since gather_rows"),
    Pass(remove_noops, "again: slices of everything, reshapes in a row"),
    Pass(absorb_affine, "before norm_affine: scale and bias are then in the norm"),
    Pass(merge_constants, "one constant a chain, so that one fold takes it all"),
    Pass(
        scale_weights,
        "needs biases beside their MatMul, which split_gemm and noops give",
    ),
    Pass(
        fold_norm_affine,
        "norms without scale and bias have mean zero, which centering uses",
    ),
    Pass(
        center_residual,
        "after all scales are in the weights: it changes their outputs' mean",
    ),
    Pass(write_channel_affine, "what is still Mul and Add found no weights to go into"),
    Pass(move_reshapes, "after the weights: a Reshape between two operators hides neither now"),
    Pass(lower_ranks, "after all that looks at axes by number"),
    Pass(dedupe, "again: folding made equal nodes equal in form"),
    Pass(remove_noops, "leaves no Identity but at outputs"),
    Pass(refuse_empty, "what no rewrite removed"),
)


def normalize(model: Model, *, shapes: Mapping[str, tuple[int, ...]] = {}) -> Model:
    """The model in canonical form. The given model is not changed.

    shapes: lengths for inputs with free dimensions, by input name.
    Errors: SplitterError for free dimensions without a binding, shapes that depend on data,
    opsets that are not known.
    """
    draft = _run(PASSES, model, shapes)
    proto = to_proto(draft, model.proto)
    inputs = tuple(_value(draft, name) for name in draft.inputs)
    outputs = tuple(_value(draft, name) for name in draft.outputs)
    return Model(proto, model.path, model.sha256, inputs, outputs)


def fixed_outputs(model: Model) -> tuple[Value, ...]:
    """Outputs of a normalized model, but for those with as many rows as the data decides."""
    made: set[str] = set()
    for node in model.proto.graph.node:
        if node.op_type == COMPRESS or made.intersection(node.input):
            made.update(node.output)
    return tuple(value for value in model.outputs if value.name not in made)


def opened(model: Model, *, shapes: Mapping[str, tuple[int, ...]] = {}) -> Draft:
    """The model as it is before anything is refused: canonical, folded, its types inferred."""
    return _run(OPENING, model, shapes)


def _run(passes: tuple[Pass, ...], model: Model, shapes: Mapping[str, tuple[int, ...]]) -> Draft:
    source = inline_functions(model.proto)
    draft = to_draft(source)
    bind_shapes(draft, source, shapes)
    for step in passes:
        step.run(draft)
    return draft


def _value(draft: Draft, name: str) -> Value:
    return Value(name, draft.shape(name) or (), draft.dtype(name))


__all__ = ["PASSES", "Pass", "fixed_outputs", "normalize", "opened"]
